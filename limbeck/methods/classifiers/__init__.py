"""Models instead of rows: classifiers that learn from the rows through noise."""

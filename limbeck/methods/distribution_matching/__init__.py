"""Distribution matching: a small set whose class means in random networks are the rows'."""

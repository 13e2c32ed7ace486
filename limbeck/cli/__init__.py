"""The command line: `limbeck.cli.main.main` is the command."""

"""Shell completion and manual pages, generated from the parsers of the `blast` command."""

"""Looking for broken and swapped fibres with probe frames."""

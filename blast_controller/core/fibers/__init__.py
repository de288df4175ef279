"""Looking for broken and swapped fibers with probe frames."""

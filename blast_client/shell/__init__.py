"""What a shell and `man` want of the `blast` command, made from its own parsers."""

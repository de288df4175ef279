"""Scripts for shell completion of commands, options, their values, files and directories."""

from __future__ import annotations

from blast_client.cli.shell.parsers import every_parser, whole_parser

# Names of the values of options.
_FILES = ("FILE", "FILE|-", "NAME|FILE", "INSTANCE.json", "NETWORK.json", "TRACE")
_FOLDERS = ("FOLDER", "DIR")


def completion(shell: str) -> str:
    """Return the script for a shell that `shtab` supports (extra `shell`)."""
    import shtab

    parser = whole_parser()
    for each in every_parser(parser):
        for action in each._actions:
            if action.metavar in _FILES:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
            elif action.metavar in _FOLDERS:
                action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
    script: str = shtab.complete(parser, shell)
    return script

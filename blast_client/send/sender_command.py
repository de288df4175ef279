"""`blast sender`: send for another program, controlled by JSON lines on standard input."""

from __future__ import annotations

import argparse

from blast_client.cli.failures import report_failures
from blast_client.cli.options import add_command
from blast_client.send.command import add_agents, add_transport

_DESCRIPTION = """\
Send for another program, in any language. The program writes JSON lines to standard input and reads JSON lines from
standard output. When it closes the pipe, active transfers are aborted and their requests withdrawn.

  in   {"send": "1", "file": "/dev/shm/…/data", "name": "a/b", "folder": "spark", "to": ["h2=10.0.2.1:9095", "h3"]}
       {"stop": "1"}
  out  {"event": "ready", "spool": "/dev/shm/blast-sender-…"}
       {"event": "progress", "send": "1", "bytes": …, "slowest": …, "transport": "optical", …}
       {"event": "end", "send": "1", "delivered": ["h2"], "failed": {"h3": "…"}, "transports": ["optical"], …}
       {"event": "refused", "send": "1", "reason": "…"}

Each send ends with one `end` or `refused`. A file in the spool directory is removed after it was sent, and the spool
directory at exit.
"""
_EXAMPLE = """\
example:
  coproc blast sender --secret-file /etc/blast/secret --controller 10.0.0.1:9090
"""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `sender` to `blast`."""
    parser = add_command(subparsers, "sender", "send for another program, controlled by JSON lines", "")
    parser.description, parser.epilog = _DESCRIPTION, _EXAMPLE
    add_transport(parser)
    add_agents(parser)
    parser.set_defaults(run=_run)


@report_failures
def _run(arguments: argparse.Namespace) -> int:
    # Importing the data plane takes longer than the help does.
    from blast_client.send.sender_job import run_sender

    return run_sender(arguments)

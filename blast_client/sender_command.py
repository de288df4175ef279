"""`blast sender`: send for another program, which asks by lines on standard input."""

from __future__ import annotations

import argparse

from blast_client.failures import telling_failures
from blast_client.options import add_command
from blast_client.send_command import add_agents, add_way

_DESCRIPTION = """\
Send for another program, in any language, for as long as it lives: it writes JSON lines to our standard input and reads
some from our standard output. Where its end of the pipe closes, what is being sent is given up and the light goes back.

  in   {"send": "1", "file": "/dev/shm/…/data", "name": "a/b", "folder": "spark", "to": ["h2=10.0.2.1:9095", "h3"]}
       {"stop": "1"}
  out  {"event": "ready", "spool": "/dev/shm/blast-sender-…"}
       {"event": "progress", "send": "1", "bytes": …, "slowest": …, "transport": "optical", …}
       {"event": "end", "send": "1", "delivered": ["h2"], "failed": {"h3": "…"}, "transports": ["optical"], …}
       {"event": "refused", "send": "1", "reason": "…"}

Each send ends with one `end` or `refused`. A file that lies in the spool is removed when it has been sent, and the
spool when we end.
"""
_EXAMPLE = """\
example:
  coproc blast sender --secret-file /etc/blast/secret --controller 10.0.0.1:9090
"""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `sender` to `blast`."""
    parser = add_command(subparsers, "sender", "send for another program, which asks by JSON lines", "")
    parser.description, parser.epilog = _DESCRIPTION, _EXAMPLE
    add_way(parser)
    add_agents(parser)
    parser.set_defaults(run=_run)


@telling_failures
def _run(arguments: argparse.Namespace) -> int:
    # `blast` loads this file at every start; the data plane is loaded when it is needed.
    from blast_client.sender_job import run_sender

    return run_sender(arguments)

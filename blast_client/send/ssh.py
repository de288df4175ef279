"""Agents for one `blast send`, started over SSH."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import ExitStack

from blast_client.send.receivers import Receiver
from blast_client.send.target import SendTarget
from blast_transport.remote.start import StartedAgents, StartOptions, started_agents


def agents_for(
    arguments: argparse.Namespace, receivers: Sequence[Receiver], target: SendTarget, stack: ExitStack
) -> StartedAgents:
    """Start agents that accept only this transfer, until `stack` closes. Raises WrongInputError."""
    defaults = StartOptions()
    options = StartOptions(
        user=arguments.ssh_user,
        port=arguments.ssh_port,
        ssh_options=arguments.ssh_options,
        window=arguments.ssh_window or defaults.window,
        seconds=arguments.start_timeout or defaults.seconds,
        addresses={name: host for name, host, _ in receivers},
        line=target.line,
        path=target.path,
    )
    return stack.enter_context(started_agents([name for name, _, _ in receivers], arguments.ssh_folder or "", options))

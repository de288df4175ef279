"""A network namespace for one of several controllers of a lab: nothing of the machine's reaches it but by passages.

It needs etcd and the optical switch; ToRs and clients come to it. All keep the addresses that they have outside, on the
namespace's own loopback. Each kind of passage can be cut, which shows what a partition does.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from enum import Enum

from blast_base.endpoint import parse_endpoint
from mininet_topos.kernel.errors import ProcessError
from mininet_topos.kernel.gated_relays import (
    GatedRelay,
    GatedRelays,
    TrafficGate,
    here,
    listening_here,
    listening_within,
    within,
)
from mininet_topos.kernel.names import MARK

_HOLD = "ip link set lo up && echo && exec sleep infinity"


class Side(Enum):
    """A side from which a controller can be cut off."""

    ETCD = "etcd"
    DEVICES = "devices"
    CLIENTS = "clients"


class ControllerNamespace:
    """A network namespace for a controller, created at once and removed by `end`. Raises `ProcessError`.

    `outward` are addresses outside that the controller needs, `inward` its listening addresses, each by its side.
    """

    def __init__(self, lab: str, outward: Mapping[str, Side], inward: Mapping[str, Side]) -> None:
        self._gates = {side: TrafficGate() for side in Side}
        self._undo = ExitStack()
        # The process that keeps the namespace ends with the lab in any case: by its mark, or with this process.
        command = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sh", "-c", _HOLD]
        self._holder = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env={**os.environ, MARK: lab}
        )
        self._undo.callback(self._end_holder)
        assert self._holder.stdout is not None
        if not self._holder.stdout.readline():
            self.end()
            raise ProcessError("a network namespace for a controller cannot be made: the machine refuses it")
        try:
            passages = [*self._outward(outward), *self._inward(inward)]
            self._undo.enter_context(GatedRelays(passages))
        except OSError as refusal:
            self.end()
            raise ProcessError(f"a controller's addresses cannot be reached from outside: {refusal}") from refusal

    def command(self, words: Sequence[str]) -> list[str]:
        """Return the command that runs `words` in the namespace."""
        return ["nsenter", f"--net=/proc/{self._holder.pid}/ns/net", "--", *words]

    def cut(self, sides: Iterable[Side]) -> None:
        """Let nothing pass from and to these."""
        for side in sides:
            self._gates[side].shut()

    def mend(self, sides: Iterable[Side]) -> None:
        """Let everything pass again."""
        for side in sides:
            self._gates[side].open()

    def end(self) -> None:
        """Remove it; twice does nothing more."""
        for gate in self._gates.values():
            gate.open()
        self._undo.close()

    def _outward(self, addresses: Mapping[str, Side]) -> Iterator[GatedRelay]:
        for address, side in addresses.items():
            host, port = parse_endpoint(address)
            listening = listening_within(self._holder.pid, host, port)
            yield GatedRelay(listening, here(host, port), self._gates[side])

    def _inward(self, addresses: Mapping[str, Side]) -> Iterator[GatedRelay]:
        for address, side in addresses.items():
            host, port = parse_endpoint(address)
            yield GatedRelay(listening_here(host, port), within(self._holder.pid, host, port), self._gates[side])

    def _end_holder(self) -> None:
        self._holder.kill()
        self._holder.wait()
        assert self._holder.stdout is not None
        self._holder.stdout.close()

"""Faults for the lab's optical switch while it runs: broken fibers, losses, slow mirrors, late answers, denials.

The lab's owner requests them over a Unix socket of the switch's agent, one JSON object per line, separate from the
switch's protocol. A broken fiber loses packets and optical power at the same time: a queue of length zero on its
output, and a dark port in the power model. A dim fiber, and a raised loss within the switch, reduce the power of the
whole tree behind them, and lose packets at receivers below their sensitivity. Each kind of switch shows a fault as its
protocol does: TL1 and NETCONF by alarms and power meters, SONiC OCS by the insertion losses of its circuits (it has no
meters at fibers). Faults last until they are cleared or the switch is restarted.
"""

from __future__ import annotations

import asyncio
import json
import math
import socket
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from pathlib import Path

from mininet_topos.kernel.errors import LabError, PlanError, ProcessError
from mininet_topos.kernel.names import Names
from mininet_topos.topology.plan import LabPlan
from mininet_topos.topology.power import PowerModel
from mininet_topos.topology.switch_servers import ServedSwitch
from optical_switch.model import Circuit, Port

_ANSWER_SECONDS = 60.0
"""Changes of a switch wait for its commands in progress."""


def fiber(plan: LabPlan, element: str) -> Port:
    """Return the port of the switch at the fiber of an element.

    Elements have the controller's names, such as `output:s1/10`, `splitter:s1` and `port:r3/91`. An output's fiber
    enters the switch, a splitter's feed and a port's receive fiber leave it. Raises `PlanError` for an unknown element.
    """
    fibers = {f"splitter:{s.name}": Port("out", s.input) for s in plan.splitter_plans}
    fibers |= {f"output:{s.name}/{output}": Port("in", output) for s in plan.splitter_plans for output in s.outputs}
    fibers |= {f"port:{r.name}/{p.port}": Port("out", p.ocs) for r in plan.rack_plans for p in r.optical_ports}
    if element not in fibers:
        raise PlanError(f"there is no fiber {element!r}: name one of {', '.join(fibers)}")
    return fibers[element]


class FaultInjector:
    """Fault injection for the owner of a lab; every call returns when the fault is effective.

    All methods raise `ProcessError` if the switch's agent does not answer, or refuses the fault.
    """

    def __init__(self, plan: LabPlan, path: Path) -> None:
        self._plan, self._path = plan, path

    def break_fiber(self, element: str) -> None:
        """Break the element's fiber: no packet and no light passes it any more.

        Raises `PlanError` for an unknown element.
        """
        self._ask(broken=fiber(self._plan, element))

    def mend_fiber(self, element: str) -> None:
        """Repair the element's fiber.

        Raises `PlanError` for an unknown element.
        """
        self._ask(mended=fiber(self._plan, element))

    def dim_fiber(self, element: str, decibels: float) -> None:
        """Set the additional loss of the element's fiber in dB; 0 clears it.

        Raises `PlanError` for an unknown element.
        """
        self._ask(dimmed=[fiber(self._plan, element), decibels])

    def raise_loss(self, element: str, decibels: float) -> None:
        """Set the additional loss in the switch of every circuit at the element's fiber, in dB; 0 clears it.

        Raises `PlanError` for an unknown element.
        """
        self._ask(raised_loss=[fiber(self._plan, element), decibels])

    def slow_mirrors(self, seconds: float) -> None:
        """Set the additional time of every connect; 0 is the vendor's time."""
        self._ask(slow_mirrors=seconds)

    def hold_answers(self, seconds: float) -> None:
        """Set the delay of every answer after the work is done; 0 clears it."""
        self._ask(hold_answers=seconds)

    def deny(self, inputs: Sequence[int] = (), outputs: Sequence[int] = (), *, everything: bool = False) -> None:
        """Deny connects of these inputs or outputs from now on, or every command.

        Without arguments, nothing is denied any more.
        """
        self._ask(denied={"inputs": list(inputs), "outputs": list(outputs), "everything": everything})

    def cut_sessions(self) -> None:
        """Reset every session; the agent goes on listening, and circuits stay."""
        self._ask(cut_sessions=True)

    def _ask(self, **wish: object) -> None:
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.settimeout(_ANSWER_SECONDS)
                connection.connect(str(self._path))
                connection.sendall(json.dumps(wish).encode() + b"\n")
                with connection.makefile() as answers:
                    answer = json.loads(answers.readline() or "{}")
        except (OSError, ValueError) as error:
            raise ProcessError(f"the optical switch takes no faults: {error}") from error
        if answer.get("done") is not True:
            raise ProcessError(f"the optical switch refused a fault: {answer.get('refused', 'no answer')}")


class FaultServer:
    """The agent's side: carries out what a `FaultInjector` asks of `switch`."""

    def __init__(
        self, switch: ServedSwitch, model: PowerModel, names: Names, run_tc: Callable[[list[str]], None]
    ) -> None:
        self._switch, self._model, self._names, self._run_tc = switch, model, names, run_tc
        self._ports: tuple[int, ...] = ()
        self._circuits: Sequence[Circuit] = ()
        self._closed: set[Port] = set()
        self._wishes: dict[str, Callable[..., None]] = {
            "broken": lambda port: self._break(Port(*port)),
            "mended": lambda port: self._mend(Port(*port)),
            "dimmed": lambda wish: self._dim(Port(*wish[0]), float(wish[1])),
            "raised_loss": lambda wish: self._raise_loss(Port(*wish[0]), float(wish[1])),
            "slow_mirrors": self._slow_mirrors,
            "hold_answers": self._hold_answers,
            "denied": lambda wish: self._deny(**wish),
            "cut_sessions": lambda _: self._switch.cut(),
        }

    async def serve(self, path: Path, ports: int) -> asyncio.Server:
        """Serve at `path`, for a switch with duplex ports 1..`ports`; every fiber is whole to begin with."""
        self._ports = tuple(range(1, ports + 1))
        outputs = [output for splitter in self._model.splitters for output in splitter.outputs]
        everything = [*(Port("out", number) for number in self._ports), *(Port("in", output) for output in outputs)]
        self._run_tc([self._queue(port, "noqueue") for port in everything])
        path.unlink(missing_ok=True)
        return await asyncio.start_unix_server(self._converse, path)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(json.dumps(self._answer(line)).encode() + b"\n")
            await writer.drain()
        writer.close()

    def _answer(self, line: bytes) -> dict[str, object]:
        try:
            for wish, value in json.loads(line).items():
                self._wishes[wish](value)
        except (LabError, ValueError, TypeError, KeyError) as error:
            return {"refused": f"{type(error).__name__}: {error}"}
        return {"done": True}

    def _break(self, port: Port) -> None:
        self._alter(broken={*self._model.broken, port})

    def _mend(self, port: Port) -> None:
        self._alter(broken=self._model.broken - {port})

    def _dim(self, port: Port, decibels: float) -> None:
        self._alter(dimmed={**self._model.dimmed, port: _checked_loss(decibels)})

    def _raise_loss(self, port: Port, decibels: float) -> None:
        self._alter(raised={**self._model.raised, port: _checked_loss(decibels)})

    def _alter(
        self,
        broken: set[Port] | None = None,
        dimmed: dict[Port, float] | None = None,
        raised: dict[Port, float] | None = None,
    ) -> None:
        """Change losses: packets first, so that a refusal changes nothing; then report dark and lit ports."""
        model, before = self._model, self._working_outputs()
        held = model.broken, model.dimmed, model.raised
        model.broken = model.broken if broken is None else broken
        model.dimmed = model.dimmed if dimmed is None else dimmed
        model.raised = model.raised if raised is None else raised
        try:
            self.follow(self._circuits)
        except LabError:
            model.broken, model.dimmed, model.raised = held
            raise
        self._switch.hardware.faults.extra_loss_db = self._extra_losses()
        after = self._working_outputs()
        self._switch.hardware.changed()
        for output in sorted(before ^ after):
            self._switch.report_output(output, output in after)

    def _extra_losses(self) -> dict[Circuit, float]:
        """Return the additional loss of each possible circuit at a port with a raised loss."""
        raised = {port for port, loss in self._model.raised.items() if loss}
        pairs = {Circuit(*pair) for port in raised for pair in self._pairs_at(port)}
        return {circuit: self._model.extra_loss(circuit) for circuit in pairs}

    def _pairs_at(self, port: Port) -> Iterable[tuple[int, int]]:
        one = (port.number,)
        return product(one, self._ports) if port.side == "in" else product(self._ports, one)

    def follow(self, circuits: Sequence[Circuit]) -> None:
        """Let no packet pass where these circuits, which are now set, carry too little light. Raises `HostError`."""
        self._circuits = circuits
        closed = self._model.broken | self._model.too_dark(circuits)
        changes = [self._queue(port, "pfifo limit 0") for port in closed - self._closed]
        changes += [self._queue(port, "noqueue") for port in self._closed - closed]
        if changes:
            self._run_tc(changes)
        self._closed = closed

    def _queue(self, port: Port, discipline: str) -> str:
        """Return the `tc` line for the end of the fiber that sends.

        This is the switch's own end, or a splitter's output.
        """
        sends = self._names.ocs_port if port.side == "out" else self._names.splitter_side
        return f"qdisc replace dev {sends(port.number)} root {discipline}"

    def _working_outputs(self) -> set[int]:
        lit = {port for port in self._model(self._circuits) if port.side == "out"}
        return {port.number for port in lit - self._model.too_dark(self._circuits)}

    def _slow_mirrors(self, seconds: float) -> None:
        self._switch.hardware.faults.slow_inputs = dict.fromkeys(self._ports, float(seconds))

    def _hold_answers(self, seconds: float) -> None:
        self._switch.hardware.faults.answer_delay = float(seconds)

    def _deny(self, inputs: Sequence[int], outputs: Sequence[int], everything: bool) -> None:
        faults = self._switch.hardware.faults
        faults.refused_inputs, faults.refused_outputs = set(map(int, inputs)), set(map(int, outputs))
        faults.refuse_all = bool(everything)


def _checked_loss(decibels: float) -> float:
    if not 0 <= decibels < math.inf:
        raise ValueError(f"a loss cannot be {decibels} dB")
    return decibels

"""The optical fabric against a model, with a kernel that works, and one that fails at any line."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from mininet_topos.kernel.errors import FabricChangeError, FabricConflictError, HostError
from mininet_topos.kernel.names import Names
from mininet_topos.topology.optical_fabric import ACTIONS_PER_FILTER, EmulatedSplitter, OpticalFabric, mirror_set

NAMES = Names("b000")
PORTS = 9
SPLITTERS = (EmulatedSplitter("s1", 4, (4, 5, 6)), EmulatedSplitter("s2", 7, (7, 8, 9)))


class Kernel:
    """Executes the subset of `tc -batch` that the fabric uses, and can fail at one line of a call."""

    def __init__(self):
        self.redirects = {}
        self.calls = []
        self.fail_at = None

    def __call__(self, lines):
        self.calls.append(lines)
        for number, line in enumerate(lines):
            if number == self.fail_at:
                self.fail_at = None
                raise HostError("tc failed: no")
            self._execute(line)

    def _execute(self, line):
        if match := re.fullmatch(r"filter replace dev (\S+) .*redirect dev (\S+)", line):
            self.redirects[match[1]] = match[2]
        elif match := re.fullmatch(r"filter del dev (\S+) parent ffff: prio 1 protocol all u32", line):
            if match[1] not in self.redirects:
                raise HostError("tc failed: no such filter")
            del self.redirects[match[1]]
        elif match := re.fullmatch(r"filter del dev (\S+) parent ffff:", line):
            self.redirects.pop(match[1], None)
        else:
            assert line.startswith(("qdisc replace", "filter add"))

    def circuits(self):
        return {int(source[5:]): int(target[5:]) for source, target in self.redirects.items()}


port = st.integers(0, PORTS + 1)
circuits = st.lists(st.tuples(port, port), max_size=4)


def model(state, removed, added):
    """Return the state after the change, or None if the change must be rejected."""
    result = dict(state)
    for source, target in removed:
        if result.get(source) != target:
            return None
        del result[source]
    for source, target in added:
        known = 1 <= source <= PORTS and 1 <= target <= PORTS
        if not known or source in result or target in result.values():
            return None
        result[source] = target
    return None if loops(result) else result


def loops(state):
    """Return True if light from any splitter can reach the same splitter again."""
    outputs = {s.input: s.outputs for s in SPLITTERS}

    def reaches(start, goal, seen):
        targets = {state[output] for output in outputs[start] if state.get(output) in outputs}
        return goal in targets or any(reaches(t, goal, seen | {t}) for t in targets - seen)

    return any(reaches(feed, feed, {feed}) for feed in outputs)


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_kernel_and_state_match_model(data):
    kernel = Kernel()
    fabric = OpticalFabric(NAMES, PORTS, SPLITTERS, kernel)
    fabric.prepare()
    state = {}
    for _ in range(data.draw(st.integers(1, 8))):
        chosen = [c for c in sorted(state.items()) if data.draw(st.booleans())]
        removed = chosen + data.draw(
            st.lists(st.tuples(port, port), max_size=1) if data.draw(st.booleans()) else st.just([])
        )
        added = data.draw(circuits)
        expected = model(state, removed, added)
        kernel.calls.clear()
        kernel.fail_at = data.draw(st.none() | st.integers(0, 6))
        failing = kernel.fail_at is not None and kernel.fail_at < len(removed) + len(added)
        if not failing:
            kernel.fail_at = None
        try:
            fabric.apply(removed, added)
            assert expected is not None
            assert not failing
            assert len(kernel.calls) == (1 if removed or added else 0)
            state = expected
        except FabricConflictError:
            assert expected is None
            assert kernel.calls == []
        except FabricChangeError:
            assert failing
            assert expected is not None
        kernel.fail_at = None
        assert fabric.circuits == state
        assert kernel.circuits() == state


@given(st.lists(st.tuples(port, port), max_size=3, unique_by=(lambda c: c[0], lambda c: c[1])))
def test_apply_removes_circuits_before_adding_new_ones(new):
    kernel = Kernel()
    fabric = OpticalFabric(NAMES, PORTS, (), kernel)
    fabric.apply([], [(1, 2), (2, 3), (3, 1)])
    kernel.calls.clear()
    try:
        fabric.apply([(1, 2), (2, 3), (3, 1)], new)
    except FabricConflictError:
        return
    kinds = [line.split()[1] for line in kernel.calls[0]]
    assert kinds == ["del"] * 3 + ["replace"] * len(new)


@given(st.integers(2, 64))
def test_each_splitter_output_gets_one_copy(fan_out):
    lines = mirror_set(EmulatedSplitter("s", 1, tuple(range(1, fan_out + 1))), NAMES)[2:]
    copies = [output for line in lines for output in re.findall(r"dev b000s(\d+)(?= |$)", line.partition("match")[2])]
    assert sorted(map(int, copies)) == list(range(1, fan_out + 1))
    assert all(line.count("action") <= ACTIONS_PER_FILTER for line in lines)
    assert [line.endswith(" continue") for line in lines] == [True] * (len(lines) - 1) + [False]
    assert sum("redirect" in line for line in lines) == 1


@given(st.integers(1, 99), st.lists(st.integers(1, 99), min_size=1))
def test_wiring_text_round_trips(feed, outputs):
    splitter = EmulatedSplitter(f"at {feed}", feed, tuple(outputs))
    assert EmulatedSplitter.parse(splitter.wiring) == splitter

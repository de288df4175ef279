"""Blast on the simulator: the project's own core and policies run on a virtual clock, without substitutes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from algorithms.scheduling import POLICIES
from blast_controller.core.model.settings import CoreSettings
from blast_sim.controller.core_driver import Delays
from blast_sim.flow.engine import StalledError
from blast_sim.flow.optics import OpticalResources
from blast_sim.methods.method import Multicast, Phased
from blast_sim.methods.naive import naive
from blast_sim.methods.optical import Blast, Control, RequestTerms
from tests.support.simulators.flows import GIGABIT, group, small_network, times_of, world

C = 10 * GIGABIT
D = 2.4 * GIGABIT
OPTICAL, FORWARDING = 0.025, 0.008
PAPER = CoreSettings(policy="paper", keep_warm=60.0)
"""With warm trees, one command moves circuits from one request to the next."""

CONTROL = Control(OpticalResources(2), PAPER, Delays(OPTICAL, FORWARDING), lambda measured: 0.0)


def blast(where, control=CONTROL, terms=RequestTerms()):  # noqa: B008 - frozen
    return Blast(where, range(where.network.servers), control, terms, Phased(where, naive))


def taken(groups, control=CONTROL, terms=RequestTerms(), network=None, each_way=0):  # noqa: B008
    where = world(network or small_network(6, 4), each_way)
    method = blast(where, control, terms)
    return times_of(where, method, groups(where.network)), method


def one(network):
    return [group(network, (0, 1, 2))]


def two(network):
    """They share rack 2, which has one optical port."""
    return [group(network, (0, 1, 2), name="a"), group(network, (2, 3, 4), 150_000_000, name="b")]


def test_multicast_takes_one_reconfiguration_and_one_copy() -> None:
    """Closed form: the devices work side by side, then the data goes at the rate of light."""
    times, method = taken(one)
    assert times == pytest.approx({"m": OPTICAL + D / C})
    assert method.computes == {"m": 0.0} and not method.fell_back


@pytest.mark.parametrize(("optical", "forwarding"), [(0.2, 0.008), (0.005, 0.1)])
def test_slower_device_determines_the_setup_time(optical: float, forwarding: float) -> None:
    times, _ = taken(one, replace(CONTROL, delays=Delays(optical, forwarding)))
    assert times["m"] == pytest.approx(max(optical, forwarding) + D / C)


def test_calls_and_computation_add_to_the_time() -> None:
    control = replace(CONTROL, delays=Delays(OPTICAL, FORWARDING, rpc=0.002), compute=lambda measured: 0.01)
    times, method = taken(one, control)
    assert times["m"] == pytest.approx(0.002 + 0.01 + OPTICAL + D / C)
    assert method.computes == {"m": 0.01}


def test_computation_is_measured_on_request() -> None:
    _, method = taken(one, replace(CONTROL, compute=lambda measured: measured))
    assert 0 < method.computes["m"] < 1


def test_one_rack_needs_no_switch_and_two_need_no_splitter() -> None:
    control = replace(CONTROL, optics=OpticalResources(0))
    for racks, set_up in (((4,), FORWARDING), ((0, 1), OPTICAL)):
        times, _ = taken(lambda network, racks=racks: [group(network, racks)], control)
        assert times["m"] == pytest.approx(set_up + D / C)


@pytest.mark.parametrize(
    ("settings", "first", "second", "reconfigurations"),
    [
        # The larger volume goes first by the paper's rule; the other one's circuits are set when it is done.
        (PAPER, "a", "b", 1),
        # Without warm trees the switch takes down before it sets up: two commands, one after the other.
        (replace(PAPER, keep_warm=0.0), "a", "b", 2),
        (replace(PAPER, policy="smith"), "b", "a", 1),
    ],
)
def test_multicast_waits_for_a_shared_port(
    settings: CoreSettings, first: str, second: str, reconfigurations: int
) -> None:
    times, _ = taken(two, replace(CONTROL, settings=settings))
    alone = {"a": D / C, "b": D / 2 / C}
    assert times[first] == pytest.approx(OPTICAL + alone[first])
    assert times[second] == pytest.approx(times[first] + reconfigurations * OPTICAL + alone[second])


def test_directional_port_sends_and_receives_for_two_groups() -> None:
    times, _ = taken(two, replace(CONTROL, optics=OpticalResources(2, directional=True)))
    # Both at once; the receivers in rack 2 have one link each for the two of them, until b is complete.
    assert times == pytest.approx({"a": OPTICAL + D / C + D / 2 / C, "b": OPTICAL + D / C})


def test_multicast_waits_for_a_splitter() -> None:
    def groups(network):
        return [group(network, (0, 1, 2), name="a"), group(network, (3, 4, 5), 150_000_000, name="b")]

    both, _ = taken(groups)
    assert both["b"] == pytest.approx(OPTICAL + D / 2 / C)
    one_splitter, _ = taken(groups, replace(CONTROL, optics=OpticalResources(1)))
    assert one_splitter["b"] == pytest.approx(one_splitter["a"] + OPTICAL + D / 2 / C)


def test_multicast_uses_the_rate_that_background_leaves() -> None:
    """Every server has 1 Gbit/s of background, its share of 4 Gbit/s; the multicast has the other 9."""
    times, _ = taken(one, network=small_network(6, 4, 4.0), each_way=2)
    assert times["m"] == pytest.approx(OPTICAL + D / (9 * GIGABIT))


def test_warm_tree_needs_no_setup() -> None:
    where = world(small_network(6, 4))
    method = blast(where)
    first, second = (group(where.network, (0, 1, 2), name=name) for name in ("first", "second"))
    ends: dict[str, float] = {}

    def then() -> None:
        ends["first"] = where.simulation.clock.now
        method.send(second, lambda: ends.update(second=where.simulation.clock.now))

    method.send(first, then)
    where.simulation.run(lambda: "second" in ends)
    assert ends["second"] - ends["first"] == pytest.approx(D / C)


def one_after_another(groups, control, terms):
    """Return the end times of two multicasts, the second sent 0.1 s after the first."""
    where = world(small_network(6, 4))
    method = blast(where, control, terms)
    ends: dict[str, float] = {}
    clock = where.simulation.clock
    for number, one in enumerate(groups(where.network)):
        clock.at(0.1 * number, lambda one=one: method.send(one, lambda: ends.update({one.name: clock.now})))
    where.simulation.run(lambda: len(ends) == 2)
    return ends, method


def test_long_multicast_pauses_for_a_short_one_and_resumes() -> None:
    """With leases the short one waits for the end of a lease, not for the end of the long one; no bit is sent twice."""
    control = replace(CONTROL, settings=replace(PAPER, policy="srpt-lease"))

    def groups(network):
        return group(network, (0, 1, 2), 3_000_000_000, "long"), group(network, (2, 3, 4), 30_000_000, "short")

    (whole, _), (leased, _) = (
        one_after_another(groups, control, RequestTerms(may_pause=pause)) for pause in (False, True)
    )
    assert whole["long"] == pytest.approx(OPTICAL + 2.4)
    assert whole["short"] == pytest.approx(whole["long"] + OPTICAL + 0.024)
    assert leased["short"] < 1.0
    # One more reconfiguration each, and the time of the short one with its setup and release.
    assert leased["long"] == pytest.approx(OPTICAL + 2.4 + OPTICAL + 0.024 + OPTICAL, abs=1e-6)


def test_sender_that_may_not_pause_extends_its_lease() -> None:
    """With 1 Gbit/s and heavy background, a lease of twice the estimate would be too short."""
    network = replace(small_network(6, 4, 400.0), server_rate=GIGABIT)
    settings = replace(PAPER, lease_minimum=0.1, lease_factor=1.0)
    times, method = taken(one, replace(CONTROL, settings=settings), network=network, each_way=2)
    assert times["m"] > 5 * D / C
    assert not method.fell_back


def test_receivers_may_be_served_in_parts() -> None:
    """The port of rack 4 is busy for long; the other racks do not wait for it."""

    def groups(network):
        return group(network, (4, 5), 3_000_000_000, "long"), group(network, (0, 1, 2, 3, 4), name="wide")

    control = replace(CONTROL, settings=replace(PAPER, policy="srpt-lease"))
    ends, method = one_after_another(groups, control, RequestTerms(may_split=True))
    request = method.driver.core.request(("default", "wide"))
    served = [host for part in request.parts for host in part.receivers]
    assert len(request.parts) == 2 and len(served) == len(set(served)) == 19
    assert ends["wide"] == pytest.approx(ends["long"] + OPTICAL + D / C)


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_serves_all_multicasts(policy: str) -> None:
    def groups(network):
        return [
            replace(group(network, racks, size, name=str(n)), tenant=f"t{n % 2}", deadline=3.0)
            for n, (racks, size) in enumerate(
                [((0, 1, 2), 10**9), ((2, 3, 4), 10**8), ((5, 4, 0), 10**9), ((1, 3), 10**8), ((3, 1, 5, 0), 10**7)]
            )
        ]

    control = replace(CONTROL, settings=replace(PAPER, policy=policy))
    times, method = taken(groups, control, RequestTerms(may_pause=True, may_split=True))
    assert len(times) == 5 and not method.fell_back


def test_blast_depends_on_the_allocator_of_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    """With an allocator that offers nothing, no multicast is granted."""
    monkeypatch.setattr("algorithms.scheduling.scheduler.offer", lambda *about: [])
    times, method = taken(one, terms=RequestTerms(pending_timeout=1.5))
    assert times["m"] == pytest.approx(1.5 + 11 * D / C)
    assert method.fell_back == 1
    with pytest.raises(StalledError):
        taken(one)


def test_group_without_a_possible_tree_falls_back_at_once() -> None:
    times, method = taken(one, replace(CONTROL, optics=OpticalResources(0)))
    assert (times["m"], method.fell_back) == (pytest.approx(11 * D / C), 1)


def test_lease_expiry_before_the_finish_report_does_no_harm() -> None:
    """The lease expires while the finish report is in transit; all receivers have the data."""
    settings = replace(PAPER, lease_minimum=0.01, lease_factor=1.0)
    where = world(small_network(6, 4))
    control = replace(CONTROL, settings=settings, delays=Delays(OPTICAL, FORWARDING, rpc=0.05))
    method = blast(where, control, RequestTerms(may_pause=True))
    ended: list[float] = []
    clock = where.simulation.clock
    method.send(group(where.network, (0, 1, 2)), lambda: ended.append(clock.now))
    clock.at(5.0, lambda: ended.append(clock.now))
    where.simulation.run(lambda: len(ended) == 2)
    assert ended[0] == pytest.approx(0.05 + OPTICAL + D / C) and not method.fell_back
    assert method.driver.core.request(("default", "m")).state.value == "expired"


def test_rejected_duplicate_name_is_sent_all_the_same() -> None:
    """The core rejects a second multicast with the same name and other content; the sender falls back."""
    where = world(small_network(6, 4))
    method = blast(where)
    ended: list[str] = []
    method.send(group(where.network, (0, 1, 2)), lambda: ended.append("first"))
    method.send(Multicast("other", 0, (1,), 8), lambda: ended.append("second"))
    where.simulation.run(lambda: len(ended) == 2)
    assert sorted(ended) == ["first", "second"]

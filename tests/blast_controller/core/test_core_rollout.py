"""A reservation's steps on devices against a list of what was asked and answered; tables of rollout and change."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_controller.core.light.layout import Layout, Step
from blast_controller.core.model.errors import ImpossibleTransitionError
from blast_controller.core.model.fabric import CrossConnect
from blast_controller.core.model.identifiers import Device, SwitchId
from blast_controller.core.rollout import change, rollout
from blast_controller.core.rollout.change import Change, ChangePhase
from blast_controller.core.rollout.rollout import DarkLeaves, Rollout, RolloutTarget, TargetEvent, TargetState
from tests.support.core import multicast

DEVICES = [SwitchId("ocs1"), SwitchId("ocs2"), SwitchId("ocs3")]


def step_for(devices: list[Device]) -> Step:
    return Step((), tuple(CrossConnect(SwitchId(str(device)), 1, 10 + n) for n, device in enumerate(devices)), {}, {})


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["begin", "give", "give nothing", "confirm", "fail", "dark", "late answer"]),
        st.sampled_from(DEVICES),
        st.lists(st.sampled_from(DEVICES), unique=True),
    ),
    max_size=40,
)


@given(ACTIONS)
def test_every_device_stands_where_its_latest_answer_has_brought_it(actions) -> None:
    made = Rollout()
    stands: dict[Device, str] = {}
    numbers: dict[Device, int] = {}
    order: list[Device] = []
    for what, device, devices in actions:
        match what:
            case "begin":
                number = made.begin(step_for(devices))
                stands, numbers, order = dict.fromkeys(devices, "asked"), dict.fromkeys(devices, number), []
            case "give":
                numbers[device] = made.give(device, step_for([device]))
                stands[device] = "asked"
            case "give nothing" if stands.get(device) == "failed":
                numbers[device] = made.give(device, step_for([]))
                stands[device] = "done"
            case "confirm" | "fail" | "dark":
                target = made.asked(device, numbers.get(device, 0))
                assert (target is not None) == (stands.get(device) == "asked")
                if target is None:
                    continue
                stands[device] = "failed" if what == "fail" else "done"
                if what == "confirm":
                    made.confirmed(target, 0.1)
                elif what == "dark":
                    made.confirmed_dark(target, {10})
                else:
                    made.failed(target, f"{device} denied")
                    order = [one for one in order if one != device] + [device]
            case "late answer":
                assert made.asked(device, numbers.get(device, 0) - 1) is None
        assert {target.device: target.state.value for target in made.targets.values()} == stands
        assert made.over == ("asked" not in stands.values())
        assert made.at_work == any(state != "done" for state in stands.values())
        failed = [one for one in order if stands.get(one) == "failed"]
        assert [target.device for target in made.failures] == failed
        assert made.failure == "; ".join(f"{one} denied" for one in failed)
        assert made.refusals(failed[:1]) == [f"{one} denied" for one in failed[1:]]
        assert len(set(numbers.values())) >= len({n for n in numbers.values() if n != made.begun})


def test_a_number_is_never_given_twice() -> None:
    made = Rollout(number=7)
    numbers = [made.begin(step_for(DEVICES)), made.give(DEVICES[0], step_for(DEVICES[:1])), made.begin(step_for([]))]
    assert numbers == [8, 9, 10]


@pytest.mark.parametrize(("state", "event"), list(product(TargetState, TargetEvent)))
def test_a_target_takes_what_is_in_the_table_and_nothing_else(state: TargetState, event: TargetEvent) -> None:
    target = RolloutTarget(DEVICES[0], 1, step_for([]), state)
    if (state, event) in rollout.TRANSITIONS:
        target.take(event)
        assert target.state is rollout.TRANSITIONS[state, event]
    else:
        with pytest.raises(ImpossibleTransitionError, match=f"a target in state {state.value} has no transition"):
            target.take(event)


@pytest.mark.parametrize("phase", ChangePhase)
def test_a_change_is_decided_once(phase: ChangePhase) -> None:
    for what in (Change.added, lambda made: Change.missed(made, "no light")):
        made = Change(Layout((), None, {}), multicast("k", "r1h1", ["r2h1"]), 0.0, phase)
        if phase is ChangePhase.ADDING:
            what(made)
            assert made.phase in change.TRANSITIONS.values() and (made.refusal is None) == (what is Change.added)
        else:
            with pytest.raises(ImpossibleTransitionError, match=f"a change in state {phase.value} has no transition"):
                what(made)


def test_light_that_was_seen_since_takes_an_alarm_back_but_not_what_a_switch_has_just_said() -> None:
    dark = DarkLeaves({1}, {1, 2})
    dark.connected([1])
    assert dark.take() == {1, 2} and not dark
    dark = DarkLeaves(set(), {3})
    dark.connected([3])
    assert not dark

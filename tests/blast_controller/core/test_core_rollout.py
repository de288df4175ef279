"""The rollout of steps to devices against a log of requests and answers; the tables of rollout and change."""

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
from tests.support.controller.core import multicast

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
def test_target_states_follow_the_latest_answers(actions) -> None:
    made = Rollout()
    states: dict[Device, str] = {}
    numbers: dict[Device, int] = {}
    order: list[Device] = []
    for action, device, devices in actions:
        match action:
            case "begin":
                number = made.begin(step_for(devices))
                states, numbers, order = dict.fromkeys(devices, "asked"), dict.fromkeys(devices, number), []
            case "give":
                numbers[device] = made.give(device, step_for([device]))
                states[device] = "asked"
            case "give nothing" if states.get(device) == "failed":
                numbers[device] = made.give(device, step_for([]))
                states[device] = "done"
            case "confirm" | "fail" | "dark":
                target = made.asked(device, numbers.get(device, 0))
                assert (target is not None) == (states.get(device) == "asked")
                if target is None:
                    continue
                states[device] = "failed" if action == "fail" else "done"
                if action == "confirm":
                    made.confirmed(target, 0.1)
                elif action == "dark":
                    made.confirmed_dark(target, {10})
                else:
                    made.failed(target, f"{device} denied")
                    order = [one for one in order if one != device] + [device]
            case "late answer":
                assert made.asked(device, numbers.get(device, 0) - 1) is None
        assert {target.device: target.state.value for target in made.targets.values()} == states
        assert made.over == ("asked" not in states.values())
        assert made.at_work == any(state != "done" for state in states.values())
        failed = [one for one in order if states.get(one) == "failed"]
        assert [target.device for target in made.failures] == failed
        assert made.failure == "; ".join(f"{one} denied" for one in failed)
        assert made.refusals(failed[:1]) == [f"{one} denied" for one in failed[1:]]
        assert len(set(numbers.values())) >= len({n for n in numbers.values() if n != made.begun})


def test_step_numbers_are_unique() -> None:
    made = Rollout(number=7)
    numbers = [made.begin(step_for(DEVICES)), made.give(DEVICES[0], step_for(DEVICES[:1])), made.begin(step_for([]))]
    assert numbers == [8, 9, 10]


@pytest.mark.parametrize(("state", "event"), list(product(TargetState, TargetEvent)))
def test_target_accepts_transitions_of_the_table_only(state: TargetState, event: TargetEvent) -> None:
    target = RolloutTarget(DEVICES[0], 1, step_for([]), state)
    if (state, event) in rollout.TRANSITIONS:
        target.take(event)
        assert target.state is rollout.TRANSITIONS[state, event]
    else:
        with pytest.raises(ImpossibleTransitionError, match=f"a target in state {state.value} has no transition"):
            target.take(event)


@pytest.mark.parametrize("phase", ChangePhase)
def test_change_is_decided_once(phase: ChangePhase) -> None:
    for decide in (Change.added, lambda made: Change.missed(made, "no light")):
        made = Change(Layout((), None, {}), multicast("k", "r1h1", ["r2h1"]), 0.0, phase)
        if phase is ChangePhase.ADDING:
            decide(made)
            assert made.phase in change.TRANSITIONS.values() and (made.refusal is None) == (decide is Change.added)
        else:
            with pytest.raises(ImpossibleTransitionError, match=f"a change in state {phase.value} has no transition"):
                decide(made)


def test_seen_light_clears_an_alarm_but_not_a_switch_report() -> None:
    dark = DarkLeaves({1}, {1, 2})
    dark.connected([1])
    assert dark.take() == {1, 2} and not dark
    dark = DarkLeaves(set(), {3})
    dark.connected([3])
    assert not dark

"""`blast plan`: instance files, allocations against brute force, reasons, and the command."""

from __future__ import annotations

import io
import itertools
import json
import random
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from blast_base.extras import how_to_install
from blast_sim.allocation.allocate import ONE_SHOT, AllocationMethod, plan
from blast_sim.allocation.instance import Instance, InstanceRequest
from blast_sim.allocation.instance_file import parse_instance
from blast_sim.allocation.plan_command import as_text
from blast_sim.base.wrong_input import InputError
from tests.support.simulators.results import results_of
from tests.support.simulators.sim_output import run


def document(**changes):
    base = {
        "racks": 8,
        "ports_per_rack": 1,
        "splitters": [{"fan_out": 4, "count": 2}],
        "requests": [
            {"id": "a", "sender": 0, "receivers": [1, 2, 3], "weight": 900},
            {"id": "b", "sender": 3, "receivers": [4], "weight": 100},
        ],
    }
    return {key: value for key, value in {**base, **changes}.items() if value is not ...}


def with_request(**changes):
    request = {"id": "x", "sender": 0, "receivers": [1, 2], "weight": 5, **changes}
    return document(requests=[{key: value for key, value in request.items() if value is not ...}])


def parsed(value):
    return parse_instance(json.dumps(value).encode())


# --------------------------------------------------------------------------------------------------- the file


def test_instance_file_is_parsed():
    instance = parsed(document(ports_per_rack=[1, 2, 1, 1, 1, 1, 1, 0], max_splitters_per_tree=3, directional=True))
    assert instance.ports == (1, 2, 1, 1, 1, 1, 1, 0)
    assert dict(instance.pool) == {4: 2}
    assert instance.requests[0] == InstanceRequest("a", 0, (1, 2, 3), 900.0)
    assert (instance.max_splitters_per_tree, instance.directional, instance.loop_leaf) == (3, True, False)
    assert parsed(document(max_splitters_per_tree=None)).max_splitters_per_tree is None


WRONG = {
    "weight missing": (with_request(weight=...), "request 'x' has no 'weight'"),
    "id missing": (with_request(id=...), "request number 1 has no 'id'"),
    "id no text": (with_request(id=7), "request 7: id must be a text"),
    "receivers missing": (with_request(receivers=...), "request 'x' has no 'receivers'"),
    "receivers no list": (with_request(receivers=3), "request 'x': receivers must be a list, not 3"),
    "sender out of range": (with_request(sender=8), "request 'x': sender must be a whole number from 0 to 7, not 8"),
    "sender receives": (with_request(receivers=[1, 0]), "request 'x': its sender, rack 0, is among its receivers"),
    "receiver twice": (with_request(receivers=[1, 1]), "request 'x': rack 1 is there twice"),
    "weight zero": (with_request(weight=0), "request 'x': weight must be a number"),
    "weight a text": (with_request(weight="5"), "request 'x': weight must be a number"),
    "unknown key": (
        with_request(recievers=[1]),
        "request 'x' has an unknown key 'recievers': did you mean 'receivers'",
    ),
    "ids repeated": (document(requests=document()["requests"] * 2), "request 'a': this id is there twice"),
    "no splitters": (document(splitters=[]), "request 'a' needs a splitter, but splitters lists none"),
    "ways twice": (document(splitters=[{"fan_out": 4, "count": 1}] * 2), "entry 2 of splitters: 1:4 is there twice"),
    "one way": (document(splitters=[{"fan_out": 1, "count": 1}]), "entry 1 of splitters: ways must be .* from 2"),
    "count missing": (document(splitters=[{"fan_out": 4}]), "entry 1 of splitters has no 'count'"),
    "no racks": (document(racks=0), "racks must be a whole number from 1"),
    "ports too few": (document(ports_per_rack=[1, 1]), "ports_per_rack has 2 entries for 8 racks"),
    "requests missing": (document(requests=...), "the instance has no 'requests'"),
    "top unknown": (document(loop_leef=True), "unknown key 'loop_leef': did you mean 'loop_leaf'"),
    "directional no truth": (document(directional=1), "directional must be true or false, not 1"),
    "both options": (document(directional=True, loop_leaf=True), "cannot both be true"),
    "limit negative": (document(max_splitters_per_tree=-1), "max_splitters_per_tree must be"),
}


@pytest.mark.parametrize(("value", "sentence"), WRONG.values(), ids=WRONG)
def test_invalid_instance_is_rejected_in_one_sentence(value, sentence):
    with pytest.raises(InputError, match=sentence) as refused:
        parsed(value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "this is no JSON"),
        (b"[1]", "the instance must be a table"),
        (b"[" * 100_000, "nested too deep"),
        (b'{"racks": NaN}', "NaN is no finite number"),
        (json.dumps(with_request()).replace('"weight": 5', '"weight": 1e999').encode(), "request 'x': weight"),
        (
            json.dumps(with_request()).replace('"weight": 5', '"weight": 5, "weight": 6').encode(),
            "request 'x': the key",
        ),
    ],
)
def test_data_other_than_an_instance_is_rejected(data, sentence):
    with pytest.raises(InputError, match=sentence):
        parse_instance(data)


# ------------------------------------------------------------------------------------------------ allocations


def heaviest(instance: Instance) -> float:
    """Return the highest weight of all sets of requests and all assignments of splitters."""
    best = 0.0
    for size in range(len(instance.requests) + 1):
        for chosen in itertools.combinations(instance.requests, size):
            weight = sum(request.weight for request in chosen)
            if weight > best and ports_suffice(instance, chosen) and splitters_suffice(instance, chosen):
                best = weight
    return best


def ports_suffice(instance: Instance, chosen) -> bool:
    if instance.directional:
        sending = Counter(request.sender for request in chosen)
        receiving = Counter(rack for request in chosen for rack in request.receivers)
        return all(sending[v] <= b and receiving[v] <= b for v, b in enumerate(instance.ports))
    used = Counter(rack for request in chosen for rack in request.racks)
    return all(used[v] <= b for v, b in enumerate(instance.ports))


def splitters_suffice(instance: Instance, chosen) -> bool:
    leaves = [len(request.receivers) + (instance.loop_leaf and len(request.receivers) > 1) for request in chosen]
    pieces = [fan_out for fan_out, count in instance.pool.items() for _ in range(count)]

    def dealt(number: int, left: tuple[int, ...]) -> bool:
        if number == len(leaves):
            return True
        limit = (
            len(left) if instance.max_splitters_per_tree is None else min(len(left), instance.max_splitters_per_tree)
        )
        tried = set()
        for size in range(limit + 1):
            for taken in itertools.combinations(left, size):
                if taken in tried or 1 + sum(fan_out - 1 for fan_out in taken) < leaves[number]:
                    continue
                tried.add(taken)
                rest = list(left)
                for fan_out in taken:
                    rest.remove(fan_out)
                if dealt(number + 1, tuple(rest)):
                    return True
        return False

    return dealt(0, tuple(sorted(pieces)))


def drawn(rng: random.Random) -> Instance:
    racks = rng.randint(4, 9)
    requests = []
    for number in range(rng.randint(1, 7)):
        sender, *receivers = rng.sample(range(racks), rng.randint(2, min(racks, 7)))
        weight = rng.choice([1.0, 5.0, rng.randint(1, 400) / 4, 1e7 + rng.randint(0, 3)])
        requests.append(InstanceRequest(f"q{number}", sender, tuple(receivers), weight))
    directional = rng.random() < 0.4
    return Instance(
        tuple(rng.choice([1, 1, 1, 2]) for _ in range(racks)),
        rng.choice([{4: 1}, {4: 3}, {2: 2, 4: 1}, {4: 1, 8: 1}, {2: 1, 3: 1, 4: 1}]),
        tuple(requests),
        rng.choice([None, None, 1, 2]),
        directional,
        not directional and rng.random() < 0.3,
    )


def check(instance: Instance, method: AllocationMethod) -> float:
    """Check that a plan is consistent, and return its weight."""
    found = plan(instance, method)
    by_name = {request.name: request for request in instance.requests}
    served = [by_name[name] for name, _ in found.selected]
    assert sorted([r.name for r in served] + [r.name for r in found.refused]) == sorted(by_name)
    assert ports_suffice(instance, served)
    assert Counter(fan_out for _, pieces in found.selected for fan_out in pieces) <= Counter(instance.pool)
    for name, pieces in found.selected:
        assert 1 + sum(fan_out - 1 for fan_out in pieces) >= instance.leaves(by_name[name])
        assert instance.max_splitters_per_tree is None or len(pieces) <= instance.max_splitters_per_tree
    assert found.allocation.value == pytest.approx(sum(request.weight for request in served))
    assert found.allocation.bound is not None
    assert found.allocation.bound >= found.allocation.value
    assert all(refusal.reason for refusal in found.refused)
    return found.allocation.value


@pytest.mark.parametrize("seed", range(25))
def test_plans_agree_with_brute_force(seed):
    instance = drawn(random.Random(f"plan/{seed}"))
    best = heaviest(instance)
    assert check(instance, AllocationMethod(exact=10.0)) == best
    assert plan(instance, AllocationMethod(exact=10.0)).allocation.certified
    for method in (AllocationMethod(optimize=0.02), *(AllocationMethod(policy) for policy in ONE_SHOT)):
        assert check(instance, method) <= best
    found = plan(instance, AllocationMethod(optimize=0.02))
    assert not found.allocation.certified or found.allocation.value == best


@pytest.mark.parametrize("method", [AllocationMethod(), AllocationMethod(optimize=0.02), AllocationMethod(exact=10.0)])
def test_plan_is_certified_only_if_its_weight_equals_the_bound(method):
    """The weights of the two requests differ by one in ten million."""
    big, rival = InstanceRequest("big", 0, (1, 2), 10_000_001.0), InstanceRequest("rival", 0, (3,), 10_000_000.0)
    found = plan(Instance((1,) * 8, {4: 2}, (big, rival)), method)
    served = {"rival"} if method == AllocationMethod() else {"big"}
    assert {name for name, _ in found.selected} == served
    assert found.allocation.certified == (served == {"big"})
    assert found.allocation.bound == 10_000_001.0
    assert f"gap {1e-5:.3g} %" in as_text(Instance((1,) * 8, {4: 2}, (big, rival)), found) or found.allocation.certified


WIDE, SHORT = InstanceRequest("wide", 0, (1, 2, 3), 3000.0), InstanceRequest("short", 3, (4,), 10.0)
RIVALS = Instance((1,) * 6, {4: 1}, (WIDE, SHORT))
"""A wide group that has more volume per rack, and a short unicast that needs one of its racks."""


@pytest.mark.parametrize(("policy", "served"), [("paper", "wide"), ("smith", "short"), ("srpt-lease", "short")])
def test_paper_policy_prefers_volume_and_smith_the_shortest(policy, served):
    assert [name for name, _ in plan(RIVALS, AllocationMethod(policy)).selected] == [served]


def test_smith_divides_the_volume_by_the_receivers():
    # 1 x sqrt(2) against 2 / 4 x sqrt(5).
    pair, five = InstanceRequest("pair", 0, (1,), 1.0), InstanceRequest("five", 1, (2, 3, 4, 5), 2.0)
    found = plan(Instance((1,) * 6, {4: 1}, (pair, five)), AllocationMethod("smith"))
    assert [name for name, _ in found.selected] == ["five"]


def test_smith_optimizes_its_own_score_and_reports_volume():
    found = plan(RIVALS, AllocationMethod("smith", optimize=0.02))
    assert [name for name, _ in found.selected] == ["short"]
    found = found.allocation
    assert (found.value, found.bound, found.certified) == (10.0, 3000.0, False)
    assert found.gap == pytest.approx(0.99666, abs=1e-4)


def reasons(instance: Instance) -> dict[str, str]:
    return {refusal.name: refusal.reason for refusal in plan(instance, AllocationMethod(exact=5.0)).refused}


@pytest.mark.parametrize(
    "method", [AllocationMethod("paper"), AllocationMethod("paper", exact=10.0)], ids=["greedy", "exact"]
)
def test_names_that_a_solver_would_merge_stay_distinct(method):
    """A model file allows few characters, so that a modeling library replaces others."""
    names = ["a b", "a_b", "a-b", "A_b", "a_b ", "ä_b", "x1", "x[1]"]
    requests = [{"id": name, "sender": n, "receivers": [n + 8], "weight": n + 1} for n, name in enumerate(names)]
    found = plan(parsed(document(racks=16, requests=requests)), method)
    assert {name for name, _ in found.selected} == set(names) and found.allocation.certified


def test_refusal_names_the_missing_resource():
    big = InstanceRequest("big", 0, tuple(range(1, 8)), 1.0)
    instance = Instance((1,) * 9 + (0,), {4: 1}, (big, InstanceRequest("lost", 8, (9,), 1.0)))
    assert reasons(instance) == {
        "big": "never possible: a tree of 7 leaves is needed, and all splitters together make one of 4",
        "lost": "never possible: rack 9 has no optical port",
    }
    first, second = InstanceRequest("first", 0, (1, 2), 2.0), InstanceRequest("second", 3, (4, 5), 1.0)
    assert reasons(Instance((1,) * 6, {4: 1}, (first, second))) == {
        "second": "the splitters left (none) do not make a tree of 2 leaves"
    }
    clash = InstanceRequest("clash", 2, (5,), 1.0)
    assert reasons(Instance((1,) * 6, {4: 2}, (first, clash))) == {"clash": "rack 2 has no port left"}
    second, back = InstanceRequest("second", 0, (2,), 1.0), InstanceRequest("back", 1, (0,), 1.0)
    pair = InstanceRequest("first", 0, (1,), 2.0)
    assert reasons(Instance((1,) * 3, {4: 1}, (pair, second, back), directional=True)) == {
        "second": "rack 0 (sending) has no port left"
    }
    limited = Instance((1,) * 8, {4: 9}, (big,), max_splitters_per_tree=1)
    assert "the largest 1 splitters make one of 4" in reasons(limited)["big"]


# -------------------------------------------------------------------------------------------------- the command


@pytest.fixture
def blast(capsys):
    return partial(run, capsys)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "instance.json"
    path.write_text(json.dumps(document()))
    return path


@pytest.mark.parametrize("how", [(), ("--optimize", "20"), ("--exact",), ("--policy", "paper")])
def test_command_prints_the_plan_as_json(blast, file, how):
    status, out, err = blast("plan", file, "--json", *how)
    answer = results_of(out)
    assert (status, err) == (0, "")
    assert list(answer) == ["selected", "refused", "weight", "bound", "gap", "optimal", "seconds"]
    assert answer["selected"] == [{"id": "a", "splitters": {"4": 1}}]
    assert answer["refused"] == [{"id": "b", "reason": "rack 3 has no port left"}]
    assert (answer["weight"], answer["bound"], answer["gap"], answer["optimal"]) == (900.0, 900.0, 0.0, True)
    assert 0 <= answer["seconds"] < 60


def test_command_prints_the_plan_as_a_table(blast, file):
    status, out, _ = blast("plan", file)
    assert status == 0
    assert "served: 1 x 1:4" in out
    assert "1 of 2 served, weight 900, proven optimal" in out


def test_command_reads_standard_input(blast, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(document()).encode())))
    assert json.loads(blast("plan", "-", "--json")[1])["weight"] == 900.0


def test_empty_instance_is_solved_optimally(blast, tmp_path):
    path = tmp_path / "empty.json"
    path.write_text(json.dumps(document(requests=[])))
    for how in ((), ("--optimize", "5"), ("--exact",)):
        answer = json.loads(blast("plan", path, "--json", *how)[1])
        assert (answer["selected"], answer["weight"], answer["gap"], answer["optimal"]) == ([], 0, 0.0, True)


def test_invalid_input_is_status_2_and_one_line(blast, tmp_path):
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps(with_request(sender=99)))
    status, out, err = blast("plan", path)
    assert (status, out) == (2, "")
    assert err == "blast: request 'x': sender must be a whole number from 0 to 7, not 99\n"
    status, out, err = blast("plan", tmp_path / "none.json")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "No such file" in err


@pytest.mark.parametrize(
    "options", [("--optimize", "0"), ("--optimize", "nan"), ("--policy", "edf"), ("--time-limit", "inf")]
)
def test_invalid_options_are_status_2_and_one_line(blast, file, options):
    status, out, err = blast("plan", file, *options)
    assert (status, out, err.count("\n")) == (2, "", 1)


def test_commands_load_without_numerical_libraries():
    code = "import sys, blast_sim.command; print(sorted({'numpy','highspy','pulp','matplotlib'} & set(sys.modules)))"
    root = Path(__file__).parents[3]
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    assert found.stdout.strip() == "[]"


def test_command_names_a_missing_library(blast, file, monkeypatch):
    from blast_sim.base import options as ours

    monkeypatch.setattr(ours, "LIBRARIES", ("no_such_library",))
    status, out, err = blast("plan", file)
    assert (status, out) == (1, "")
    assert err == f"blast: no_such_library not installed: {how_to_install('sim')}\n"

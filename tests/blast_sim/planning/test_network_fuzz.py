"""Fuzz tests of the readers of network files, instance files and price tables: a valid object, or one InputError."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence

import pytest

from algorithms.balanced.bottleneck import bottleneck
from blast_sim.allocation.instance_file import parse_instance
from blast_sim.base.wrong_input import InputError
from blast_sim.planning.prices import example_text, parse_prices
from blast_sim.trees.network_file import parse_network
from tests.support.fuzzing import Decoder, fuzz, inputs
from tests.support.simulators.balanced import check

PIECES = [
    "NaN", "Infinity", "-Infinity", "1e999", "-1", "0", "true", "null", "{}", "[]", '""', "9" * 400, "0.5", "1e300",
    '"id"', '"weight": 3,', '"loop_leaf": true,', '"racks"', "[[[[", "]", "}", ",", "\\u0000", "\ud7ff", "100001",
]  # fmt: skip


def mutation(rng: random.Random, text: str, pieces: Sequence[str] = PIECES) -> str:
    """Return a file with a few places changed."""
    for _ in range(rng.choice([1, 1, 2, 4])):
        at = rng.randrange(len(text) + 1)
        to = min(len(text), at + rng.choice([0, 1, 1, 2, 8]))
        text = text[:at] + rng.choice([rng.choice(pieces), "", text[at:to] * 2]) + text[to:]
    return text[:20_000]


def refused(error: InputError) -> str:
    assert str(error).strip()
    is_syntax = "no JSON" in str(error) or "not TOML" in str(error)
    assert is_syntax or "\n" not in str(error)
    return "refused: syntax" if is_syntax else "refused: a sentence on a place"


NETWORKS = [
    json.dumps(
        {
            "hosts": ["a", "b", "c"],
            "root": "a",
            "receivers": "all",
            "links": [["a", "b", 10], ["a", "c", 8.5], ["b", "c", 4], ["c", "b", 0]],
            "out": {"a": 10, "b": 10},
            "in": {"c": 1e9},
        }
    ),
    json.dumps({"hosts": ["é", "b"], "root": "é", "receivers": ["b"], "links": [["é", "b", 1]]}),
]


def structured_network(rng: random.Random) -> str:
    """Return JSON in the right form, with values that are often wrong."""
    hosts = [f"h{number}" for number in range(rng.randrange(1, 6))]
    names = [*hosts, "x"] if rng.random() < 0.1 else hosts
    rates = [0, 1, 2.5, 7, 1e6] + ([-1, None, "1", True, 1e300, 1e-30, []] if rng.random() < 0.2 else [])
    made = {
        "hosts": hosts,
        "root": rng.choice(names),
        "receivers": rng.choice(["all", rng.sample(names, rng.randrange(len(names) + 1))]),
        "links": [
            [one, other, rng.choice(rates)] for one in names for other in names if one != other and rng.random() < 0.8
        ],
        "out": {name: rng.choice(rates) for name in names if rng.random() < 0.3},
        "in": {name: rng.choice(rates) for name in names if rng.random() < 0.3},
    }
    for key in list(made):
        if rng.random() < 0.03:
            made[key] = rng.choice([None, 3, [], {}, "all", [[]], {"h0": {}}])
        elif rng.random() < 0.02:
            del made[key]
    return json.dumps(made)


def check_network(_: random.Random, text: str) -> str:
    """Check that the text yields a network with a tree to every receiver, or one line."""
    try:
        network = parse_network(text.encode(errors="surrogatepass"))
    except InputError as error:
        return refused(error)
    check(network, bottleneck(network))
    return "a network"


NETWORK = Decoder(
    "network",
    NETWORKS,
    mutation,
    structured_network,
    check_network,
    ("/network_file.py", "/named_network.py", "/wrong_input.py"),
)


INSTANCES = [
    json.dumps(
        {
            "racks": 8,
            "ports_per_rack": 1,
            "splitters": [{"fan_out": 4, "count": 2}],
            "requests": [
                {"id": "a", "sender": 0, "receivers": [1, 2, 3], "weight": 900},
                {"id": "b", "sender": 3, "receivers": [4], "weight": 1.5},
            ],
        }
    ),
    json.dumps(
        {
            "racks": 3,
            "ports_per_rack": [1, 2, 0],
            "splitters": [{"fan_out": 4, "count": 1}, {"fan_out": 16, "count": 0}],
            "requests": [{"id": "é", "sender": 2, "receivers": [0], "weight": 1e-3}],
            "max_splitters_per_tree": None,
            "directional": True,
            "loop_leaf": False,
        }
    ),
    json.dumps({"racks": 2, "ports_per_rack": 1, "splitters": [], "requests": [], "max_splitters_per_tree": 2}),
]


def structured_instance(rng: random.Random) -> str:
    """Return an instance in the right form, with values that are often wrong."""

    def value(depth: int = 0):
        simple = [0, 1, -1, 3, 7, 8, 1.5, 1e9, None, True, "a", "", [], {}]
        if depth > 2 or rng.random() < 0.7:
            return rng.choice(simple)
        return rng.choice([[value(depth + 1)], {"id": value(depth + 1)}, {"fan_out": 4, "count": value(depth + 1)}])

    def request(number: int):
        made = {"id": f"r{number}", "sender": rng.randrange(8), "receivers": rng.sample(range(8), 2), "weight": 2}
        for key in [*made, "extra"]:
            if rng.random() < 0.05:
                made[key] = value()
        return made

    made = json.loads(rng.choice(INSTANCES[:2])) | {"racks": 8, "ports_per_rack": 1}
    made["requests"] = [request(number) for number in range(rng.randrange(4))]
    for key in [*made, "extra"]:
        if rng.random() < 0.08:
            made[key] = value()
        elif rng.random() < 0.03:
            made.pop(key, None)
    return json.dumps(made)


def check_instance(_: random.Random, text: str) -> str:
    """Check that the text yields an instance that the matching accepts, or one line."""
    try:
        instance = parse_instance(text.encode(errors="surrogatepass"))
    except InputError as error:
        return refused(error)
    assert len(instance.ports) >= 1
    assert len({request.name for request in instance.requests}) == len(instance.requests)
    for request in instance.requests:
        assert len(set(request.racks)) == len(request.racks) > 1
        assert all(0 <= rack < len(instance.ports) for rack in request.racks)
        assert 0 < request.weight < float("inf")
    feasibility = instance.feasibility()
    for group in instance.groups():
        feasibility.fit(group)
    return "an instance"


def check_prices(_: random.Random, text: str) -> str:
    """Check that the text yields a complete price table, or one line."""
    try:
        prices = parse_prices(text)
    except InputError as error:
        return refused(error)
    assert prices.per_switch_port >= 0
    assert all(fan_out >= 2 and offer.item.price >= 0 for fan_out, offer in prices.splitters.items())
    return "a price table"


def lines_shuffled(rng: random.Random) -> str:
    """Return lines of the example, some left out, some twice."""
    lines = example_text().splitlines()
    return "\n".join(line for line in lines for _ in range(rng.choice([0] + [1] * 40 + [2])))


OURS = ("/instance_file.py", "/prices.py", "/wrong_input.py")
FILES = {
    "a network": NETWORK,
    "an instance": Decoder("instance", INSTANCES, mutation, structured_instance, check_instance, OURS),
    "a price table": Decoder("prices", [example_text()], mutation, lines_shuffled, check_prices, OURS),
}


@pytest.mark.parametrize(("kind", "usual"), [("a network", 3_000), ("an instance", 6_000), ("a price table", 1_500)])
def test_readers_return_a_valid_object_or_one_sentence(kind, usual):
    run = fuzz(FILES[kind], inputs(usual))
    assert min(run.outcomes[name] for name in (kind, "refused: a sentence on a place")) > run.inputs // 100
    assert run.mutated * 2 == run.inputs

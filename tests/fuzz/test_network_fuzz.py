"""The reader of network files: a network that can be planned for, or one WrongInput."""

from __future__ import annotations

import json
import random

import pytest

from algorithms.balanced.bottleneck import bottleneck
from blast_sim.base.wrong_input import WrongInput
from blast_sim.trees.network_file import parse_network
from tests.fuzz.test_instance_fuzz import mutation
from tests.support.balanced import check
from tests.support.fuzzing import Decoder, fuzz, inputs

SEEDS = 2
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


def structured(rng: random.Random) -> str:
    """JSON in the right form, with values that are often wrong."""
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
    """A network over which a tree reaches every receiver, or one line."""
    try:
        network = parse_network(text.encode(errors="surrogatepass"))
    except WrongInput as error:
        assert str(error).strip()
        assert "\n" not in str(error)
        return "refused: no JSON" if "no JSON" in str(error) else "refused: a sentence on a place"
    check(network, bottleneck(network))
    return "a network"


NETWORK = Decoder(
    "network",
    NETWORKS,
    mutation,
    structured,
    check_network,
    ("/network_file.py", "/named_network.py", "/wrong_input.py"),
)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_something_usable_or_one_sentence(seed):
    run = fuzz(NETWORK, inputs(8_000) // SEEDS, seed)
    assert min(run.outcomes[name] for name in ("a network", "refused: a sentence on a place")) > run.inputs // 100
    assert run.mutated * 2 == run.inputs

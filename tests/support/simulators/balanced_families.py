"""Networks for measurements and tests: families that a name and a seed reproduce bit for bit.

Host 0 is the root and all others receive. Every family draws from a `random.Random` named after it, in a fixed order:
rates row by row, then sending capacities of hosts, then receiving capacities.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from algorithms.balanced.network import Network

Rows = list[list[float]]


def uniform(size: int, seed: int, kappa: float, dead: float = 0.1, sigma: float = 0.8) -> Network:
    """Return log-normal rates, a share `dead` of them 0; access links `kappa` times the median path, less uneven."""
    rng = random.Random(f"bm/{size}/{seed}/{kappa}/{dead}/{sigma}")

    def rate() -> float:
        return 0.0 if rng.random() < dead else 10 * _log_normal(rng, sigma)

    rates = [[0.0 if i == j else rate() for j in range(size)] for i in range(size)]
    out, into = ([kappa * 10 * _log_normal(rng, 0.3) for _ in range(size)] for _ in range(2))
    return _network(rates, out, into)


def tight(size: int, seed: int) -> Network:
    """Return a problem with scarce and uneven sending capacities of the hosts."""
    rng = _rng(size, seed, "Otight")
    rates = [[0.0 if i == j else 10 * _log_normal(rng, 0.8) for j in range(size)] for i in range(size)]
    return _network(rates, [8 * _log_normal(rng, 0.8) for _ in range(size)], [1000.0] * size)


def sparse(size: int, seed: int) -> Network:
    """Return a ring with three more paths from every host."""
    rng = _rng(size, seed, "sparse")
    rates = [[0.0] * size for _ in range(size)]
    for i in range(size):
        rates[i][(i + 1) % size] = 1 + 4 * rng.random()
        others = [j for j in range(size) if j not in {i, (i + 1) % size}]
        for j in rng.sample(others, min(3, len(others))):
            rates[i][j] = 1 + 9 * rng.random()
    return _network(rates, [8 * _log_normal(rng, 0.4) for _ in range(size)], [1000.0] * size)


def clustered(size: int, seed: int) -> Network:
    """Return four clusters with wide paths inside and narrow ones across."""
    rng = _rng(size, seed, "clustered")

    def rate(one: int, other: int) -> float:
        return (100 if one % 4 == other % 4 else 5) * _log_normal(rng, 0.5)

    rates = [[0.0 if i == j else rate(i, j) for j in range(size)] for i in range(size)]
    return _network(rates, [40 * _log_normal(rng, 0.5) for _ in range(size)], [200.0] * size)


FAMILIES: dict[str, Callable[[int, int], Network]] = {
    "kappa=1": partial(uniform, kappa=1),
    "kappa=4": partial(uniform, kappa=4),
    "Otight": tight,
    "sparse": sparse,
    "clustered": clustered,
}


def to_half(network: Network, seed: int) -> Network:
    """Return the network with half of the hosts as receivers, drawn by the seed; the rest may relay."""
    size = network.size
    return replace(network, receivers=tuple(random.Random(seed).sample(range(1, size), size // 2)))


def _rng(size: int, seed: int, family: str) -> random.Random:
    return random.Random(f"bm2/{size}/{seed}/{family}")


def _log_normal(rng: random.Random, sigma: float) -> float:
    return math.exp(sigma * rng.gauss(0, 1))


def _network(rates: Rows, out: list[float], into: list[float]) -> Network:
    size = len(rates)
    hosts = tuple(f"h{number}" for number in range(size))
    return Network(hosts, 0, tuple(range(1, size)), np.array(rates), np.array(out), np.array(into))

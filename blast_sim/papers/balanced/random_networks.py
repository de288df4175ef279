"""The claims of the paper's section 4.1 on random networks that no claim selects: `testbeds.random_sites`.

Each network and each of its roots is a case. Each case plans with every method, FPFR and balanced trees with each order
of FPFR's searches (`random`: one draw a case).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from algorithms.balanced.balancing import balance
from algorithms.balanced.bottleneck import bottleneck
from algorithms.balanced.exact import exact
from algorithms.balanced.fpfr import ORDERS, fpfr
from algorithms.balanced.network import Floats
from algorithms.balanced.semi_flat import semi_flat
from algorithms.balanced.testbeds import SITES, random_sites
from algorithms.balanced.unshaped import unshaped
from blast_sim.base.report import Row
from blast_sim.base.worker_processes import computed

NETWORKS = 500
"""Enough for a stable distribution; each takes some milliseconds."""
QUICK_NETWORKS = 20

PAPERS_GAIN = 0.5
"""Balanced trees are up to this share above FPFR (sections 1 and 4.1)."""

EQUAL = 1e-6
"""Share of a rate within which two rates are equal: the tolerance of the linear programs."""

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
SHARES = (
    "balanced_not_below_others",
    "balanced_above_all",
    "balanced_above_all_at_every_root",
    "fpfr_below_single",
    "fpfr_below_single_at_some_root",
    "balanced_optimal",
)
"""Columns of `claim_shares` with a share of cases, or of networks if the name has `every` or `some` root."""


def random_rows(networks: int, processes: int, progress: Callable[[], object] = lambda: None) -> list[Row]:
    """Return a row for each case: the rate of each method in bit/s. Raises WorkerDiedError, SolverError, NoRatesError.

    Calls `progress` after each network. The rows do not depend on the number of processes.
    """
    found: dict[int, list[Row]] = {}
    for place, rows in computed(network_rows, range(networks), processes):
        found[place] = rows
        progress()
    return [row for place in range(networks) for row in found[place]]


def network_rows(seed: int) -> list[Row]:
    """Return a row for each root of the network of this seed."""
    return [_row(seed, root) for root in range(len(SITES))]


def _row(seed: int, root: int) -> Row:
    network = random_sites(seed, root)
    row: Row = {"network": seed, "root": root}
    row |= {"semi-flat": semi_flat(network).rate, "bottleneck": bottleneck(network).rate}
    for order in ORDERS:
        trees = fpfr(network, order, seed * len(SITES) + root).trees
        row[f"fpfr {order}"] = unshaped(network, trees).rate
        row[f"balanced {order}"] = balance(network, trees).rate
    return row | {"exact": exact(network).rate}


def gain(row: Row, order: str) -> float:
    """Return the share by which balanced trees are above FPFR with the same trees."""
    return float(row[f"balanced {order}"] / row[f"fpfr {order}"] - 1)


def claim_shares(rows: Sequence[Row]) -> list[Row]:
    """Return a row for each order: the shares of cases in which a claim holds, and the distribution of the gain."""
    return [_claim_shares(rows, order) for order in ORDERS]


def _claim_shares(rows: Sequence[Row], order: str) -> Row:
    balanced, fpfrs, best = (_column(rows, name) for name in (f"balanced {order}", f"fpfr {order}", "exact"))
    single = np.maximum(_column(rows, "semi-flat"), _column(rows, "bottleneck"))
    others = np.maximum(single, fpfrs)
    above, below = balanced > others * (1 + EQUAL), fpfrs < single * (1 - EQUAL)
    gains = balanced / fpfrs - 1
    row: Row = {"order": order, "networks": len(balanced), "cases": balanced.size}
    row |= {
        "balanced_not_below_others": float((balanced >= others * (1 - EQUAL)).mean()),
        "balanced_above_all": float(above.mean()),
        "balanced_above_all_at_every_root": float(above.all(axis=1).mean()),
        "fpfr_below_single": float(below.mean()),
        "fpfr_below_single_at_some_root": float(below.any(axis=1).mean()),
        "balanced_optimal": float((balanced >= best * (1 - EQUAL)).mean()),
        "fpfr_of_optimum_mean": float((fpfrs / best).mean()),
        "balanced_of_optimum_mean": float((balanced / best).mean()),
        "balanced_of_optimum_min": float((balanced / best).min()),
        "gain_above_50_percent": float((gains > PAPERS_GAIN).mean()),
    }
    return row | _quantiles("gain", gains.ravel()) | _quantiles("max_gain", gains.max(axis=1))


def _quantiles(name: str, values: Floats) -> Row:
    """Return the quantiles of the gain in all cases, or of the highest gain of each network."""
    return {f"{name}_q{100 * share:02.0f}": float(np.quantile(values, share)) for share in QUANTILES}


def _column(rows: Sequence[Row], name: str) -> Floats:
    """Return a column as a table: a network a row, a root a column."""
    return np.array([row[name] for row in rows]).reshape(-1, len({row["root"] for row in rows}))

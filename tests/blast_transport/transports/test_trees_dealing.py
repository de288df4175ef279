"""Distribution of blocks to trees in proportion to their rates, also with late calls and blocked trees."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from blast_transport.transports.trees.distribution import BlockDistributor

SIZE = 64_064
rates = st.lists(st.floats(1e6, 1e10), min_size=1, max_size=12)
lags = st.lists(st.floats(0.0, 0.5), min_size=1, max_size=20)


def dealt(
    dealer: BlockDistributor, number: int, open_: list[int], now: float, lag: list[float]
) -> tuple[list[int], float]:
    """Return the trees of the next `number` blocks, each requested at its earliest time plus a `lag`."""
    chosen: list[int] = []
    while len(chosen) < number:
        now += dealer.wait(open_, now) + lag[len(chosen) % len(lag)] + 1e-9
        while len(chosen) < number and (tree := dealer.deal(SIZE, open_, now)) is not None:
            chosen.append(tree)
    return chosen, now


@given(rates, lags)
def test_share_of_each_tree_deviates_by_less_than_one_block(rates: list[float], lag: list[float]) -> None:
    """At any time, also with a slow processor: the bound of Tijdeman's chairman assignment."""
    all_trees = list(range(len(rates)))
    chosen, _ = dealt(BlockDistributor(rates, 5.0), 150, all_trees, 5.0, lag)
    for number in range(1, len(chosen) + 1):
        for tree in all_trees:
            share = number * rates[tree] / sum(rates)
            assert abs(chosen[:number].count(tree) - share) < 1 + 1e-6


@given(rates)
def test_no_tree_gets_more_than_its_rate(rates: list[float]) -> None:
    all_trees = list(range(len(rates)))
    chosen, now = dealt(BlockDistributor(rates, 0.0), 200, all_trees, 0.0, [0.0])
    for tree in all_trees:
        assert (chosen.count(tree) - 1) * SIZE * 8 <= rates[tree] * now * (1 + 1e-6) + 1


@given(rates.filter(lambda rates: len(rates) > 1), st.data())
def test_blocked_tree_does_not_delay_others(rates: list[float], data: st.DataObject) -> None:
    """The others share the blocks at their own rates; the blocked tree does not catch up later."""
    all_trees = list(range(len(rates)))
    blocked = data.draw(st.sampled_from(all_trees))
    others = [tree for tree in all_trees if tree != blocked]
    dealer = BlockDistributor(rates, 0.0)
    _, now = dealt(dealer, 40, all_trees, 0.0, [0.0])
    chosen, later = dealt(dealer, 100, others, now, [0.0])
    assert blocked not in chosen
    assert later - now <= 101 * SIZE * 8 / sum(rates[tree] for tree in others) + SIZE * 8 / min(
        rates[tree] for tree in others
    )
    again, _ = dealt(dealer, 60, all_trees, later, [0.0])
    # Trees that are due for a block get it first.
    assert again.count(blocked) <= 60 * rates[blocked] / sum(rates) + 2 + len(rates)


def test_next_block_is_dealt_only_when_due() -> None:
    dealer = BlockDistributor([8e6], 10.0)
    assert dealer.deal(1_000_000, [0], 10.0) == 0
    assert dealer.deal(1_000_000, [0], 10.9) is None
    assert abs(dealer.wait([0], 10.9) - 0.1) < 1e-9
    assert dealer.deal(1_000_000, [0], 11.0) == 0
    assert dealer.deal(1_000_000, [], 99.0) is None

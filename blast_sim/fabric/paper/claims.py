"""What the paper on rack-fabric multicast says of its curves, each as a predicate of what the simulator has found.

`refuted` tells why a sentence does not hold in the model whatever one reads into the paper; then it has to fail, and
the experiment that it names shows the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from blast_sim.fabric.paper import congestion, header_drops, voq_drops, whole_system, without_curves
from blast_sim.fabric.paper.caching import WITH_CACHE, WITHOUT_CACHE
from blast_sim.fabric.paper.evaluation import Curves
from blast_sim.fabric.paper.panel import Lines, between

Check = Callable[[Curves], tuple[str, bool]]
"""What was found, for people, and whether the sentence holds."""

FULL = 98.5
"""Gb/s from which on a flow of 99 counts as unharmed."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the paper, the figure or section that it is about, and how it is checked."""

    figure: str
    sentence: str
    check: Check
    refuted: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a claim; `expected` is whether it came as it should."""

    claim: Claim
    value: str
    holds: bool

    @property
    def expected(self) -> bool:
        """Refuted claims have to fail."""
        return self.holds is not bool(self.claim.refuted)


def verdicts(curves: Curves) -> list[Verdict]:
    """Every claim against the lines of all panels and experiments."""
    return [Verdict(claim, *claim.check(curves)) for claim in CLAIMS]


# ------------------------------------------------------------------------------------------------- section 3


def _one_over_fanout(curves: Curves) -> tuple[str, bool]:
    line = [x * y for x, y in curves["2c"][WITHOUT_CACHE] if x > 1]
    return f"fanout x throughput {min(line):.1f} to {max(line):.1f} Gb/s", max(line) < 1.02 * min(line)


def _any_fanout(curves: Curves) -> tuple[str, bool]:
    return _at_least(_ys(curves["2c"][WITH_CACHE]), FULL)


def _below_thirty(curves: Curves) -> tuple[str, bool]:
    least = min(y for points in curves["4a"].values() for x, y in points if x < 64)
    return f"{least:.1f} Gb/s", least < 30


def _fine_from_64(curves: Curves) -> tuple[str, bool]:
    return _at_least([y for points in curves["4a"].values() for x, y in points if x >= 64], FULL)


def _full_with_16(curves: Curves) -> tuple[str, bool]:
    return _at_least([y for line, points in curves["4b"].items() if line != "9022 B" for _, y in points], FULL)


def _jumbo_exception(curves: Curves) -> tuple[str, bool]:
    least = curves["4b"]["9022 B"][0][1]
    return f"{least:.1f} Gb/s with 16 packets", least < 90


def _fewer_than_40(curves: Curves) -> tuple[str, bool]:
    most = max(_ys(curves["4c"]["cache128 + sync"]))
    return f"{most:g} at the most", most < 40


def _around_20(curves: Curves) -> tuple[str, bool]:
    held = _ys(curves["4c"]["cache32"])
    return f"{min(held):g} to {max(held):g}", 18 <= min(held) <= max(held) <= 24


# ----------------------------------------------------------------------------------------------- section 4.1


def _means(lines: Lines, since: float = 0.5) -> list[float]:
    return [between(points, since, 1e9) for points in lines.values()]


def _shown(means: Sequence[float]) -> str:
    return " ".join(f"{mean:.0f}" for mean in means)


def _in_order(curves: Curves) -> tuple[str, bool]:
    means = _means(curves["5b"])
    return _shown(means), all(one > other for one, other in pairwise(means))


def _wide_spread(curves: Curves) -> tuple[str, bool]:
    means = _means(curves["5b"])
    return _shown(means), means[0] >= 75 and means[-1] <= 15


def _fair_when_random(curves: Curves) -> tuple[str, bool]:
    means = _means(curves["5c"])
    return _shown(means), max(means) < 1.04 * min(means)


def _by_the_formula(curves: Curves) -> tuple[str, bool]:
    """Headers over the mean time for which a copy keeps one."""
    ack = dict(curves["5c-ack"])["mean of all copies"][0][1]
    expected = header_drops.HEADERS / len(header_drops.LINES) * 1522 * 8 / ack
    mean = fmean(_means(curves["5c"]))
    return f"{mean:.1f} Gb/s; {expected:.1f} by the formula", abs(mean / expected - 1) < 0.05


def _close_to_40(curves: Curves) -> tuple[str, bool]:
    means = _means(curves["5c"])
    return _shown(means), all(abs(mean - 40) < 5 for mean in means)


def _alike_as_stated(curves: Curves) -> tuple[str, bool]:
    means = _means(curves["5c-alike"])
    return _shown(means), all(abs(mean / header_drops.STATED - 1) < 0.06 for mean in means)


def _red_is_narrow(curves: Curves) -> tuple[str, bool]:
    means = _means(curves["5d"])
    return _shown(means), max(means) - min(means) < 0.25 * fmean(means)


def _wide(panel: str, least: float, most: float) -> Check:
    """As wide a spread as without RED, and in all so many times the throughput of that."""

    def check(curves: Curves) -> tuple[str, bool]:
        means, without = _means(curves[panel]), _means(curves["5b"])
        share = sum(means) / sum(without)
        wide = max(means) - min(means) > fmean(means)
        return f"{_shown(means)}, {share:.2f} of 5b's", wide and least <= share <= most

    return check


def _remote_ack(curves: Curves) -> tuple[str, bool]:
    longest = curves["5-ack"]["longest"][0][1]
    return f"{longest:.0f} ns", abs(longest / 3500 - 1) < 0.03


def _fast(lines: Lines, least: float, most: float) -> list[float]:
    """Means of the copies that are not congested. What is just changing does not count."""
    return [between(lines[name], least + 0.3, most) for name in voq_drops.OTHERS]


def _capped(panel: str, most: float) -> Check:
    """In each period the others get no more than so many times the congested one's fair share."""

    def check(curves: Curves) -> tuple[str, bool]:
        found = [max(_fast(curves[panel], a, b)) for a, b, _ in voq_drops.PERIODS]
        shares = [voq_drops.fair_share(unicast) for _, _, unicast in voq_drops.PERIODS]
        return _shown(found), all(0.7 * share <= one <= most * share for one, share in zip(found, shares, strict=True))

    return check


def _stuck_at_60(curves: Curves) -> tuple[str, bool]:
    found = _fast(curves["6a"], 4.2, voq_drops.LAST_MS)
    return _shown(found), all(abs(one - 60) < 5 for one in found)


def _recovered(panel: str) -> Check:
    return lambda curves: _at_least(_fast(curves[panel], 4.2, voq_drops.LAST_MS), FULL)


def _fast_from_2_to_3(curves: Curves) -> tuple[str, bool]:
    return _at_least(_fast(curves["6c"], 2, 3), 97)


def _hindered_when_severe(curves: Curves) -> tuple[str, bool]:
    found = _fast(curves["6c"], 1, 2)
    return _shown(found), max(found) < 90


def _never_hindered(*panels: str) -> Check:
    def check(curves: Curves) -> tuple[str, bool]:
        found = [one for panel in panels for one in _fast(curves[panel], 1, 4)]
        return _at_least(found, 97)

    return check


def _slow_copy_suffers(curves: Curves) -> tuple[str, bool]:
    line = curves["6c"][voq_drops.CONGESTED]
    found = [between(line, a + 0.3, b) for a, b, _ in voq_drops.PERIODS]
    return f"{_shown(found)} instead of 12 25 50", found[1] < 0.8 * 25 and found[2] < 0.8 * 50


def _unaffected(curves: Curves) -> tuple[str, bool]:
    return _at_least([one for a, b, _ in voq_drops.PERIODS for one in _fast(curves["6e"], a, b)], 97)


def _slow_at_its_share(curves: Curves) -> tuple[str, bool]:
    line = curves["6e"][voq_drops.CONGESTED]
    found = [between(line, a + 0.3, b) for a, b, _ in voq_drops.PERIODS]
    shares = [voq_drops.fair_share(unicast) for _, _, unicast in voq_drops.PERIODS]
    return _shown(found), all(abs(one / share - 1) < 0.1 for one, share in zip(found, shares, strict=True))


# ----------------------------------------------------------------------------------------------- section 4.2


def _settled(lines: Lines, names: Sequence[str]) -> float:
    return fmean(between(lines[name], congestion.SETTLED_MS, congestion.LAST_MS) for name in names)


def _unicast_over_multicast(panel: str, least: float, most: float) -> Check:
    def check(curves: Curves) -> tuple[str, bool]:
        lines = curves[panel]
        unicast, multicast = _settled(lines, congestion.UNICAST), _settled(lines, congestion.MULTICAST)
        ratio = unicast / multicast
        return f"{unicast:.1f} : {multicast:.1f} Gb/s = {ratio:.2f}", least <= ratio <= most

    return check


def _two_flows(panel: str, free: bool) -> Check:
    """T1 at its fair share; T2 at nearly what it offers, or no better off than T1."""

    def check(curves: Curves) -> tuple[str, bool]:
        first, second = _settled(curves[panel], congestion.T1), _settled(curves[panel], congestion.T2)
        fair = abs(first - 25) < 2.5
        return f"T1 {first:.1f}, T2 {second:.1f} Gb/s", fair and (second > 45 if free else second < 30)

    return check


# ------------------------------------------------------------------------------------------------- section 5


def _linear_while_feasible(curves: Curves) -> tuple[str, bool]:
    ratios = [
        y / whole_system.demand(x)
        for line in (whole_system.SYNC, whole_system.NO_SYNC)
        for x, y in curves["13a"][line]
        if x <= 25
    ]
    return f"{min(ratios):.3f} to {max(ratios):.3f} of the demand", all(abs(ratio - 1) < 0.04 for ratio in ratios)


def _at(lines: Lines, line: str, x: float) -> float:
    return dict(lines[line])[x]


def _short_at_30(curves: Curves) -> tuple[str, bool]:
    found = _at(curves["13a"], whole_system.NO_SYNC, 30)
    return f"{found:.1f} Gb/s", 78 < found < 0.99 * whole_system.demand(30)


def _76_percent(curves: Curves) -> tuple[str, bool]:
    found = _at(curves["13a"], whole_system.SYNC, 25)
    return f"{found:.1f} Gb/s of 100", abs(found - 76) < 3


def _same_without_sync(least: float, most: float) -> Check:
    def check(curves: Curves) -> tuple[str, bool]:
        lines = curves["13a"]
        pairs = zip(lines[whole_system.SYNC], lines[whole_system.NO_SYNC], strict=True)
        ratios = [on / off for (x, on), (_, off) in pairs if least <= x <= most]
        return f"with / without {min(ratios):.2f} to {max(ratios):.2f}", all(abs(one - 1) < 0.05 for one in ratios)

    return check


def _other_cams(line: str, like: str, loads: Sequence[float], tolerance: float) -> Check:
    """Throughput with this CAM, as with that setting."""

    def check(curves: Curves) -> tuple[str, bool]:
        pairs = [(_at(curves["13a-cams"], line, load), _at(curves["13a"], like, load)) for load in loads]
        words = ", ".join(f"{one:.0f} : {other:.0f}" for one, other in pairs)
        return f"{words} Gb/s", all(abs(one / other - 1) < tolerance for one, other in pairs)

    return check


def _four_microseconds(curves: Curves) -> tuple[str, bool]:
    found = _at(curves["13b"], whole_system.SYNC, 5)
    return f"{found:.2f} µs", abs(found / 4 - 1) < 0.05


def _delay_grows(curves: Curves) -> tuple[str, bool]:
    found = [y for x, y in curves["13b"][whole_system.SYNC] if x <= 30]
    return f"{found[0]:.1f} to {found[-1]:.1f} µs", found[-1] > 2 * found[0] and found == sorted(found)


def _fourteen_microseconds(curves: Curves) -> tuple[str, bool]:
    found = [_at(curves["13b"], line, 30) for line in (whole_system.SYNC, whole_system.NO_SYNC)]
    return f"{found[0]:.1f}, without sync {found[1]:.1f} µs", any(abs(one - 14) < 2 for one in found)


def _slow_where_overloaded(curves: Curves) -> tuple[str, bool]:
    lines = curves["13b-overloaded"]
    slow, fast = _at(lines, whole_system.OVERLOADED, 30), _at(lines, whole_system.OTHERS, 30)
    return f"{slow:.1f} and {fast:.1f} µs", slow > 14 and fast < 10


def _linear_to_99(curves: Curves) -> tuple[str, bool]:
    ratios = [y / x for line in ("512 B", "1522 B") for x, y in curves["15"][line]]
    return f"{min(ratios):.3f} to {max(ratios):.3f} of the load", all(abs(one - 1) < 0.02 for one in ratios)


def _jumbo(curves: Curves) -> tuple[str, bool]:
    most = curves["15"]["9022 B"][-1][1]
    return f"{most:.1f} Gb/s at 99", abs(most - 93) < 3


def _no_pool_gives_93(curves: Curves) -> tuple[str, bool]:
    five, six = (curves["15-small-pools"][line][-1][1] for line in (whole_system.FIVE_FRAMES, whole_system.SIX_FRAMES))
    return f"{five:.1f} and {six:.1f} Gb/s", five < 88 and six > 98


def _delays(curves: Curves, size: int, load: float) -> list[float]:
    """By surrogates passed."""
    return [_at(curves["16"], f"{size} B, {level} surrogates", load) for level in whole_system.LEVELS]


def _grows_with_surrogates(curves: Curves) -> tuple[str, bool]:
    every = [
        _delays(curves, size, load) for size in whole_system.BROADCAST_SIZES for load in whole_system.BROADCAST_LOADS
    ]
    steps = [after - before for delays in every for before, after in pairwise(delays)]
    return f"{min(steps):.1f} to {max(steps):.1f} µs each", min(steps) > 0


def _grows_to_50(curves: Curves) -> tuple[str, bool]:
    changes = [_change(curves, size, 1, 50) for size in (512, 1522)]
    return ", ".join(f"{change:+.0%}" for change in changes), all(change > 0.01 for change in changes)


def _flat_from_50(curves: Curves) -> tuple[str, bool]:
    changes = [_change(curves, size, 50, 99) for size in (512, 1522)]
    return ", ".join(f"{change:+.0%}" for change in changes), all(abs(change) < 0.05 for change in changes)


def _flat_without_waiting(curves: Curves) -> tuple[str, bool]:
    lines = curves["16-roomy"]
    before, after = (
        fmean(_at(lines, f"512 B, {level} surrogates", load) for level in whole_system.LEVELS) for load in (50, 99)
    )
    return f"{after / before - 1:+.1%}", abs(after / before - 1) < 0.05


def _change(curves: Curves, size: int, before: float, after: float) -> float:
    """Of the mean over levels, as a share."""
    return fmean(_delays(curves, size, after)) / fmean(_delays(curves, size, before)) - 1


# ------------------------------------------------------------------------------------ what has no curve


def _latencies(place: int, sizes: Sequence[int]) -> Check:
    def check(curves: Curves) -> tuple[str, bool]:
        line = dict(curves["5.3-latency"][("remote", "local")[place]])
        shares = {size: line[size] / without_curves.LATENCIES[size][place] - 1 for size in sizes}
        words = ", ".join(f"{size} B {line[size]:.3f} µs ({share:+.1%})" for size, share in shares.items())
        return words, all(abs(share) <= 0.03 for share in shares.values())

    return check


def _everything_arrives(curves: Curves) -> tuple[str, bool]:
    lines = curves["2.1-errors"]
    arrived, sent, again = (_ys(lines[name]) for name in ("copies that arrive", "copies that were sent", "sent again"))
    words = f"{again[-1]:.0f} of {sent[-1]:.0f} copies sent again at 0.05"
    return words, arrived == sent and again == sorted(again) and again[-1] > 0


def _fewer_messages(curves: Curves) -> tuple[str, bool]:
    messages, throughput = (_ys(curves["6-coalescing"][name]) for name in ("messages a copy", "throughput"))
    words = f"{messages[0]:.2f} to {messages[-1]:.2f} a copy, {min(throughput):.1f} Gb/s"
    return words, messages[-1] < 0.7 * messages[0] and min(throughput) >= FULL


def _by_weight(curves: Curves) -> tuple[str, bool]:
    lines = curves["6-priorities"]
    ratios = [(x, y / _at(lines, "first", x)) for x, y in lines["second"]]
    words = ", ".join(f"1 : {weight:g} gives 1 : {ratio:.1f}" for weight, ratio in ratios)
    return words, all(abs(ratio / weight - 1) < 0.05 for weight, ratio in ratios)


def _weight_protects(curves: Curves) -> tuple[str, bool]:
    unicast = _ys(curves["6-crossbar-weight"]["unicast of neighbours"])
    return f"neighbours {unicast[0]:.0f} to {unicast[-1]:.0f} Gb/s", (
        all(a > b - 0.5 for a, b in pairwise(unicast)) and unicast[0] > 1.5 * unicast[-1]
    )


def _links_relieve(curves: Curves) -> tuple[str, bool]:
    shared, own = (_ys(curves[name]["unicast of neighbours"])[-1] for name in ("6-crossbar-weight", "6-local-links"))
    return f"neighbours {shared:.1f}, with links {own:.1f} Gb/s", own > 1.2 * shared


def _ys(points: Sequence[tuple[float, float]]) -> list[float]:
    return [y for _, y in points]


def _at_least(values: Sequence[float], least: float) -> tuple[str, bool]:
    return f"{min(values):.1f} Gb/s at the least", min(values) >= least


CLAIMS: Sequence[Claim] = (
    Claim("2c", "without the cache throughput falls as 1 / fanout", _one_over_fanout),
    Claim("2c", "with it 99 Gb/s for any fanout from 1 to 8", _any_fanout),
    Claim("4a", "without sync below 30 Gb/s at worst with fewer than 64 packets", _below_thirty),
    Claim("4a", "without sync full throughput from 64 packets on", _fine_from_64),
    Claim("4b", "with sync full throughput already with 16 packets", _full_with_16),
    Claim("4b", "... with the exception of jumbo frames", _jumbo_exception),
    Claim("4c", "with sync a cache of 128 has fewer than 40 packets", _fewer_than_40),
    Claim("4c", "without sync a cache of 32 fills up: around 20 packets", _around_20),
    Claim("4.1", "the last copies are ACKed after 3500 ns", _remote_ack),
    Claim("5b", "subflows rank as their headers arrive", _in_order),
    Claim("5b", "they spread from 80 to just above 10 Gb/s (ours: at least as wide)", _wide_spread),
    Claim("5c", "in random order they have exact fair throughputs", _fair_when_random),
    Claim("5c", "these are headers x frame / time to the ACK", _by_the_formula),
    Claim(
        "5c",
        "... close to 40 Gb/s",
        _close_to_40,
        "the paper counts 3500 ns for all 8 copies, but the local one gives its header back sooner, to the others",
    ),
    Claim("5c", "experiment: as the paper expects (within 6 %) if all copies are ACKed alike", _alike_as_stated),
    Claim("5d", "RED between 70 and 100 with p = 0.5 narrows the spread", _red_is_narrow),
    Claim("5d", "too low a probability is ineffective (p = 0.05)", _wide("5d-low", 0.93, 1.05)),
    Claim("5d", "too high a probability makes of 70 a hard threshold (p = 0.95)", _wide("5d-high", 0.6, 0.85)),
    Claim("6a", "no VOQ drop: the most congested subflow caps all", _capped("6a", 1.3)),
    Claim("6a", "... and after 4 ms all are stuck at 60", _stuck_at_60),
    Claim("6b", "with sync they recover after 4 ms", _recovered("6b")),
    Claim("6b", "... but are still capped before", _capped("6b", 1.3)),
    Claim("6c", "tail drop without sync: the others have 99 from 2 to 3 ms", _fast_from_2_to_3),
    Claim(
        "6c",
        "... and are far from optimal beside 7 unicast flows",
        _hindered_when_severe,
        "the slow VOQ may hold 240 of 740 buffer units, and the payload line carries 12.5 Gb/s beside 99: nothing is "
        "left that could hold back the others",
    ),
    Claim(
        "6c",
        "experiment: nor with a payload line of 100 Gb/s or a cache of 16",
        _never_hindered("6c-port-speed", "6c-small-cache"),
    ),
    Claim("6c", "experiment: what is far from optimal is the slow copy itself", _slow_copy_suffers),
    Claim("6d", "tail drop with sync: all are capped again", _capped("6d", 1.3)),
    Claim("6e", "drop from the head with sync: the others are unaffected", _unaffected),
    Claim("6e", "... and the slow one has its fair share", _slow_at_its_share),
    Claim(
        "9a", "QCN at outputs: unicast gets almost twice the multicast flow", _unicast_over_multicast("9a", 1.6, 2.6)
    ),
    Claim("9b", "QCN at inputs: multicast performs equally", _unicast_over_multicast("9b", 0.9, 1.1)),
    Claim("10a", "PAUSE only blocks T2 as well as T1", _two_flows("10a", free=False)),
    Claim("10b", "QCN at inputs with standard marking is no better", _two_flows("10b", free=False)),
    Claim("10c", "marking by occupancy slows T1 alone", _two_flows("10c", free=True)),
    Claim("10d", "... on a par with standard QCN at outputs", _two_flows("10d", free=True)),
    Claim("13a", "throughput grows linearly with the load up to 25 Gb/s", _linear_while_feasible),
    Claim("13a", "25 Gb/s at sources: destinations are used to 76 %", _76_percent),
    Claim("13a", "30 Gb/s: 83 instead of 90 (without sync; trees are drawn: 78 to 89 here)", _short_at_30),
    Claim("13a", "without sync the results are identical: up to 25 Gb/s", _same_without_sync(0, 25)),
    Claim(
        "13a",
        "without sync the results are identical: beyond",
        _same_without_sync(27, 40),
        "24 entries are hardly ever too few for the VOQs of a surrogate; they stay suspended, and drop their own heads",
    ),
    Claim(
        "13a",
        "experiment: with a CAM of 8 entries, which overflows, they are at 30 Gb/s",
        _other_cams(whole_system.SMALL_CAM, whole_system.NO_SYNC, (30.0,), 0.07),
    ),
    Claim(
        "13a",
        "experiment: with one of 1000, which never does, it is as with 24 beyond 25 Gb/s",
        _other_cams(whole_system.LARGE_CAM, whole_system.SYNC, (27.5, 30.0, 33.3), 0.1),
    ),
    Claim("13b", "4 µs at 5 Gb/s (the paper: just over; within 5 %)", _four_microseconds),
    Claim("13b", "delay grows with the load, to more than twice that", _delay_grows),
    Claim(
        "13b",
        "... and approaches 14 µs at 82 %",
        _fourteen_microseconds,
        "only frames to leaves that are drawn more than 33 times wait for long, and these are a quarter of all",
    ),
    Claim("13b", "experiment: to overloaded leaves it is more than 14, to others less than 10", _slow_where_overloaded),
    Claim("15", "512 and 1522 B: linear to 99 Gb/s", _linear_to_99),
    Claim(
        "15",
        "jumbo frames up to 93 Gb/s",
        _jumbo,
        "nothing of Table 1 limits them: six of the nine frames that a surrogate holds are what waits for ACKs",
    ),
    Claim("15", "experiment: room for 5 frames gives less than 88, for 6 all: no pool gives 93", _no_pool_gives_93),
    Claim("16", "delay grows with every surrogate passed", _grows_with_surrogates),
    Claim("16", "512 and 1522 B: delay grows from 1 to 50 Gb/s", _grows_to_50),
    Claim(
        "16",
        "... and is almost constant from 50 to 99 (within 5 %)",
        _flat_from_50,
        "copies wait for each other and for the leaf's 32 links, the more the nearer the load is to the line",
    ),
    Claim("16", "experiment: without sync and with 64 spines it is", _flat_without_waiting),
    Claim("5.3", "zero load, remote: 1.88, 2.1 and 3.6 µs (within 3 %)", _latencies(0, (512, 1522, 9022))),
    Claim("5.3", "zero load, local jumbo frames: 1.9 µs (within 3 %)", _latencies(1, (9022,))),
    Claim(
        "5.3",
        "zero load, local: 0.143 µs for 512 B (within 3 %)",
        _latencies(1, (512,)),
        "a grant takes 100 ns (3.1) and the frame is on two lines of 100 Gb/s, 41 ns each: 182 ns",
    ),
    Claim(
        "5.3",
        "zero load, local: 0.35 µs for 1522 B (within 3 %)",
        _latencies(1, (1522,)),
        "a grant takes 100 ns, two lines 122 ns each, and the crossbar 17.6 ns for a packet (2.1): 361 ns",
    ),
    Claim("2.1", "damaged copies are sent again on their leg and all arrive", _everything_arrives),
    Claim("6", "coalescing saves messages", _fewer_messages),
    Claim("6", "egress ports serve classes by weight", _by_weight),
    Claim("6", "the less multicast may take of an input, the more unicast its neighbours send", _weight_protects),
    Claim("6", "one-to-one links for local copies relieve the neighbours", _links_relieve),
)

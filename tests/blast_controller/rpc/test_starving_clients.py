"""One client cannot starve others by disconnecting, waiting or extending thousands of times.

The tests count work (decisions, reasons and answers in one cycle of the core's thread), never time.
"""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import Future
from functools import partial
from itertools import pairwise

import pytest

from blast_api import ttypes
from blast_controller.core.deadlines import MAX_AT_ONCE
from blast_controller.core.lifecycle.endings import Endings
from blast_controller.core.model.commands import Publish
from blast_controller.core.model.requests import EventKind
from blast_controller.core.model.settings import CoreSettings
from blast_controller.rpc.clients.access import OPEN_POLICY, AccessPolicy
from blast_controller.rpc.clients.gate import Gate
from blast_controller.rpc.clients.identity import Identity, Role
from blast_controller.rpc.clients.rates import Rate
from blast_controller.rpc.clients.tokens import digest_of
from blast_controller.rpc.connections.connection import Connection
from blast_controller.rpc.methods import ROLES
from blast_controller.runtime.runtime import LARGEST_BATCH, MAX_UNWRITTEN
from blast_controller.runtime.waiting import MAX_ANSWERED, WaitingLimits
from tests.support.controller.core import key_of, make_fabric
from tests.support.controller.runtime import TIMEOUT, running

CLIENT, OTHER = Connection(1, "192.0.2.1:5"), Connection(2, "192.0.2.2:5")
MANY = 900


class Clock:
    """A replacement of the module `time` that stands still until a test advances it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now


class Cycles:
    """Counts of each kind of work in each cycle of the core's thread."""

    def __init__(self, lab) -> None:
        self.done: list[Counter[str]] = []
        self._now: Counter[str] = Counter()
        core, runtime = lab.runtime.core, lab.runtime
        core.conclude = self._counted("decisions", self._ends_counted(core.conclude))
        core.reason = self._counted("reasons", core.reason)
        runtime.waiting.notify = self._counted("events", runtime.waiting.notify)
        let_out = runtime._let_out

        def end_cycle() -> None:
            let_out()
            self.done.append(self._now)
            self._now = Counter()

        runtime._let_out = end_cycle

    def _counted(self, name, inner):
        def outer(*arguments, **more):
            self._now[name] += 1
            return inner(*arguments, **more)

        return outer

    def _ends_counted(self, conclude):
        def outer(now):
            commands = conclude(now)
            self._now["ends"] += sum(isinstance(c, Publish) and c.event.kind is EventKind.ENDED for c in commands)
            return commands

        return outer

    def max_of(self, name: str) -> int:
        return max(cycle[name] for cycle in self.done)

    def total(self, name: str) -> int:
        return sum(cycle[name] for cycle in self.done)


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("blast_controller.runtime.runtime.time", clock)
    return clock


@pytest.fixture
def lab(clock):
    """One request reserves all optical ports, so that all others wait."""
    with running(make_fabric(3, [4]), CoreSettings(orphan_grace=2.0, lease_maximum=10**9)) as lab:
        lab.handler = handler_of(lab)
        now(lab.handler.submit(OTHER, multicast_request("first", size=10**15)))
        lab.settle()
        yield lab


def handler_of(lab, gate=None):
    return lab.make_handler(gate or Gate(OPEN_POLICY, ROLES, Rate(10**6, 10**6)))


def multicast_request(key, size=10**9, **more):
    return ttypes.MulticastRequest(key, "r1h1", ["r2h1", "r3h1"], size, **more)


def now(future):
    return future.result(TIMEOUT)


def later(lab, clock, seconds):
    """Advance the clock, and let the core's thread process it."""
    clock.now += seconds
    lab.settle()


def ask(lab, connection, count, timeout_ms=3600_000, **more):
    futures = [lab.handler.request(connection, multicast_request(f"k{n}", **more), timeout_ms) for n in range(count)]
    lab.settle()
    return futures


def waiting_places(lab):
    lab.settle()
    room = lab.runtime.waiting
    return lab.runtime.call(lambda context: (room._remove_cancelled(), room._taken.total())[1]).result(TIMEOUT)


def refusal(call):
    with pytest.raises(ttypes.Rejected) as refused:
        now(call())
    return refused.value


def until_all_done(lab, futures):
    """Wait for all futures; the runtime serves queued calls without further events."""
    for future in futures:
        future.exception(TIMEOUT)
    lab.settle()


# ------------------------------------------------------------------------------------- disconnections and timeouts


def test_disconnected_client_causes_one_decision_for_all_its_waits(lab, clock):
    futures = ask(lab, CLIENT, 500)
    cycles = Cycles(lab)
    for future in futures:
        future.cancel()
    lab.handler.disconnected(CLIENT)
    now(lab.runtime.call(lambda context: None))
    # All its requests are orphaned in one event; the other decision is that of the call above.
    assert cycles.total("decisions") <= 2
    later(lab, clock, 2.0)
    for _ in range(MANY):
        if lab.look().pending_count == 0:
            break
    assert lab.look().pending_count == 0
    assert cycles.max_of("ends") <= MAX_AT_ONCE
    assert cycles.max_of("events") <= MAX_UNWRITTEN + MAX_AT_ONCE
    assert cycles.max_of("decisions") <= 2


def test_number_of_waits_that_time_out_in_one_cycle_is_bounded(lab, clock):
    futures = ask(lab, CLIENT, MANY, timeout_ms=5000)
    assert waiting_places(lab) == MANY
    cycles, ended, ended_before = Cycles(lab), [], set()
    for future in futures:
        future.add_done_callback(ended.append)

    def ask_again(context):
        ended_before.add(len(ended))
        if len(ended) < MANY:
            lab.runtime.call(ask_again)

    clock.now += 5.0
    lab.runtime.call(ask_again)
    until_all_done(lab, futures)
    assert all(isinstance(future.exception(TIMEOUT), ttypes.TimedOut) for future in futures)
    assert cycles.max_of("reasons") <= MAX_ANSWERED
    assert cycles.total("reasons") == MANY
    assert len(ended_before) > MANY / MAX_ANSWERED, "others are answered between two cycles"
    assert waiting_places(lab) == 0


def test_number_of_requests_that_expire_in_one_cycle_is_bounded(lab, clock):
    futures = ask(lab, CLIENT, MANY, pendingTimeoutMs=5000)
    cycles = Cycles(lab)
    clock.now += 5.0
    lab.settle()
    until_all_done(lab, futures)
    assert all(isinstance(future.exception(TIMEOUT), ttypes.Ended) for future in futures)
    assert cycles.max_of("ends") <= MAX_AT_ONCE
    assert cycles.max_of("events") <= MAX_UNWRITTEN + MAX_AT_ONCE
    assert cycles.max_of("decisions") <= 2
    assert cycles.total("ends") == MANY


def test_calls_are_served_between_slow_expirations(lab, clock, monkeypatch):
    """Each cycle begins with due expirations, which take longer here than a cycle may."""
    ask(lab, CLIENT, 20 * MAX_AT_ONCE, pendingTimeoutMs=5000)
    end, ends = Endings.end, []

    def end_slowly(*arguments):
        clock.now += 0.01
        ends.append(end(*arguments))

    monkeypatch.setattr(Endings, "end", end_slowly)
    seen, over = {account: [] for account in ("a", "b")}, Future()

    def ask_again(account, context):
        seen[account].append(len(ends))
        if len(ends) < 20 * MAX_AT_ONCE:
            lab.runtime.call_for(account, Future(), partial(ask_again, account))
        elif all(counts[-1] == len(ends) for counts in seen.values()):
            over.set_result(None)

    clock.now += 5.0
    for account in seen:
        lab.runtime.call_for(account, Future(), partial(ask_again, account))
    over.result(TIMEOUT)
    for counts in seen.values():
        assert max(later - earlier for earlier, later in pairwise([0, *counts])) <= 2 * MAX_AT_ONCE


def test_number_of_viewers_notified_in_one_cycle_is_bounded(lab, clock):
    viewers = [lab.handler.awaitEvent(CLIENT, "first", 1, 3600_000) for _ in range(500)]
    lab.settle()
    answered, before = [], sum(f.done() for f in viewers)
    for viewer in viewers:
        viewer.add_done_callback(lambda done: answered.append(len(cycles.done)))
    cycles = Cycles(lab)
    now(lab.handler.finish(OTHER, "first", 0, None))
    until_all_done(lab, viewers)
    assert before == 0
    assert max(Counter(answered).values()) <= MAX_ANSWERED
    assert {now(viewer).kind for viewer in viewers} == {ttypes.EventKind.ENDED}


def test_flood_of_one_account_does_not_delay_another(lab):
    done, begun, go_on = [], threading.Event(), threading.Event()

    def busy(context):
        begun.set()
        assert go_on.wait(TIMEOUT)

    lab.runtime.call(busy)
    assert begun.wait(TIMEOUT)
    flood = [lab.handler.submit(CLIENT, multicast_request(f"k{number}")) for number in range(500)]
    status = lab.handler.status(OTHER, "first")
    for future, name in [*((future, "flood") for future in flood), (status, "status")]:
        future.add_done_callback(lambda _, name=name: done.append(name))
    go_on.set()
    until_all_done(lab, [*flood, status])
    # Calls of the flood that ran before it share its commit.
    assert done.index("status") <= LARGEST_BATCH
    assert len(done) == 501


# ---------------------------------------------------------------------------------------------------- places


def places(lab, in_all, of_one):
    lab.runtime.waiting.places = WaitingLimits(in_all, of_one)


def test_viewer_cannot_occupy_all_places_for_waiting_calls(lab):
    places(lab, in_all=100, of_one=100)
    for _ in range(75):
        lab.handler.awaitEvent(CLIENT, "first", 1, 3600_000)
    assert refusal(lambda: lab.handler.awaitEvent(CLIENT, "first", 1, 3600_000)).code == "too_many_waiting"
    assert refusal(lambda: lab.handler.awaitEvent(OTHER, "first", 1, 3600_000)).code == "too_many_waiting"
    requests = [lab.handler.request(OTHER, multicast_request(f"k{n}"), 3600_000) for n in range(25)]
    lab.settle()
    assert waiting_places(lab) == 100
    assert not any(future.done() for future in requests)
    assert refusal(lambda: lab.handler.request(OTHER, multicast_request("more"), 3600_000)).code == "too_many_waiting"
    with pytest.raises(ttypes.UnknownRequest):
        now(lab.handler.status(OTHER, "more"))


def test_waiting_calls_are_limited_by_account(lab):
    places(lab, in_all=100, of_one=8)
    first = [lab.handler.awaitEvent(CLIENT, "first", 1, 3600_000) for _ in range(6)]
    assert "6 waiting calls" in refusal(lambda: lab.handler.awaitEvent(CLIENT, "first", 1, 3600_000)).message
    again = Connection(3, "192.0.2.1:6")
    assert refusal(lambda: lab.handler.awaitEvent(again, "first", 1, 3600_000)).code == "too_many_waiting"
    lab.handler.awaitEvent(OTHER, "first", 1, 3600_000)
    lab.settle()
    first[0].cancel()
    lab.settle()
    lab.handler.awaitEvent(again, "first", 1, 3600_000)
    assert waiting_places(lab) == 7


def test_rest_of_a_client_doubles_with_each_refused_wait(lab, clock):
    places(lab, in_all=100, of_one=4)
    greedy = Connection(4, "192.0.2.1:7")
    rests = []
    for _ in range(10):
        lab.handler.awaitEvent(greedy, "first", 1, 3600_000)
        lab.settle()
        rests.append(greedy.take_rest(clock.now))
    assert rests == [0.0] * 3 + [0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.25]
    other = Connection(5, "192.0.2.1:8")
    with pytest.raises(ttypes.UnknownRequest):
        now(lab.handler.status(other, "unknown"))
    assert other.take_rest(clock.now) == 0.0, "a call that is refused for another reason costs no rest"


def test_tokens_of_one_tenant_share_its_limit_across_addresses(lab):
    places(lab, in_all=100, of_one=8)
    digests = {digest_of(text): Identity("physics", Role.OPERATOR) for text in ("one", "two")}
    digests[digest_of("three")] = Identity("biology", Role.OPERATOR)
    handler = handler_of(lab, Gate(AccessPolicy(tokens=digests, tenants=frozenset({"physics", "biology"})), ROLES))
    connections = [Connection(n, f"192.0.2.{n}:1") for n in (1, 2, 3)]
    for connection, text in zip(connections, ("one", "two", "three"), strict=True):
        connection.token = digest_of(text)
    for connection in connections[:2] * 3:
        handler.awaitEvent(connection, "default/first", 1, 3600_000)
    for connection in connections[:2]:
        code = refusal(partial(handler.awaitEvent, connection, "default/first", 1, 3600_000)).code
        assert code == "too_many_waiting"
    handler.awaitEvent(connections[2], "default/first", 1, 3600_000)
    assert waiting_places(lab) == 7


def test_extension_without_a_place_to_wait_is_rejected(lab):
    places(lab, in_all=100, of_one=1)
    lab.handler.request(OTHER, multicast_request("k"), 3600_000)
    lab.settle()
    before = now(lab.handler.status(OTHER, "k"))
    refused = refusal(lambda: lab.handler.extend(OTHER, "k", ttypes.Extension(removeReceivers=["r3h1"])))
    assert refused.code == "too_many_waiting"
    assert now(lab.handler.status(OTHER, "k")).receivers == before.receivers == ["r2h1", "r3h1"]


@pytest.mark.parametrize("how", ["granted", "ended", "timed out, then ended", "cancelled", "refused"])
def test_ended_wait_leaves_no_state(lab, clock, how):
    if how == "refused":
        places(lab, in_all=100, of_one=0)
    future = lab.handler.request(CLIENT, multicast_request("k"), 5000)
    lab.settle()
    match how:
        case "granted":
            now(lab.handler.finish(OTHER, "first", 0, None))
        case "ended":
            now(lab.handler.withdraw(CLIENT, "k"))
        case "timed out, then ended":
            later(lab, clock, 5.0)
            assert isinstance(future.exception(TIMEOUT), ttypes.TimedOut)
            now(lab.handler.withdraw(CLIENT, "k"))
        case "cancelled":
            future.cancel()
            lab.handler.disconnected(CLIENT)
            lab.settle()
            later(lab, clock, 2.0)
    lab.settle()
    assert future.done()
    assert waiting_places(lab) == 0
    attached = lab.handler._services.attached
    assert (len(attached), attached._requests, attached._connections, attached._watched) == (0, {}, {}, set())


# -------------------------------------------------------------------------------- submit and request together


@pytest.mark.parametrize("first", ["submit", "request"])
def test_submitted_request_outlives_another_client_waiting_for_it(lab, clock, first):
    calls = {
        "submit": lambda: now(lab.handler.submit(OTHER, multicast_request("k"))),
        "request": lambda: lab.handler.request(CLIENT, multicast_request("k"), 3600_000),
    }
    calls.pop(first)()
    for call in calls.values():
        call()
    lab.settle()
    lab.handler.disconnected(CLIENT)
    lab.settle()
    later(lab, clock, 10.0)
    assert now(lab.handler.status(OTHER, "k")).state == ttypes.PartState.PENDING


# ------------------------------------------------------------------------------------------ events of a request


def test_repeated_extensions_use_bounded_memory_and_journal(lab):
    now(lab.handler.submit(CLIENT, multicast_request("k")))
    sizes = [0]

    def extend(times):
        for _ in range(times):
            now(lab.handler.extend(CLIENT, "k", ttypes.Extension(addLeaseMs=1)))
        sizes.append(sum(len(row.body or "") for *_, row in lab.store._entries))

    extend(400)
    extend(400)
    (_, once, twice) = sizes
    assert twice < 2.2 * once, "each call costs the same, however many there were before"
    assert once < 400 * 3000
    assert len(lab.look().request(key_of("k")).events) == 64
    rows = [key for kind, key in lab.store._state if kind == "event" and key.endswith("/default/k")]
    assert len(rows) == 64


def test_client_that_asks_for_dropped_events_gets_the_oldest_kept(lab):
    now(lab.handler.submit(CLIENT, multicast_request("k")))
    for _ in range(100):
        now(lab.handler.extend(CLIENT, "k", ttypes.Extension(addLeaseMs=1)))
    assert now(lab.handler.status(CLIENT, "k")).latestSequence == 100
    sequence, seen = 0, []
    while sequence < 100:
        sequence = now(lab.handler.awaitEvent(CLIENT, "k", sequence, 3600_000)).sequence
        seen.append(sequence)
    assert seen == list(range(37, 101))
    waiting = lab.handler.awaitEvent(CLIENT, "k", 100, 3600_000)
    lab.settle()
    assert not waiting.done()
    now(lab.handler.withdraw(CLIENT, "k"))
    assert (now(waiting).sequence, now(waiting).kind) == (101, ttypes.EventKind.ENDED)


def test_wait_for_a_future_event_ends_with_the_request(lab):
    now(lab.handler.submit(CLIENT, multicast_request("k")))
    waiting = lab.handler.awaitEvent(CLIENT, "k", 1000, 3600_000)
    lab.settle()
    now(lab.handler.withdraw(CLIENT, "k"))
    with pytest.raises(ttypes.Ended) as ended:
        now(waiting)
    assert (ended.value.state, ended.value.reason) == (ttypes.PartState.WITHDRAWN, "Withdrawn by the client.")


def test_repeated_lease_extensions_use_one_timer(lab):
    before = len(lab.look()._timers._heap)
    for _ in range(300):
        now(lab.handler.extend(OTHER, "first", ttypes.Extension(addLeaseMs=1)))
    assert len(lab.look()._timers._heap) <= before + 1


def test_ended_request_leaves_only_its_retention_timer(lab):
    before = len(lab.look()._timers._heap)
    for number in range(300):
        now(lab.handler.submit(CLIENT, multicast_request(f"k{number}", pendingTimeoutMs=10**15)))
        now(lab.handler.withdraw(CLIENT, f"k{number}"))
    assert len(lab.look()._timers._heap) <= 2 * (before + 300) + 20


# ---------------------------------------------------------------------------------------------- rate and number


def test_call_rate_is_limited_by_account(lab):
    handler = handler_of(lab, Gate(OPEN_POLICY, ROLES, Rate(per_second=1e-6, burst=5)))
    for number in range(3):
        now(handler.submit(CLIENT, multicast_request(f"k{number}")))
    now(handler.extend(CLIENT, "k0", ttypes.Extension(addLeaseMs=1)))
    handler.request(CLIENT, multicast_request("k3"), 3600_000)
    for call in (
        lambda: handler.submit(CLIENT, multicast_request("k4")),
        lambda: handler.request(CLIENT, multicast_request("k4"), 3600_000),
        lambda: handler.extend(CLIENT, "k0", ttypes.Extension(addLeaseMs=1)),
    ):
        refused = refusal(call)
        assert refused.code == "too_many_calls"
        assert "try again in" in refused.message
    now(handler.withdraw(CLIENT, "k0"))
    now(handler.submit(OTHER, multicast_request("k5")))


def test_unconfigured_tenant_has_the_default_pending_limit(clock):
    with running(make_fabric(3, [4]), CoreSettings(max_pending_per_tenant=10)) as lab:
        handler = handler_of(lab)
        now(handler.submit(OTHER, multicast_request("first")))
        for number in range(10):
            now(handler.submit(CLIENT, multicast_request(f"k{number}")))
        assert refusal(lambda: handler.submit(CLIENT, multicast_request("more"))).code == "too_many_pending"
        now(handler.withdraw(CLIENT, "k3"))
        now(handler.submit(CLIENT, multicast_request("more")))


def test_work_for_a_page_of_waiting_requests_is_bounded(lab):
    ask(lab, CLIENT, 300)
    cycles, found, cursor = Cycles(lab), [], None
    while cursor is not None or not found:
        page = now(lab.handler.listRequests(OTHER, None, 1000, cursor))
        found += [status.key for status in page.requests]
        cursor = page.nextCursor
    assert found == ["first", *(f"k{n}" for n in range(300))]
    assert cycles.max_of("reasons") <= 70

"""The Thrift methods over a runtime whose devices confirm at once: answers now, answers later, and refusals."""

from __future__ import annotations

import json
import logging
import math
from concurrent.futures import Future
from dataclasses import replace

import pytest

from blast_api import ttypes
from blast_controller.core.fiber_check import FiberReport
from blast_controller.core.fibers.fiber_judge import FiberFault
from blast_controller.core.model.events import DeviceConnected, DeviceDisconnected, ElementQuarantined, SettingsChanged
from blast_controller.core.model.settings import CoreSettings
from blast_controller.process.first_fiber_check import check_fibers, report_lines
from blast_controller.rpc import convert
from blast_controller.rpc.clients.access import OPEN_POLICY
from blast_controller.rpc.clients.gate import Gate
from blast_controller.rpc.condition import Healthy
from blast_controller.rpc.connections.connection import Connection
from blast_controller.rpc.handler import BlastHandler
from blast_controller.rpc.methods import ROLES
from blast_controller.rpc.pages import MAX_ON_A_PAGE
from blast_controller.store.details import read_page
from tests.support.controller.core import make_fabric
from tests.support.controller.runtime import TIMEOUT, running
from tests.support.waiting import eventually

CLIENT = Connection(1, "192.0.2.1:5")
STATE = ttypes.PartState


@pytest.fixture
def lab():
    with running(make_fabric(4, [4, 4]), CoreSettings(orphan_grace=0.05)) as lab:
        lab.handler = lab.make_handler()
        yield lab


def multicast_request(key="a", receivers=("r2h1", "r3h1"), sender="r1h1", size=10**9, **more):
    return ttypes.MulticastRequest(key, sender, list(receivers), size, **more)


def now(answer):
    """Return the result of a call; wait for it if the answer is a future."""
    return answer.result(TIMEOUT) if isinstance(answer, Future) else answer


def granted(lab, key="a", **more):
    return now(lab.handler.request(CLIENT, multicast_request(key, **more), 5000))


def hold(lab):
    """Stop the answers of all devices."""
    lab.devices.held = []


def test_request_committed_as_leadership_expires_is_answered(lab):
    """A client that receives NotLeader would submit the same request to another controller."""
    commit = lab.store.commit

    def last_commit(records, at):
        commit(records, at)
        lab.runtime.holds_leadership = lambda: False

    lab.store.commit = last_commit
    assert now(lab.handler.submit(CLIENT, multicast_request())).key == "a"
    with pytest.raises(ttypes.NotLeader):
        now(lab.handler.submit(CLIENT, multicast_request()))
    with pytest.raises(ttypes.NotLeader):
        now(lab.handler.status(CLIENT, "a"))


def test_extension_in_force_is_answered_after_leadership_is_lost(lab):
    granted(lab)
    hold(lab)
    answer = lab.handler.extend(CLIENT, "a", ttypes.Extension(addReceivers=["r4h1"]))
    lab.settle()
    lab.runtime.holds_leadership = lambda: False
    lab.devices.release()
    assert now(answer).receivers == ["r2h1", "r3h1", "r4h1"]
    with pytest.raises(ttypes.NotLeader):
        now(lab.handler.extend(CLIENT, "a", ttypes.Extension(addLeaseMs=5)))


# --------------------------------------------------------------------------------------------------- answers


def test_submit_answers_at_once(lab):
    hold(lab)
    status = now(lab.handler.submit(CLIENT, multicast_request()))
    assert (status.key, status.tenant, status.state) == ("a", "default", STATE.CONFIGURING)
    assert (status.sender, status.receivers, status.bytes) == ("r1h1", ["r2h1", "r3h1"], 10**9)
    assert status.latestSequence == 0
    status.validate()


def test_request_answers_when_granted(lab):
    hold(lab)
    future = lab.handler.request(CLIENT, multicast_request(), 5000)
    lab.settle()
    assert not future.done()
    lab.devices.release()
    grant = now(future)
    assert (grant.key, grant.part, grant.receivers) == ("a", 0, ["r2h1", "r3h1"])
    assert (grant.estimatedServiceMs, grant.leaseMs, grant.rateBitsPerSecond) == (800, 10_000, 10**10)
    grant.validate()
    assert now(lab.handler.request(CLIENT, multicast_request(), 0)) == grant, "the same again, the same answer"


def test_timed_out_request_reports_the_blocking_resource(lab):
    granted(lab, "first")
    with pytest.raises(ttypes.TimedOut) as refusal:
        now(lab.handler.request(CLIENT, multicast_request(), 20))
    assert refusal.value.message == "Waiting for a free optical port of r1, r2, r3."
    lab.runtime.post(DeviceDisconnected("ocs1", "cable pulled"))
    with pytest.raises(ttypes.TimedOut) as refusal:
        now(lab.handler.request(CLIENT, multicast_request(), 0))
    assert refusal.value.message == "Waiting: the optical switch ocs1 is disconnected (cable pulled)."


@pytest.mark.parametrize("timeout", [None, -1])
def test_wait_requires_a_timeout(lab, timeout):
    with pytest.raises(ttypes.TimedOut, match="milliseconds"):
        lab.handler.awaitEvent(CLIENT, "a", 0, timeout)


def test_waiting_request_ends_when_it_is_withdrawn(lab):
    hold(lab)
    future = lab.handler.request(CLIENT, multicast_request(), 5000)
    now(lab.handler.withdraw(CLIENT, "a"))
    with pytest.raises(ttypes.Ended) as ended:
        now(future)
    assert (ended.value.state, ended.value.reason) == (STATE.WITHDRAWN, "Withdrawn by the client.")


def test_events_arrive_in_order_and_late_clients_receive_all(lab):
    hold(lab)
    now(lab.handler.submit(CLIENT, multicast_request()))
    waiting = lab.handler.awaitEvent(CLIENT, "a", 0, 5000)
    lab.settle()
    assert not waiting.done()
    lab.devices.release()
    assert (now(waiting).sequence, now(waiting).kind) == (1, ttypes.EventKind.GRANTED)
    now(lab.handler.finish(CLIENT, "a", 0, ttypes.TransferReport()))
    for after, kind in ((None, "GRANTED"), (0, "GRANTED"), (1, "ENDED")):
        event = now(lab.handler.awaitEvent(CLIENT, "a", after, 0))
        assert event.kind == getattr(ttypes.EventKind, kind)
        event.validate()
    assert now(lab.handler.awaitEvent(CLIENT, "a", 1, 0)).state == STATE.DONE
    for after in (2, 2, 7):
        with pytest.raises(ttypes.Ended) as ended:
            now(lab.handler.awaitEvent(CLIENT, "a", after, 5000))
        assert (ended.value.state, ended.value.reason) == (STATE.DONE, "The sender has finished.")
    with pytest.raises(ttypes.UnknownRequest):
        now(lab.handler.awaitEvent(CLIENT, "b", 0, 10))


def test_client_is_notified_of_a_revoked_grant(lab):
    granted(lab)
    lab.devices.denied = "its port is broken"
    lab.runtime.post(DeviceConnected("ocs1"))
    event = now(lab.handler.awaitEvent(CLIENT, "a", 1, 5000))
    assert event.kind == ttypes.EventKind.REVOKED
    assert "light lost" in event.reason


# --------------------------------------------------------------------------------------------------- changes


def test_extend_answers_when_the_change_takes_effect(lab):
    granted(lab)
    hold(lab)
    future = lab.handler.extend(CLIENT, "a", ttypes.Extension(addReceivers=["r4h1"], addLeaseMs=1000, addBytes=5))
    lab.settle()
    assert not future.done()
    lab.devices.release()
    status = now(future)
    assert status.receivers == ["r2h1", "r3h1", "r4h1"]
    assert status.bytes == 10**9 + 5
    assert status.parts[0].grant.leaseMs == 11_000
    assert 10_000 < status.parts[0].leaseLeftMs <= 11_000


def test_extend_without_device_work_answers_at_once(lab):
    granted(lab, "first")
    now(lab.handler.submit(CLIENT, multicast_request()))
    status = now(lab.handler.extend(CLIENT, "a", ttypes.Extension(removeReceivers=["r3h1"])))
    assert (status.state, status.receivers) == (STATE.PENDING, ["r2h1"])
    hold(lab)
    assert now(lab.handler.extend(CLIENT, "first", ttypes.Extension(addLeaseMs=1000))).parts[0].grant.leaseMs == 11_000
    for nothing in (None, ttypes.Extension()):
        with pytest.raises(ttypes.Rejected, match="changes nothing"):
            now(lab.handler.extend(CLIENT, "a", nothing))


def test_extend_is_rejected_when_a_device_refuses_it(lab):
    granted(lab)
    hold(lab)
    future = lab.handler.extend(CLIENT, "a", ttypes.Extension(addReceivers=["r4h1"]))
    lab.settle()
    commands, lab.devices.held = lab.devices.held, None
    lab.devices.denied = "port is broken"
    for command in commands:
        lab.devices._answer(command)
    lab.devices.denied = None
    with pytest.raises(ttypes.Rejected) as refusal:
        now(future)
    assert refusal.value.code == "device_failed"
    assert "port is broken" in refusal.value.message
    assert now(lab.handler.status(CLIENT, "a")).receivers == ["r2h1", "r3h1"]


def test_extend_is_answered_when_its_request_ends(lab):
    granted(lab)
    hold(lab)
    future = lab.handler.extend(CLIENT, "a", ttypes.Extension(addReceivers=["r4h1"]))
    lab.settle()
    now(lab.handler.withdraw(CLIENT, "a"))
    with pytest.raises(ttypes.Ended):
        now(future)


def test_transfer_report_appears_in_status_and_journal(lab):
    granted(lab)
    sent = ttypes.TransferReport(10**9, 1500, 0, ["r3h1", "unknown"])
    report = now(lab.handler.finish(CLIENT, "a", 0, sent)).parts[0].report
    assert report == ttypes.TransferReport(10**9, 1500, 0, ["r3h1"])
    again = now(lab.handler.finish(CLIENT, "a", 0, ttypes.TransferReport(5)))
    assert again.parts[0].report == report, "the first one counts"
    bodies = [body for _, kind, body in read_page(lab.store.journal, 0, 100) if kind == "request"]
    assert '"duration": 1.5' in bodies[-1] or '"duration":1.5' in bodies[-1]


@pytest.mark.parametrize(
    "nothing", [None, ttypes.TransferReport(), ttypes.TransferReport(-1, -1, -1, []), ttypes.TransferReport(None)]
)
def test_empty_transfer_report_is_ignored(lab, nothing):
    granted(lab)
    assert now(lab.handler.finish(CLIENT, "a", 0, nothing)).parts[0].report is None


def test_finish_is_idempotent_and_names_unknown_parts(lab):
    granted(lab)
    for part in (None, 5, -1):
        with pytest.raises(ttypes.Rejected) as refusal:
            now(lab.handler.finish(CLIENT, "a", part, None))
        assert refusal.value.code == "unknown_part"
    assert now(lab.handler.finish(CLIENT, "a", 0, None)).state == STATE.DONE
    assert now(lab.handler.finish(CLIENT, "a", 0, None)).state == STATE.DONE
    with pytest.raises(ttypes.Ended):
        now(lab.handler.withdraw(CLIENT, "a"))
    with pytest.raises(ttypes.UnknownRequest):
        now(lab.handler.status(CLIENT, None))


# ------------------------------------------------------------------------------------------------- rejections


def test_rejection_has_a_code_and_the_max_number_of_racks(lab):
    with pytest.raises(ttypes.Rejected) as refusal:
        now(lab.handler.submit(CLIENT, multicast_request(receivers=["r1h1"])))
    assert (refusal.value.code, refusal.value.maxRacks) == ("sender_among_receivers", None)
    with running(make_fabric(5, [2])) as small:
        with pytest.raises(ttypes.Rejected) as refusal:
            now(small.make_handler().submit(CLIENT, multicast_request(receivers=["r2h1", "r3h1", "r4h1"])))
        assert (refusal.value.code, refusal.value.maxRacks) == ("group_too_wide", 3)
    granted(lab)
    with pytest.raises(ttypes.KeyReused):
        now(lab.handler.submit(CLIENT, multicast_request(size=7)))


def test_unsupported_options_are_not_listed_as_features(lab):
    for refused in (
        lambda: lab.handler.submit(CLIENT, multicast_request(tenant="other")),
        lambda: lab.handler.login(CLIENT, "token"),
    ):
        with pytest.raises(ttypes.Unsupported) as refusal:
            refused()
        assert refusal.value.feature not in lab.handler.version(CLIENT).features
    now(lab.handler.submit(CLIENT, multicast_request(maySplit=False, mayPause=False, tenant="default")))


def test_request_options_reach_the_core(lab):
    now(lab.handler.submit(CLIENT, multicast_request(deadlineMs=1500, priority=3, maySplit=True, mayPause=True)))
    (request,) = lab.look().requests.values()
    asked = request.current
    assert (asked.deadline, asked.priority, asked.may_split, asked.may_pause) == (1.5, 3, True, True)


def test_progress_cannot_be_combined_with_another_extension(lab):
    granted(lab, mayPause=True)
    now(lab.handler.extend(CLIENT, "a", ttypes.Extension(progressBytes=5)))
    assert next(iter(lab.look().requests.values())).parts[0].reached == 5
    with pytest.raises(ttypes.Rejected, match="cannot be combined"):
        now(lab.handler.extend(CLIENT, "a", ttypes.Extension(progressBytes=6, addLeaseMs=1)))


def test_explain_reports_the_resource_that_blocks_a_request(lab):
    assert "explain" in lab.handler.version(CLIENT).features
    granted(lab, "first")
    now(lab.handler.submit(CLIENT, multicast_request("late", ["r2h1", "r4h1"], "r4h2")))
    explanation = now(lab.handler.explain(CLIENT, "late"))
    explanation.validate()
    assert explanation.key == "late" and explanation.message.startswith(
        "The request late waits for a free optical port of r2. The earliest"
    )
    (blocker,) = explanation.blockers
    assert blocker.startswith("port:r2/50 is held by default/first (reservation 1), whose lease ends in ")
    assert 0 < explanation.estimatedStartMs <= 10_000
    assert explanation.suggestion == "Remove the rack r2: `blast extend default/late --remove r2h1`."
    explanation = now(lab.handler.explain(CLIENT, "first"))
    assert explanation.message.startswith("The request first is active") and explanation.blockers is None
    assert explanation.estimatedStartMs is None and explanation.suggestion is None


def test_draining_controller_rejects_new_requests(lab):
    granted(lab)
    status = now(lab.handler.drain(CLIENT, True))
    assert (status.draining, status.active) == (True, 1)
    with pytest.raises(ttypes.Rejected, match="is draining"):
        now(lab.handler.submit(CLIENT, multicast_request(key="b")))
    assert now(lab.handler.drain(CLIENT, False)).draining is False


def test_journal_lists_the_steps_of_a_reservation(lab):
    granted(lab)
    entries = lab.handler.journal(CLIENT, 0, 100)
    notes = [(entry.kind, json.loads(entry.json)["note"]) for entry in entries]
    assert ("reservation", "configuring") in notes and ("reservation", "lit") in notes
    assert [entry.sequence for entry in entries] == sorted(entry.sequence for entry in entries)


def test_numbers_larger_than_64_bits_are_capped():
    with running(make_fabric(4, [4, 4]), CoreSettings(lease_maximum=math.inf, min_rate=0.0)) as lab:
        lab.handler = lab.make_handler()
        grant = granted(lab, size=1 << 62, maxBitsPerSecond=1)
        assert grant.estimatedServiceMs == (1 << 63) - 1
        now(lab.handler.extend(CLIENT, "a", ttypes.Extension(addLeaseMs=(1 << 63) - 1)))
        assert now(lab.handler.status(CLIENT, "a")).parts[0].leaseLeftMs == (1 << 63) - 1


@pytest.mark.parametrize(
    ("more", "code", "limit"),
    [
        ({"size": 1 << 62}, "lease_too_long", "24.0 h"),
        ({"size": 10**9, "maxBitsPerSecond": 1}, "bad_rate", "minimum 10 Mbit/s"),
        ({"size": 1 << 62, "maxBitsPerSecond": 1}, "bad_rate", "minimum 10 Mbit/s"),
        ({"size": 1 << 62, "maxBitsPerSecond": 1, "mayPause": True}, "bad_rate", "minimum 10 Mbit/s"),
    ],
)
def test_request_with_an_excessive_lease_is_rejected(lab, more, code, limit):
    with pytest.raises(ttypes.Rejected) as refusal:
        granted(lab, **more)
    assert refusal.value.code == code
    assert limit in refusal.value.message


# --------------------------------------------------------------------------------------------------- clients


def test_waiting_request_is_withdrawn_when_its_client_vanishes(lab):
    granted(lab, "first")
    future = lab.handler.request(CLIENT, multicast_request(), 5000)
    lab.settle()
    future.cancel()
    lab.handler.disconnected(CLIENT)
    assert now(lab.handler.awaitEvent(CLIENT, "a", 0, 5000)).state == STATE.WITHDRAWN


def test_submitted_and_granted_requests_outlive_their_connection(lab):
    granted(lab, "first")
    now(lab.handler.submit(CLIENT, multicast_request()))
    lab.handler.disconnected(CLIENT)
    for key, after in (("a", 0), ("first", 1)):
        with pytest.raises(ttypes.TimedOut):
            now(lab.handler.awaitEvent(CLIENT, key, after, 100))


def test_reconnected_client_keeps_waiting_after_old_connection_ends(lab):
    granted(lab, "first")
    old, new = Connection(2, "old"), Connection(3, "new")
    first = lab.handler.request(old, multicast_request(), 5000)
    second = lab.handler.request(new, multicast_request(), 5000)
    lab.settle()
    first.cancel()
    lab.handler.disconnected(old)
    with pytest.raises(ttypes.TimedOut):
        now(lab.handler.awaitEvent(new, "a", 0, 150))
    now(lab.handler.finish(CLIENT, "first", 0, None))
    assert now(second).receivers == ["r2h1", "r3h1"]


# ---------------------------------------------------------------------------------------------------- reading


def test_list_requests_returns_pages(lab):
    for number in range(5):
        now(lab.handler.submit(CLIENT, multicast_request(f"k{number}", ["r1h2"])))
    lab.settle()
    first = now(lab.handler.listRequests(CLIENT, None, 2, None))
    assert [r.key for r in first.requests] == ["k0", "k1"]
    second = now(lab.handler.listRequests(CLIENT, None, 2, first.nextCursor))
    third = now(lab.handler.listRequests(CLIENT, None, 2, second.nextCursor))
    assert [r.key for r in second.requests + third.requests] == ["k2", "k3", "k4"]
    assert third.nextCursor is None
    active = ttypes.RequestFilter(states=[STATE.ACTIVE])
    assert len(now(lab.handler.listRequests(CLIENT, active, 9, "")).requests) == 5
    pending = ttypes.RequestFilter(states=[STATE.PENDING])
    assert now(lab.handler.listRequests(CLIENT, pending, 9, "")).requests == []


def test_list_is_complete_although_earlier_requests_are_forgotten(lab):
    keys = [f"k{number}" for number in range(6)]
    for key in keys:
        now(lab.handler.submit(CLIENT, multicast_request(key, ["r1h2"])))
    page = now(lab.handler.listRequests(CLIENT, None, 2, None))
    settings = replace(lab.look().settings, remember_ended=0.0)
    lab.runtime.call(lambda context: context.handle(SettingsChanged(settings))).result(TIMEOUT)
    for key in keys[:3]:
        now(lab.handler.withdraw(CLIENT, key))
    eventually(lambda: not any(("default", key) in lab.look().requests for key in keys[:3]), "them to be forgotten")
    rest = now(lab.handler.listRequests(CLIENT, None, 9, page.nextCursor))
    assert [request.key for request in rest.requests] == keys[3:]


def test_page_size_is_limited(lab):
    keys = [f"k{number}" for number in range(2 * MAX_ON_A_PAGE + 1)]
    for key in keys:
        lab.handler.submit(CLIENT, multicast_request(key, ["r1h2"]))
    lab.settle()
    pages, cursor = [], ""
    while cursor is not None:
        page = now(lab.handler.listRequests(CLIENT, None, 1000, cursor))
        pages.append([request.key for request in page.requests])
        cursor = page.nextCursor
    assert [len(page) for page in pages] == [MAX_ON_A_PAGE, MAX_ON_A_PAGE, 1]
    assert [key for page in pages for key in page] == keys


@pytest.mark.parametrize(("limit", "cursor"), [(0, ""), (1001, ""), (None, ""), (5, "x"), (5, "-1"), (5, "9" * 5000)])
def test_invalid_page_queries_are_rejected(lab, limit, cursor):
    with pytest.raises(ttypes.Rejected):
        lab.handler.listRequests(CLIENT, None, limit, cursor)


def test_fabric_shows_a_lit_tree(lab):
    granted(lab)
    status = now(lab.handler.fabric(CLIENT))
    status.validate()
    assert [r.name for r in status.racks] == ["r1", "r2", "r3", "r4"]
    (tree,) = status.lightTrees
    assert (tree.rootRack, tree.leafRacks, tree.splitters, tree.state) == ("r1", ["r2", "r3"], ["s1"], "lit")
    assert len(tree.crossConnects) == 3
    assert status.racks[0].opticalPorts[0].reservation == tree.reservation
    assert all(rack.connected for rack in status.racks)


def test_fabric_shows_a_warm_tree_of_a_forgotten_request(lab):
    with running(make_fabric(4, [4]), CoreSettings(keep_warm=3600.0, remember_ended=0.01)) as warm:
        warm.handler = handler = warm.make_handler()
        granted(warm)
        now(handler.finish(CLIENT, "a", 0, None))
        eventually(lambda: not warm.look().requests, "that the request is forgotten")
        (tree,) = now(handler.fabric(CLIENT)).lightTrees
        assert (tree.state, tree.rootRack) == ("idle", "r1")


def test_fabric_reports_warm_trees_and_dark_resources(lab):
    with running(make_fabric(4, [4, 4]), CoreSettings(keep_warm=60.0, warm_reserve=0.5)) as kept:
        kept.handler = kept.make_handler()
        for key in ("a", "b", "c"):
            granted(kept, key)
            now(kept.handler.finish(CLIENT, key, 0, None))
            eventually(
                lambda: all(r.state.value == "idle" for r in kept.look().reservations), "that nothing is at work"
            )
        warm = now(kept.handler.fabric(CLIENT)).warm
        warm.validate()
        assert (warm.trees, warm.opticalGrants, warm.warmHits, warm.evicted, warm.reclaimed) == (1, 3, 1, 1, 0)
        pieces = {p.fanOut: (p.opticalSwitch, p.dark, p.lit, p.reserve) for p in warm.resources}
        assert pieces == {None: ("ocs1", 1, 3, 0), 4: ("ocs1", 1, 1, 1)}
    assert now(lab.handler.fabric(CLIENT)).warm is None, "nothing is kept lit"


def test_fabric_reports_the_warnings_of_the_controller(lab):
    class WithWarnings(Healthy):
        def warnings(self):
            return ["It is in safe mode."]

    handler = BlastHandler(lab.runtime, "os-ken", lambda after, limit: (), Gate(OPEN_POLICY, ROLES), WithWarnings())
    assert now(handler.fabric(CLIENT)).warnings == ["It is in safe mode."]
    assert now(lab.handler.fabric(CLIENT)).warnings is None
    with pytest.raises(ttypes.Rejected) as refusal:
        lab.handler.resume(CLIENT)
    assert refusal.value.code == "not_in_safe_mode"


def test_elements_show_reservation_quarantine_and_disconnection(lab):
    granted(lab)
    now(lab.handler.quarantine(CLIENT, "splitter:s2", "cracked"))
    lab.runtime.post(DeviceDisconnected(4, "gone"))
    lab.settle()
    found = {e.name: e for e in now(lab.handler.elements(CLIENT))}
    assert (found["splitter:s1"].state, found["splitter:s1"].reservation) == ("reserved", 1)
    assert (found["splitter:s2"].state, found["splitter:s2"].reason) == ("unusable", "cracked")
    assert found["port:r4/50"].state == "free"
    assert (found["tor:0000000000000004"].state, found["switch:ocs1"].state) == ("disconnected", "free")
    now(lab.handler.releaseElement(CLIENT, "splitter:s2"))
    for element in ("splitter:s2", "nothing", None):
        with pytest.raises(ttypes.Rejected):
            now(lab.handler.releaseElement(CLIENT, element))


# ------------------------------------------------------------------------------------- fibers


def test_verify_fabric_returns_its_report():
    with running(make_fabric(1)) as lab:
        lab.runtime.post(ElementQuarantined("port:r1/50", "broken"))
        handler = lab.make_handler()
        report = handler.verifyFabric(CLIENT).result(TIMEOUT)
        assert (report.faults, report.skipped) == ([], ["port:r1/50: broken"])
        assert "verify" in handler.version(CLIENT).features


def test_fiber_report_is_converted_to_thrift():
    report = FiberReport((FiberFault("output:s1/7", "the output is dead"),), ("port:r1/50: broken",), 4)
    converted = convert.fiber_report(report)
    assert [(fault.element, fault.message) for fault in converted.faults] == [("output:s1/7", "the output is dead")]
    assert (converted.skipped, converted.probed) == (["port:r1/50: broken"], 4)


def test_fiber_check_logs_its_report(caplog):
    caplog.set_level(logging.INFO)
    with running(make_fabric(1)) as lab:
        lab.runtime.post(ElementQuarantined("port:r1/50", "broken"))
        check_fibers(lab.runtime)
        lab.settle()
    assert "not probed: port:r1/50: broken" in caplog.text
    assert "the fiber check probed nothing" in caplog.text
    assert "wired as configured" not in caplog.text


def test_fiber_report_line_counts_probed_fibers():
    (*_, line) = report_lines(FiberReport((), ("port:r1/50: broken",), 5))
    assert line.message == "fiber check complete: all probed fibers match the configuration (5 probed, 1 not)"


def test_fiber_faults_are_logged_as_warnings():
    lines = list(report_lines(FiberReport((FiberFault("output:s1/7", "the output is dead"),), (), 3)))
    assert [(line.level, line.event, line.message) for line in lines] == [
        (logging.WARNING, "fiber_fault", "output:s1/7: the output is dead"),
        (logging.INFO, "fibers", "fiber check complete: 1 differ from the configuration (3 probed, 0 not)"),
    ]

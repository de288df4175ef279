"""The controller and its devices fail, or a third party changes them, while light trees are lit: devices converge.

The real controller is killed, reloaded, given a full disk, and started beside another one on the same fabric. The
optical switch's agent is disconnected, frozen and rebooted; a ToR's bridge is deleted and created again, and its rules
are changed. Clients lose no answer.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sysconfig
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from blast_api.ttypes import Extension, MulticastRequest, PartState, Rejected, RequestStatus
from blast_client import Client, ControllerUnreachableError
from blast_controller.store.reader import JournalReader

if "BLAST_RUN_EVERY_TEST" not in os.environ:
    pytest.importorskip("mininet")

from mininet_topos.kernel.addresses import ReservedAddresses
from mininet_topos.kernel.process import LabProcess
from mininet_topos.lab.lab import blast_controller
from mininet_topos.topology.build import tor_name
from tests.support.controller.fabric_truth import (
    assert_converged,
    dump_flows,
    guards,
    held_circuits,
    held_rules,
    ofctl,
    rule_ages,
    tl1,
)
from tests.support.controller.fault_bench import EIGHT_RACKS, TIMEOUT, FaultBench, Lab, fault_bench, wait_for
from tests.support.interrupted import frozen
from tests.support.transport.live_transfer import LiveTransfer
from tests.support.waiting import eventually

pytestmark = pytest.mark.lab

SLOW = 1.0
FOREIGN = "cookie=0xfeed,priority=50000,ip,nw_dst=239.77.200.1,actions=drop"
STALE = "cookie=0xb1a5000000ffffff,priority=40000,in_port=91,ip,nw_src=10.0.9.9,nw_dst=239.77.99.99,actions=output:1"
TOR = 5


@pytest.fixture(scope="module")
def lab_bench() -> Iterator[FaultBench]:
    with fault_bench() as bench:
        yield bench


@pytest.fixture
def bench(lab_bench: FaultBench) -> Iterator[FaultBench]:
    """Yield the shared lab, dark and without faults before and after each test."""
    yield lab_bench
    lab_bench.lab.faults.slow_mirrors(0)
    ofctl(lab_bench.lab, "del-flows", TOR, "cookie=0xfeed/-1")
    if lab_bench.lab.controller_pid is None:
        lab_bench.restart_controller()
    lab_bench.clear()


@pytest.mark.parametrize("end", [Lab.kill_controller, Lab.stop_controller], ids=["killed", "stopped"])
def test_restart_leaves_devices_unchanged_and_repeats_grant(bench: FaultBench, end) -> None:
    request = bench.new_request("r4h1", "r5h1", "r6h1")
    with bench.bystander():
        grant = bench.grant(request)
        held, ages = held_circuits(bench.lab), rule_ages(bench.lab)
        end(bench.lab)
        assert held_circuits(bench.lab) == held and rule_ages(bench.lab).keys() == ages.keys()
        bench.restart_controller()
        assert bench.grant(request) == grant
        assert_converged(bench.lab, bench.client)
        assert_untouched(bench, held, ages)
        assert bench.client.reconcile(dry_run=False).commands == []


def assert_untouched(bench: FaultBench, held: set[tuple[int, int]], ages: dict[str, float]) -> None:
    """Check that devices hold the same, and that no rule was rewritten, which would reset its age."""
    assert held_circuits(bench.lab) == held
    after = rule_ages(bench.lab)
    assert after.keys() == ages.keys() and all(after[rule] > age for rule, age in ages.items())


def test_reload_touches_no_device_and_keeps_leases(bench: FaultBench) -> None:
    before = bench.lab.config.read_text()
    request = bench.new_request("r4h1", "r5h1", "r6h1")
    grant = bench.grant(request)
    held, ages = held_circuits(bench.lab), rule_ages(bench.lab)
    try:
        _reload(bench, before.replace("min_lease_ms = 600000", "min_lease_ms = 77000", 1))
        assert_untouched(bench, held, ages)
        (part,) = bench.client.status(request.key).parts
        assert part.grant.leaseMs == grant.leaseMs == 600_000
        bench.client.finish(request.key)
        assert bench.grant(bench.new_request("r4h1", "r5h1", "r6h1")).leaseMs == 77_000
    finally:
        _reload(bench, before)


def _reload(bench: FaultBench, config: str) -> None:
    log = bench.lab.directory / "controller.log"
    before = log.read_text().count("event=reload")
    bench.lab.config.write_text(config)
    os.kill(bench.lab.controller_pid, signal.SIGHUP)
    eventually(lambda: log.read_text().count("event=reload") > before, "the reload in the log")


def test_old_tree_survives_controller_kill_during_extension(bench: FaultBench) -> None:
    request = bench.new_request("r4h1", "r5h1", "r6h1")
    with bench.bystander():
        bench.grant(request)
        bench.lab.faults.slow_mirrors(SLOW)
        asking = threading.Thread(target=_extend, args=(bench.lab.thrift, request.key, "r7h1"))
        asking.start()
        bench.wait_state(request, "changing")
        bench.lab.kill_controller()
        bench.lab.faults.slow_mirrors(0)
        asking.join()
        bench.restart_controller()
        bench.wait_state(request, "lit")
        assert_converged(bench.lab, bench.client)
        assert bench.client.status(request.key).receivers == ["r5h1", "r6h1"], "no client was notified of the extension"
        bench.client.extend(request.key, Extension(addReceivers=["r7h1"]))
        assert sorted(bench.tree(request).leafRacks) == ["r5", "r6", "r7"]
        assert_converged(bench.lab, bench.client)


def _extend(address: str, key: str, host: str) -> None:
    # The controller is killed under it.
    with suppress(ControllerUnreachableError), Client(address) as client:
        client.extend(key, Extension(addReceivers=[host]))


def test_pending_requests_keep_their_order_after_restart(bench: FaultBench) -> None:
    blocker, *waiting = [bench.new_request("r4h1", "r5h1", "r6h1") for _ in range(4)]
    with bench.bystander():
        bench.grant(blocker)
        for request in waiting:
            assert bench.client.submit(request).state == PartState.PENDING
        bench.lab.kill_controller()
        bench.restart_controller()
        for request in waiting:
            assert bench.client.submit(request).state == PartState.PENDING
        last = blocker
        for request in waiting:
            bench.client.finish(last.key)
            assert bench.client.await_event(request.key, 0, 10).grant is not None
            later = waiting[waiting.index(request) + 1 :]
            assert all(bench.client.status(r.key).state == PartState.PENDING for r in later)
            last = request
        assert_converged(bench.lab, bench.client)


# ---------------------------------------------------------------------------------------------------------- full disk


@pytest.fixture
def disk_bench(tmp_path: Path) -> Iterator[FaultBench]:
    """Yield a lab whose controller keeps its journal on a file system of 1 MiB."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "blast-test", str(tmp_path)], check=True)
    try:
        with Lab(EIGHT_RACKS, controller=None, min_lease_ms=600_000) as lab:
            lab.config.write_text(lab.config.read_text().replace(str(lab.journal), str(tmp_path / "journal.sqlite")))
            lab.start_controller()
            with closing(FaultBench(lab)) as bench:
                bench.wait_devices()
                yield bench
            lab.stop_controller()
    finally:
        subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)


def test_full_disk_stops_admission_and_nothing_else(disk_bench: FaultBench, tmp_path: Path) -> None:
    bench, filler = disk_bench, tmp_path / "filler"
    held_back = bench.new_request("r4h1", "r5h1", "r6h1")
    refused = bench.new_request("r7h1", "r8h1")
    with bench.bystander():
        circuits, ages = held_circuits(bench.lab), rule_ages(bench.lab)
        _fill(filler)
        answers: list[RequestStatus] = []
        asking = threading.Thread(target=_submit, args=(bench.lab.thrift, held_back, answers))
        asking.start()
        log = bench.lab.directory / "controller.log"
        wait_for(log.read_text, lambda text: "the journal cannot be written" in text, "the disk to be found full")
        wait_for(lambda: _refusal(bench, refused), lambda code: code == "journal_unavailable", "admission to end")
        if not _is_written(filler.parent, held_back):
            # The log of the journal may have had room for one commit more.
            assert held_circuits(bench.lab) == circuits, "devices do not change for a request that is not on disk"
            assert rule_ages(bench.lab).keys() == ages.keys()
        bench.client.ping()
        assert next(tree.state for tree in bench.client.fabric().lightTrees) == "lit", "reads still work"
        filler.unlink()
        asking.join(TIMEOUT)
        assert answers and answers[0].key == held_back.key, "the answer leaves when it is durable"
        assert bench.client.await_event(held_back.key, 0, TIMEOUT).grant is not None
        wait_for(lambda: _refusal(bench, refused), lambda code: not code, "admission to be open again")
        assert bench.grant(refused).receivers == ["r8h1"]
        assert_converged(bench.lab, bench.client)
        for request in (held_back, refused):
            bench.client.finish(request.key)


def _is_written(directory: Path, request: MulticastRequest) -> bool:
    """Return whether a request has a reservation in the journal."""
    with closing(JournalReader(directory / "journal.sqlite")) as journal:
        entries = [entry for entry in journal.read(0, 10_000) if entry.kind == "reservation" and entry.body is not None]
    return any(entry.body["request"][1] == request.key for entry in entries)


def _fill(filler: Path) -> None:
    with filler.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        while True:
            file.write(bytes(4096))


def _submit(address: str, request: MulticastRequest, answers: list[RequestStatus]) -> None:
    with suppress(ControllerUnreachableError), Client(address, timeout=TIMEOUT * 2) as client:
        answers.append(client.submit(request))


def _refusal(bench: FaultBench, request: MulticastRequest) -> str:
    """Submit a request; return the code of its rejection, `no answer`, or an empty string if it was admitted."""
    try:
        with Client(bench.lab.thrift, timeout=1) as client:
            client.submit(request)
    except Rejected as refusal:
        return refusal.code
    except ControllerUnreachableError:
        return "no answer"
    return ""


# ---------------------------------------------------------------------------------------------- a second controller


@pytest.fixture
def addresses() -> Iterator[ReservedAddresses]:
    with closing(ReservedAddresses()) as held:
        yield held


def test_tors_reject_second_controller_with_its_own_journal(
    bench: FaultBench, tmp_path: Path, addresses: ReservedAddresses
) -> None:
    """TL1 knows no master: the second may open a session, finds circuits that are not its own, and touches none."""
    lab = bench.lab
    bench.lab.kill_controller()
    bench.restart_controller()
    text, openflow = _elsewhere(lab, addresses)
    config = tmp_path / "second.toml"
    config.write_text(text.replace("journal.sqlite", "second.sqlite").replace("recording.sqlite", "seen.sqlite"))
    with bench.bystander():
        circuits, rules, intact = held_circuits(lab), held_rules(lab), guards(lab)
        second = LabProcess("second controller", blast_controller(config), lab.id, tmp_path / "second.log")
        try:
            thrift = str(second.wait_ready(TIMEOUT)["thrift"])
            with also_controlled_from(lab, openflow), Client(thrift) as client:
                wait_for(client.fabric, lambda f: f.opticalSwitches[0].connected, "the TL1 session of the second")
                log = tmp_path / "second.log"
                wait_for(log.read_text, lambda text: "another controller is the master" in text, "a ToR to refuse it")
                foreign = client.reconcile(dry_run=True).foreign
                assert {f"{i} to {o} on ocs1" for i, o in circuits} <= set(foreign)
                request = bench.new_request("r4h1", "r5h1")
                assert client.submit(request).state == PartState.PENDING
                assert not any(rack.connected for rack in client.fabric().racks)
                assert client.reconcile(dry_run=False).commands == []
                client.withdraw(request.key)
            assert held_circuits(lab) == circuits and held_rules(lab) == rules and guards(lab) == intact
        finally:
            second.stop()
        assert_converged(bench.lab, bench.client)


def _elsewhere(lab: Lab, addresses: ReservedAddresses) -> tuple[str, str]:
    """Return the lab's configuration for a controller at other addresses, and its OpenFlow address."""
    openflow, thrift, http = (addresses.take() for _ in range(3))
    text = lab.config.read_text()
    return text.replace(lab.openflow, openflow).replace(lab.thrift, thrift).replace(lab.http, http), openflow


@contextmanager
def also_controlled_from(lab: Lab, openflow: str) -> Iterator[None]:
    """Add a second controller to every ToR for the duration of the block, which clears no rules."""
    for datapath in lab.plan.datapaths:
        create = ["--id=@second", "create", "Controller", f'target="tcp:{openflow}"', "max_backoff=1000"]
        _vsctl(*create, "--", "add", "Bridge", lab.names.bridge(datapath), "controller", "@second")
    try:
        yield
    finally:
        for row in _vsctl("--bare", "--columns=_uuid", "find", "Controller", f'target="tcp:{openflow}"').split():
            for datapath in lab.plan.datapaths:
                _vsctl("remove", "Bridge", lab.names.bridge(datapath), "controller", row)


def _vsctl(*words: str) -> str:
    return subprocess.run(["ovs-vsctl", "--timeout=10", *words], check=True, capture_output=True, text=True).stdout


# ----------------------------------------------------------------------------------------------------- optical switch


def test_request_is_granted_after_tl1_disconnect_during_connect(bench: FaultBench) -> None:
    request = bench.new_request("r4h1", "r5h1", "r6h1")
    with bench.bystander():
        bench.lab.faults.slow_mirrors(SLOW)
        bench.client.submit(request)
        bench.wait_state(request, "configuring")
        bench.lab.faults.cut_sessions()
        bench.lab.faults.slow_mirrors(0)
        assert bench.client.await_event(request.key, 0, 20).grant is not None
        assert_converged(bench.lab, bench.client)


def test_frozen_optical_switch_only_delays_grants(bench: FaultBench) -> None:
    request = bench.new_request("r4h1", "r5h1", "r6h1")
    with bench.bystander():
        with frozen(bench.lab.optical_switch.agent_pid):
            bench.client.submit(request)
            bench.wait_for(lambda f: not f.opticalSwitches[0].connected, "the controller to notice")
            assert bench.client.status(request.key).state == PartState.PENDING
        assert bench.client.await_event(request.key, 0, 20).grant is not None
        assert_converged(bench.lab, bench.client)


def test_controller_restores_circuits_of_rebooted_switch(bench: FaultBench) -> None:
    request = bench.new_request("r4h1", "r5h1", "r6h1")
    grant = bench.grant(request)
    with LiveTransfer(bench.lab, "r4h1", grant) as transfer:
        before = held_circuits(bench.lab)
        bench.lab.optical_switch.stop_agent()
        bench.lab.optical_switch.start_agent()
        assert held_circuits(bench.lab) != before, "a power cycle forgets"
        assert transfer.receives("r5h1", 15) and transfer.receives("r6h1", 15), "the light tree is restored"
    assert held_circuits(bench.lab) == before
    assert_converged(bench.lab, bench.client)
    assert bench.client.status(request.key).state == PartState.ACTIVE, "the grant held all the time"


def test_foreign_circuits_are_reported_and_left_alone(bench: FaultBench) -> None:
    """One on free ports, one from a free splitter output to a free rack: reconciliation leaves both in place."""
    foreign = {(7, 8), (12, 7)}
    with bench.bystander():
        tl1(bench.lab, "connect", *foreign)
        try:
            dry = blast(bench, "reconcile", "--dry-run")
            assert all(f"{i} to {o} on ocs1" in dry for i, o in foreign), dry
            report = bench.client.reconcile(dry_run=False)
            assert report.commands == [] and len(report.foreign) >= 2
            assert foreign <= held_circuits(bench.lab)
            bench.lab.kill_controller()
            bench.restart_controller()
            assert_converged(bench.lab, bench.client, foreign)
            unusable = {e.name: e.reason for e in bench.client.elements() if e.state == "unusable"}
            assert {"port:r7/91", "port:r8/91"} <= set(unusable), unusable
            assert "which Blast did not create" in unusable["port:r7/91"]
        finally:
            tl1(bench.lab, "disconnect", *foreign)
    bench.client.reconcile(dry_run=False)
    bench.wait_for(lambda f: all(not p.unusable for r in f.racks for p in r.opticalPorts), "the ports to be usable")


def test_reconciliation_restores_manually_removed_circuit(bench: FaultBench) -> None:
    request = bench.new_request("r4h1", "r5h1", "r6h1")
    bench.grant(request)
    with bench.bystander():
        lost = next(c for c in bench.tree(request).crossConnects if c.switchOutput == 5)
        tl1(bench.lab, "disconnect", (lost.switchInput, lost.switchOutput))
        assert len(bench.client.reconcile(dry_run=True).commands) == 1
        assert len(bench.client.reconcile(dry_run=False).commands) == 1
        assert_converged(bench.lab, bench.client)


def blast(bench: FaultBench, *words: str) -> str:
    """Run a `blast` command and return its output."""
    command = [str(Path(sysconfig.get_path("scripts")) / "blast"), *words, "--controller", bench.lab.thrift]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


# --------------------------------------------------------------------------------------------------------------- ToRs


def test_controller_restores_rules_of_recreated_bridge(bench: FaultBench) -> None:
    request = bench.new_request("r4h1", "r5h1", "r6h1")
    grant = bench.grant(request)
    intact = guards(bench.lab)
    with bench.bystander(), LiveTransfer(bench.lab, "r4h1", grant) as transfer:
        subprocess.run(["ovs-vsctl", "--timeout=10", "del-br", bench.lab.names.bridge(TOR)], check=True)
        tor = bench.lab.net[tor_name(TOR)]
        tor.start(bench.lab.net.controllers)
        type(tor).batchStartup([tor])
        assert transfer.receives("r5h1", 20), "its rules are restored"
    assert transfer.missed_by("r6h1") == 0 and transfer.missed_by("r5h1") > 0
    assert_converged(bench.lab, bench.client)
    assert guards(bench.lab) == intact
    assert bench.client.status(request.key).state == PartState.ACTIVE


def test_reconnect_repairs_stale_and_missing_rules_only(bench: FaultBench) -> None:
    request = bench.new_request("r4h1", "r5h1", "r6h1")
    grant = bench.grant(request)
    intact = guards(bench.lab)
    with bench.bystander(), LiveTransfer(bench.lab, "r4h1", grant) as transfer:
        with disconnected(bench):
            ofctl(bench.lab, "del-flows", TOR, f"ip,nw_dst={grant.groupAddress}")
            ofctl(bench.lab, "del-flows", TOR, "cookie=0xb1a5000000000000/0xffff0000ffffffff")
            ofctl(bench.lab, "add-flow", TOR, STALE)
            ofctl(bench.lab, "add-flow", TOR, FOREIGN)
        assert transfer.receives("r5h1", 20), "the missing rule is restored"
    assert transfer.missed_by("r6h1") == 0
    assert_converged(bench.lab, bench.client)
    assert "239.77.99.99" not in str(dump_flows(bench.lab, TOR)), "the stale rule is gone"
    assert guards(bench.lab) == intact
    assert "0xfeed" in str(dump_flows(bench.lab, TOR, "cookie=0xfeed/-1")), "the foreign rule stays"


def test_reconciliation_repairs_changed_rules_on_demand(bench: FaultBench) -> None:
    request = bench.new_request("r4h1", "r5h1", "r6h1")
    grant = bench.grant(request)
    with bench.bystander():
        ofctl(bench.lab, "del-flows", TOR, f"ip,nw_dst={grant.groupAddress}")
        ofctl(bench.lab, "add-flow", TOR, STALE)
        # The periodic audit may have repaired a part of it already.
        found = bench.client.reconcile(dry_run=True).commands
        assert set(bench.client.reconcile(dry_run=False).commands) <= set(found)
        assert_converged(bench.lab, bench.client)
        assert "239.77.99.99" not in str(dump_flows(bench.lab, TOR))


@contextmanager
def disconnected(bench: FaultBench) -> Iterator[None]:
    """Point the ToR at a closed controller port; its rules stay, because a controller is still configured."""
    bridge = bench.lab.names.bridge(TOR)
    words = ["ovs-vsctl", "--timeout=10"]
    controller = subprocess.run(
        [*words, "--bare", "get", "Bridge", bridge, "controller"], check=True, capture_output=True, text=True
    ).stdout.strip(" []\n")
    subprocess.run([*words, "set", "Controller", controller, 'target="tcp:127.0.0.1:1"'], check=True)
    try:
        bench.wait_for(lambda f: not f.racks[TOR - 1].connected, "the controller to notice")
        yield
    finally:
        target = f'target="tcp:{bench.lab.openflow}"'
        subprocess.run([*words, "set", "Controller", controller, target], check=True)
    bench.wait_devices()

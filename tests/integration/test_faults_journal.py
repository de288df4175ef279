"""The journal's disk full, and a second controller started on a fabric that has one."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from blast_api.ttypes import MulticastRequest, PartState, Rejected, RequestStatus
from blast_client import Client, ControllerUnreachable
from blast_controller.store.reader import JournalReader

if "BLAST_RUN_EVERY_TEST" not in os.environ:
    pytest.importorskip("mininet")

from mininet_topos.addresses import ReservedAddresses
from mininet_topos.lab import blast_controller
from mininet_topos.process import LabProcess
from tests.support.fabric_truth import assert_converged, guards, held_circuits, held_rules, rule_ages
from tests.support.fault_bench import EIGHT_RACKS, PATIENCE, FaultBench, Lab, fault_bench, wait_for

pytestmark = pytest.mark.lab

DISK = "1m"
RETRY_SECONDS = 1.0
"""How long a ToR waits before it connects again."""


@pytest.fixture(scope="module")
def lab_bench() -> Iterator[FaultBench]:
    with fault_bench() as bench:
        yield bench


@pytest.fixture
def bench(lab_bench: FaultBench) -> Iterator[FaultBench]:
    yield lab_bench
    lab_bench.clear()


@contextmanager
def small_disk(directory: Path) -> Iterator[Path]:
    """A file system of its own, of 1 MiB."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "blast-test", str(directory)], check=True)
    try:
        yield directory
    finally:
        subprocess.run(["umount", str(directory)], check=True)


def on_disk(config: Path, directory: Path) -> None:
    """Let the controller keep its journal there."""
    lines = config.read_text().splitlines()
    at = lines.index("[journal]")
    lines[at + 1] = f"file = {json.dumps(str(directory / 'journal.sqlite'))}"
    config.write_text("\n".join(lines) + "\n")


def test_a_full_disk_stops_admission_and_nothing_else(tmp_path: Path) -> None:
    with small_disk(tmp_path) as disk, Lab(EIGHT_RACKS, controller=None, lease_minimum_ms=600_000) as lab:
        on_disk(lab.config, disk)
        lab.start_controller()
        bench = FaultBench(lab)
        bench.wait_devices()
        try:
            _fill_and_free(bench, disk / "filler")
        finally:
            bench.close()
            lab.stop_controller()


def _fill_and_free(bench: FaultBench, filler: Path) -> None:
    """What happens from a full disk until there is space again."""
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
            assert held_circuits(bench.lab) == circuits, "no device has heard of a request that is not on disk"
            assert rule_ages(bench.lab).keys() == ages.keys()
        bench.client.ping()
        assert next(tree.state for tree in bench.client.fabric().lightTrees) == "lit", "looking is still possible"
        filler.unlink()
        asking.join(PATIENCE)
        assert answers and answers[0].key == held_back.key, "the answer leaves when it is durable"
        assert bench.client.await_event(held_back.key, 0, PATIENCE).grant is not None
        wait_for(lambda: _refusal(bench, refused), lambda code: not code, "admission to be open again")
        assert bench.grant(refused).receivers == ["r8h1"]
        assert_converged(bench.lab, bench.client)
        for request in (held_back, refused):
            bench.client.finish(request.key)


def _is_written(directory: Path, request: MulticastRequest) -> bool:
    """Whether a request has a reservation in the journal."""
    with closing(JournalReader(directory / "journal.sqlite")) as journal:
        entries = [entry for entry in journal.read(0, 10_000) if entry.kind == "reservation" and entry.body is not None]
    return any(entry.body["request"][1] == request.key for entry in entries)


def _fill(filler: Path) -> None:
    with filler.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        while True:
            file.write(bytes(4096))


def _submit(address: str, request: MulticastRequest, answers: list[RequestStatus]) -> None:
    with suppress(ControllerUnreachable), Client(address, timeout=PATIENCE * 2) as client:
        answers.append(client.submit(request))


def _refusal(bench: FaultBench, request: MulticastRequest) -> str:
    """The code of a refused request; empty if it was admitted."""
    try:
        with Client(bench.lab.thrift, timeout=1) as client:
            client.submit(request)
    except Rejected as refusal:
        return refusal.code
    except ControllerUnreachable:
        return "no answer"
    return ""


@pytest.fixture
def addresses() -> Iterator[ReservedAddresses]:
    with closing(ReservedAddresses()) as held:
        yield held


def test_a_second_controller_on_the_same_journal_does_not_start(
    bench: FaultBench, tmp_path: Path, addresses: ReservedAddresses
) -> None:
    with bench.bystander():
        config = tmp_path / "second.toml"
        config.write_text(_elsewhere(bench.lab, addresses)[0])
        ended = subprocess.run(blast_controller(config), capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert ended.returncode == 1, ended.stderr
        assert "journal" in ended.stderr and str(bench.lab.controller_pid) in ended.stderr, ended.stderr
        assert_converged(bench.lab, bench.client)


def test_a_second_controller_with_a_journal_of_its_own_is_refused_by_the_tors(
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
            thrift = str(second.wait_ready(PATIENCE)["thrift"])
            with also_controlled_from(lab, openflow), Client(thrift) as client:
                wait_for(client.fabric, lambda f: f.opticalSwitches[0].connected, "the TL1 session of the second")
                log = tmp_path / "second.log"
                wait_for(log.read_text, lambda text: "another controller is the master" in text, "a ToR to refuse it")
                time.sleep(3 * RETRY_SECONDS)  # in which it comes back, and should say nothing more
                refusals = [line for line in log.read_text().splitlines() if "another controller is the master" in line]
                assert len(refusals) <= len(lab.plan.datapaths), "one line for each ToR, however often it comes back"
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
    """The lab's configuration for a controller that listens elsewhere, and where it takes ToRs."""
    openflow, thrift, http = (addresses.take() for _ in range(3))
    text = lab.config.read_text()
    return text.replace(lab.openflow, openflow).replace(lab.thrift, thrift).replace(lab.http, http), openflow


@contextmanager
def also_controlled_from(lab: Lab, openflow: str) -> Iterator[None]:
    """Every ToR gets a second controller for the time of the block; that clears no rules."""
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

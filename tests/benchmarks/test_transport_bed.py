"""The pure parts of the transport's benchmarks, and the programs that make faults."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mininet_topos.kernel.errors import HostError
from tests.support.controller.ssh_server import free_port
from tests.support.waiting import eventually


def row(tool: str, rate: float | None, receivers: int, gbps: float) -> dict[str, object]:
    return {"tool": tool, "shape": f"{rate}", "rate_mbps": rate, "receivers": receivers, "gbps": gbps}


def test_claims_are_ratios_of_the_same_cell():
    from benchmarks.transfers.bed.comparison import claims

    rows = [
        row("floor", None, 7, 6.0), row("optical", None, 7, 3.0), row("udpcast", None, 7, 0.25),
        row("uftp", None, 7, 0.3), row("pipeline", None, 7, 1.0), row("naive", None, 7, 2.0),
        row("optical", 400.0, 3, 0.38), row("optical", 400.0, 15, 0.19),
    ]  # fmt: skip
    found = {claim.claim: (claim.value, claim.kept) for claim in claims(rows)}
    assert found["optical ÷ floor, unshaped, 7 receivers"] == (0.5, True)
    assert found["optical ÷ best of udpcast, uftp, unshaped, 7 receivers"] == (pytest.approx(10.0), True)
    assert found["pipeline ÷ naive TCP, unshaped, 7 receivers"] == (0.5, False)
    limit = 0.4 * 1456 / 1514
    assert found["optical ÷ payload limit, 400 Mbit/s, 3 receivers"] == (pytest.approx(0.38 / limit), True)
    assert found["optical, 400 Mbit/s: slowest ÷ fastest, 3 to 15 receivers"] == (0.5, False)
    assert not any("naive TCP, 400" in words for words in found)
    failed = {"tool": "optical", "rate_mbps": None, "receivers": 7}
    assert claims([failed, rows[0]]) == [], "a tool that always failed decides nothing"


class BedThatStays:
    """A bed that cannot be removed."""

    def __init__(self, plan: object) -> None:
        self.plan = plan

    def __enter__(self) -> BedThatStays:
        return self

    def __exit__(self, *_: object) -> None:
        raise HostError("the bed does not go")


@pytest.mark.cc
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_results_are_printed_although_bed_removal_fails(monkeypatch, capsys, form):
    from benchmarks.transfers import rates as transport
    from benchmarks.transfers.bed import comparison, script
    from benchmarks.transfers.bed.run import Outcome

    monkeypatch.setattr(script, "Bed", BedThatStays)
    monkeypatch.setattr(comparison, "transfer", lambda *_: Outcome(0.5, "", {}))
    words = ["--cells", "unshaped:1 unshaped:2", "--tools", "floor", "--megabytes", "1", "--repeats", "1"]
    monkeypatch.setattr(sys, "argv", ["transport.py", *words, *form])
    with pytest.raises(HostError, match="does not go"):
        transport.main()
    assert "unshaped, 1 receivers" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["", "fast", "-1", "0", "nan", "inf"])
def test_a_shape_is_a_rate_or_none(text):
    from benchmarks.transfers.bed.shape import shape

    with pytest.raises(ValueError):
        shape(text)


def test_limits_are_those_of_full_frames():
    from benchmarks.transfers.bed.shape import UNSHAPED, shape

    assert shape("unshaped") is UNSHAPED
    assert UNSHAPED.udp_limit is None
    assert UNSHAPED.lines("eth0") == []
    gigabit = shape("1000")
    assert gigabit.udp_limit == pytest.approx(0.9617e9, rel=1e-4)
    assert gigabit.tcp_limit == pytest.approx(0.9564e9, rel=1e-4)


@given(st.integers(1, 60), st.integers(1, 4))
def test_taktuk_arguments_name_every_host_once(count, arity):
    from benchmarks.transfers.bed.tools.peers import below

    hosts = [f"h{number}" for number in range(count)]
    words = below(hosts, arity)
    assert sorted(words[place + 1] for place, word in enumerate(words) if word == "-m") == sorted(hosts)
    depths = {0}
    depth = 0
    for word in words:
        depth += (word == "-[") - (word == "-]")
        depths.add(depth)
    assert depth == 0
    assert max(depths) == count - 1 if arity == 1 else max(depths) <= count.bit_length()


def test_files_are_compared_to_their_end(tmp_path):
    from benchmarks.transfers.bed.contents import same, write_random

    one, other = tmp_path / "one", tmp_path / "other"
    write_random(one, (1 << 20) + 7)
    content = one.read_bytes()
    other.write_bytes(content)
    assert len(content) == (1 << 20) + 7
    assert same(one, other)
    for wrong in (content[:-1], content + b"x", content[:-1] + bytes([content[-1] ^ 1]), b""):
        other.write_bytes(wrong)
        assert not same(one, other)
    assert not same(one, tmp_path / "nowhere")


def test_warm_memory_shrinks_while_copies_take_memory(tmp_path, monkeypatch):
    from benchmarks.transfers.bed import contents

    machine = 40 << 20
    copies = 0

    def free(_):
        return machine - copies - sum(file.stat().st_size for file in tmp_path.iterdir())

    monkeypatch.setattr(contents, "memory", free)
    for name, value in (("_MIN_FREE", 8 << 20), ("_MAX_FREE", 12 << 20), ("_STEP", 2 << 20)):
        monkeypatch.setattr(contents, name, value)
    with contents.WarmMemory(tmp_path) as warm:
        for _ in range(2):
            copies = 0
            warm.fill()
            assert (10 << 20) <= free("") <= (12 << 20)
            for _ in range(30):
                copies += 1 << 20
                eventually(lambda: not free("") < (8 << 20) <= machine - copies, "memory to be freed")  # noqa: B023
    assert list(tmp_path.iterdir()) == []


def test_lack_of_memory_is_reported_with_advice():
    from benchmarks.transfers.bed.contents import require_room
    from benchmarks.transfers.bed.failures import PrerequisiteError

    with pytest.raises(PrerequisiteError, match="give fewer --megabytes"):
        require_room(1 << 50, 2)


RECEIVE = """
import socket, struct, sys
receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.setsockopt(socket.IPPROTO_UDP, 104, 1)
receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
receiver.settimeout(30)
receiver.bind(("127.0.0.1", 0))
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.setsockopt(socket.IPPROTO_UDP, 103, 1000)
sender.connect(receiver.getsockname())
kept = []
for burst in range(200):
    sender.send(b"".join(struct.pack("<I", burst * 40 + n) + bytes([n]) * 996 for n in range(40)))
    parts = [bytearray(4 if n % 2 == 0 else 996) for n in range(80)]
    length, _, _, _ = receiver.recvmsg_into(parts)
    assert length % 1000 == 0
    for n in range(length // 1000):
        (number,) = struct.unpack("<I", parts[2 * n])
        assert parts[2 * n + 1] == bytes([number % 40]) * 996 and number // 40 == burst
        kept.append(number)
assert kept == sorted(set(kept))
print(len(kept))
"""


@pytest.mark.cc
def test_lost_datagrams_are_cut_out_of_super_packets(tmp_path):
    from benchmarks.transfers.bed.programs import compile_into

    library = compile_into(tmp_path, "lossy")
    settings = {
        "LOSSY_SHARE": "0.02",
        "LOSSY_SEED": "7",
        "LOSSY_COUNT": str(tmp_path / "count"),
        "LOSSY_DATAGRAM": "1000",
    }
    environment = {**os.environ, **settings, "LD_PRELOAD": str(library)}
    done = subprocess.run([sys.executable, "-c", RECEIVE], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    lost, seen = struct.unpack("=QQ", (tmp_path / "count").read_bytes())
    assert seen == 8000
    assert int(done.stdout) == seen - lost
    # 160 expected, standard deviation 12.5.
    assert 100 < lost < 220


LIGHT = """
import socket, sys
from pathlib import Path
from blast_transport.blocks.layout import BlockLayout
from blast_transport.datagrams.compiled_intake import CompiledDatagrams, open_datagrams
from blast_transport.store.opening import open_assembly
from blast_transport.wire.datagram import HEADER
from tests.support.transport.datagrams import bound_socket, delivered, on_one_processor
from tests.support.transport.engines import file_store
store = file_store("compiled", Path(sys.argv[1]), BlockLayout(200 * 40 * 984, 984, 40))
assembly = open_assembly(store, None)
with on_one_processor(), bound_socket() as mouth, bound_socket() as ear:
    ear.setblocking(False)
    light = open_datagrams(ear, mouth.getsockname(), 7, assembly)
    assert isinstance(light, CompiledDatagrams)
    light.stop = 1 << 30
    mouth.setsockopt(socket.IPPROTO_UDP, 103, 1000)
    new = 0
    for burst in range(200):
        row = b"".join(HEADER.pack(7, 0, burst * 40 + n) + bytes(984) for n in range(40))
        mouth.sendto(row, ear.getsockname())
        delivered(mouth)
        light.read()
        new += light.arrived(0.0).new
    assert sum(count for _, count in assembly.missing(0, 8000)) == 8000 - new
store.discard()
print(new)
"""


@pytest.mark.cc
@pytest.mark.compiled
def test_lost_datagrams_are_lost_to_the_compiled_engine_too(tmp_path):
    from benchmarks.transfers.bed.programs import compile_into

    library = compile_into(tmp_path, "lossy")
    count = tmp_path / "count"
    settings = {"LOSSY_SHARE": "0.02", "LOSSY_SEED": "7", "LOSSY_COUNT": str(count), "LOSSY_DATAGRAM": "1000"}
    environment = {**os.environ, **settings, "LD_PRELOAD": str(library), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", LIGHT, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    lost, seen = struct.unpack("=QQ", count.read_bytes())
    assert seen == 8000
    assert int(done.stdout) == seen - lost
    # 160 expected, standard deviation 12.5.
    assert 100 < lost < 220


WRITE = """
import os, sys, time
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
reader, writer = os.pipe()
data = bytes(32768)
def spliced():
    os.write(writer, data)
    os.splice(reader, file, len(data), offset_dst=0)
one, several, here = lambda: os.pwrite(file, data, 0), lambda: os.pwritev(file, [data], 0), lambda: os.write(file, data)
began = time.monotonic()
for write in (one, several, here, spliced):
    for _ in range(10):
        write()
    print(time.monotonic() - began)
"""


@pytest.mark.cc
def test_slow_store_limits_every_write_call(tmp_path):
    from benchmarks.transfers.bed.programs import compile_into

    library = compile_into(tmp_path, "slow_store")
    environment = {**os.environ, "LD_PRELOAD": str(library), "SLOW_BYTES_PER_SECOND": "1e6"}
    command = [sys.executable, "-c", WRITE, str(tmp_path / "file")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    # 150,000 bytes are saved up at the start. A busy machine only makes it slower.
    for written, seconds in enumerate(map(float, done.stdout.split()), 1):
        assert written * 327_680 <= 1.05e6 * seconds + 150_000


@pytest.mark.rust
def test_verifying_receiver_digests_written_data(tmp_path):
    import blake3

    from benchmarks.transfers.bed.programs import compile_into

    program, compared = compile_into(tmp_path, "verifying"), compile_into(tmp_path, "naive_tcp")
    source, copy, port = tmp_path / "source", tmp_path / "copy", str(free_port())
    source.write_bytes(os.urandom(1_000_003))
    with subprocess.Popen([program, "receive", port, copy], stdout=subprocess.PIPE, text=True) as receiver:
        assert receiver.stdout is not None and receiver.stdout.readline() == "ready\n"
        subprocess.run([compared, "send", source, port, "127.0.0.1"], check=True)
        report = json.loads(receiver.stdout.readline())
    assert copy.read_bytes() == source.read_bytes()
    assert report["digest"] == blake3.blake3(source.read_bytes()).hexdigest() and report["seconds"] > 0

    for command in ([program, "floor", "200000", copy], [program, "digest", "200000"]):
        done = subprocess.run(command, input="go\n", capture_output=True, text=True, check=True)
        assert json.loads(done.stdout.splitlines()[1])["digest"] == blake3.blake3(bytes(200_000)).hexdigest()
    assert copy.read_bytes() == bytes(200_000)

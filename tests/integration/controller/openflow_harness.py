"""Shared parts of the OpenFlow integration tests: controller process, Open vSwitch bridges, and a fake switch."""

from __future__ import annotations

import itertools
import json
import os
import queue
import random
import re
import select
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import eventually

ROOT = Path(__file__).resolve().parents[3]
GROUPS = "239.77.0.0/16"
DEADLINE = 60.0
UNKNOWN = 1 << 47
"""A datapath of no rack."""
_fences = itertools.count(1_000_000)
FRAMEWORKS = [pytest.param("os-ken", id="os-ken"), pytest.param("ryu", id="ryu", marks=pytest.mark.ryu)]

Event = dict[str, Any]


class ControllerProcess:
    """`python -m blast_controller.openflow` on either framework: commands in, events out."""

    def __init__(self, framework: str, config: Path, content: Mapping[str, Any]) -> None:
        config.write_text(json.dumps({"group_network": GROUPS, **content}))
        arguments = ["-m", "blast_controller.openflow", "--listen", "127.0.0.1:0", "--config", str(config)]
        interpreter = sys.executable if framework == "os-ken" else str(ROOT / ".venv-ryu" / "bin" / "python")
        self._log = config.with_suffix(".log")
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                [interpreter, "-W", "ignore", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=ROOT,
                env={**os.environ, "BLAST_OPENFLOW_FRAMEWORK": framework},
            )
        self._events: queue.Queue[Event] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._kept: list[Event] = []
        try:
            self.port: int = self.expect(event="Listening")["port"]
        except BaseException:
            self.close()
            raise

    def logged(self) -> list[str]:
        """Return the lines that it has logged."""
        return self._log.read_text().splitlines()

    def ask(self, **command: Any) -> None:
        self.write(json.dumps(command))

    def apply(self, datapath: int, *changes: Mapping[str, Any]) -> None:
        self.write(json.dumps({"datapath": datapath, "changes": changes}))

    def write(self, line: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def expect(self, **fields: Any) -> Event:
        """Remove and return the first event with these fields; keep the others."""
        limit = time.monotonic() + DEADLINE
        while True:
            for event in self._kept:
                if fields.items() <= event.items():
                    self._kept.remove(event)
                    return event
            try:
                self._kept.append(self._events.get(timeout=max(0.0, limit - time.monotonic())))
            except queue.Empty:
                pytest.fail(f"no event {fields} within {DEADLINE} s; there were {self._kept}")

    def expect_none(self, **fields: Any) -> None:
        """Fail if an event with these fields has come, or comes before the answer to a command that is given now."""
        fence = next(_fences)
        self.apply(UNKNOWN, change(fence, 1))
        self.expect(event="StepFailed", reservation=fence)
        assert not [event for event in self._kept if fields.items() <= event.items()]

    def forget(self) -> None:
        """Drop the events of earlier tests."""
        self.expect_none(event="never")
        self._kept.clear()

    def confirm(self, datapath: int, *changes: Mapping[str, Any]) -> None:
        """Apply, and see every step confirmed."""
        self.apply(datapath, *changes)
        for change in changes:
            self.expect(event="StepConfirmed", device=datapath, reservation=change["reservation"], step=change["step"])

    def close(self) -> int:
        """Close its input, as its user does, and return its exit status."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.close()
        try:
            return self.process.wait(DEADLINE)
        finally:
            self.process.kill()
            self.process.wait()
            self._reader.join(DEADLINE)
            self.process.stdout.close()
            sys.stderr.write(self._log.read_text())

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._events.put(json.loads(line))


@contextmanager
def controller(
    framework: str, folder: Path, optical_ports: Mapping[int, Sequence[int]], **content: Any
) -> Iterator[ControllerProcess]:
    process = ControllerProcess(framework, folder / "openflow.json", {"optical_ports": optical_ports, **content})
    try:
        yield process
    finally:
        status = process.close()
    assert status == 0


def change(reservation: int, step: int, add: Sequence[Any] = (), remove: Sequence[Any] = ()) -> dict[str, Any]:
    return {"reservation": reservation, "step": step, "add": add, "remove": remove}


def forward(in_port: int, source: str, group: str, *outputs: int) -> dict[str, Any]:
    return {"in_port": in_port, "source": source, "group": group, "outputs": outputs}


def new_datapath() -> int:
    return random.SystemRandom().randrange(1, 1 << 47)


# ---------------------------------------------------------------------------------------------------- Open vSwitch

FENCE = 0x88B6
FOREIGN_COOKIE = 0x51


def _run(*command: str, stdin: str | None = None, rundir: Path | None = None) -> str:
    environment = {**os.environ, "OVS_RUNDIR": str(rundir)} if rundir else None
    done = subprocess.run(
        command, input=stdin, capture_output=True, text=True, check=False, timeout=60, env=environment
    )
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
    return done.stdout


_BRIDGES = itertools.count()


@dataclass
class Bridge:
    """A user-space bridge whose ports 1 to `ports` end in veth pairs that the test holds the other ends of.

    The foreign rules on it stand for the packet network: one that floods frames of a type of our own (the fence).
    """

    controller_port: int
    datapath: int
    ports: int
    prefix: str = field(default_factory=lambda: f"b{os.getpid() % 100_000:05d}{next(_BRIDGES) % 10_000:04d}")
    sockets: dict[int, socket.socket] = field(default_factory=dict)
    rundir: Path | None = None
    """Of a private Open vSwitch; None for the machine's."""
    protocol: str = "tcp"
    """Protocol of the connection to the controller: tcp or ssl."""

    @property
    def name(self) -> str:
        return f"{self.prefix}s"

    def make(self) -> None:
        pairs = [(f"{self.prefix}p{n}", f"{self.prefix}h{n}") for n in range(1, self.ports + 1)]
        _run("ip", "-batch", "-", stdin="".join(f"link add {a} type veth peer name {b}\n" for a, b in pairs))
        for name in [name for pair in pairs for name in pair]:
            Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6").write_text("1")
        _run("ip", "-batch", "-", stdin="".join(f"link set {name} up\n" for pair in pairs for name in pair))
        self.make_bridge()
        for number, (_, outer) in enumerate(pairs, 1):
            self.sockets[number] = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0003))
            self.sockets[number].bind((outer, 0))

    def make_bridge(self) -> None:
        """Bridge, controller and secure mode in one transaction: adding a controller later would clear the rules."""
        command = ["ovs-vsctl", "--timeout=30", "--", "add-br", self.name, "--", "set", "Bridge", self.name]
        # A private switch takes the user-space datapath's twin: the machine's own has the tap that `netdev` would make.
        datapath = "netdev" if self.rundir is None else "dummy"
        command += [f"datapath_type={datapath}", "fail_mode=secure", "protocols=OpenFlow13"]
        command += [f"other-config:datapath-id={self.datapath:016x}", "other-config:disable-in-band=true"]
        target = f'target="{self.protocol}:127.0.0.1:{self.controller_port}"'
        command += ["--", "--id=@c", "create", "Controller", target, "max_backoff=1000", "connection_mode=out-of-band"]
        command += ["--", "set", "Bridge", self.name, "controller=@c"]
        for n in range(1, self.ports + 1):
            port = f"{self.prefix}p{n}"
            command += ["--", "add-port", self.name, port, "--", "set", "Interface", port, f"ofport_request={n}"]
        _run(*command, rundir=self.rundir)
        self._add_fence()

    def controlled_by(self, *ports: int) -> None:
        """Replace its controllers by these."""
        command = ["--", "set", "Bridge", self.name, "controller=" + ",".join(f"@c{port}" for port in ports)]
        for port in ports:
            command += ["--", f"--id=@c{port}", "create", "Controller", f'target="tcp:127.0.0.1:{port}"']
            command += ["max_backoff=1000", "connection_mode=out-of-band"]
        _run("ovs-vsctl", "--timeout=30", *command)

    def cut(self, port: int, state: str = "down") -> None:
        """Set the link of a port down, or up again, at its far end."""
        _run("ip", "link", "set", f"{self.prefix}h{port}", state)

    @contextmanager
    def fiber(self, port: int, other: Bridge, other_port: int) -> Iterator[None]:
        """Connect a port of this ToR to a port of `other` by a unidirectional fiber for the duration of the block."""
        stop = threading.Event()
        thread = threading.Thread(target=self._carry, args=(port, other, other_port, stop), daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(DEADLINE)

    def _carry(self, port: int, other: Bridge, other_port: int, stop: threading.Event) -> None:
        while not stop.is_set():
            if select.select([self.sockets[port]], [], [], 0.05)[0]:
                frame, address = self.sockets[port].recvfrom(4096)
                if address[2] != socket.PACKET_OUTGOING:
                    other.sockets[other_port].send(frame)

    def delete_bridge(self) -> None:
        _run("ovs-vsctl", "--timeout=30", "--if-exists", "del-br", self.name)

    def close(self) -> None:
        for sock in self.sockets.values():
            sock.close()
        environment = {**os.environ, "OVS_RUNDIR": str(self.rundir)} if self.rundir else None
        command = ["ovs-vsctl", "--timeout=10", "--if-exists", "del-br", self.name]
        subprocess.run(command, check=False, env=environment)
        for n in range(1, self.ports + 1):
            subprocess.run(["ip", "link", "del", f"{self.prefix}p{n}"], check=False, capture_output=True)

    def add_rule(self, text: str) -> None:
        self._ofctl("add-flow", text)

    def add_rules(self, texts: Iterable[str]) -> None:
        lines = "\n".join(texts) + "\n"
        _run("ovs-ofctl", "-O", "OpenFlow13", "add-flows", self.name, "-", stdin=lines, rundir=self.rundir)

    def delete_rules(self, match: str) -> None:
        self._ofctl("del-flows", match)

    @contextmanager
    def rules_limited_to(self, limit: int) -> Iterator[None]:
        """Let table 0 refuse more rules than `limit`."""
        table = ["--id=@t", "create", "Flow_Table", f"flow_limit={limit}", "overflow_policy=refuse"]
        _run("ovs-vsctl", "--timeout=30", "--", *table, "--", "set", "Bridge", self.name, "flow_tables:0=@t")
        yield
        _run("ovs-vsctl", "--timeout=30", "clear", "Bridge", self.name, "flow_tables")

    def clear(self) -> None:
        """Delete all rules but the fence."""
        self.delete_rules("cookie=0/0")
        self._add_fence()

    def _add_fence(self) -> None:
        self.add_rule(f"cookie={FOREIGN_COOKIE:#x},priority=65535,dl_type={FENCE:#06x},actions=ALL")

    def rules(self) -> list[str]:
        """Every rule as Open vSwitch prints it, without its statistics, sorted."""
        dump = self._ofctl("dump-flows", "--no-stats")
        return sorted(line.strip() for line in dump.splitlines() if "actions=" in line)

    def ages(self) -> dict[str, tuple[float, int]]:
        """Every rule with the seconds since it was added, and its packets."""
        found = re.findall(
            r"(cookie=\w+), duration=([\d.]+)s, (table=\d+), n_packets=(\d+), n_bytes=\d+, (.*)",
            self._ofctl("dump-flows"),
        )
        return {f"{cookie} {table} {rest}": (float(age), int(packets)) for cookie, age, table, packets, rest in found}

    def _ofctl(self, command: str, *arguments: str) -> str:
        return _run("ovs-ofctl", "-O", "OpenFlow13", command, self.name, *arguments, rundir=self.rundir)

    def our_rules(self) -> list[str]:
        return [rule for rule in self.rules() if "cookie=0xb1a5" in rule]

    def send(self, port: int, frame: bytes) -> dict[int, bytes]:
        """Send `frame` into `port`; return the frame that leaves each other port before a fence sent after it."""
        self._drain()
        mark = os.urandom(8)
        self.sockets[port].send(frame)
        time.sleep(0.002)  # the fence goes behind it
        self.sockets[port].send(b"\xff" * 6 + b"\x02" + b"\0" * 5 + struct.pack("!H", FENCE) + mark + b"\0" * 40)
        others = set(self.sockets) - {port}
        frames = {number: list(self._until_fence(number, mark)) for number in others}
        time.sleep(0.02)  # a second copy may still arrive: no event excludes it
        copies = {n: [got for got in frames[n] + self._pending(n) if got[34:] == frame[34:]] for n in others}
        assert all(len(same) <= 1 for same in copies.values()), "a packet left by the same port twice"
        return {number: same[0] for number, same in copies.items() if same}

    def reach(self, port: int, source: str, destination: str) -> set[int]:
        """Return the ports by which one UDP packet from `source` to `destination` leaves if it enters `port`."""
        return set(self.send(port, udp_frame(source, destination)))

    def settle(self, port: int, source: str, destination: str, expected: set[int]) -> None:
        """Wait until packets reach `expected`, and see that it stays so.

        Open vSwitch answers a barrier before its cache of recent decisions is revalidated, milliseconds later.
        """
        eventually(lambda: self.reach(port, source, destination) == expected, f"packets at exactly {expected}")
        assert self.reach(port, source, destination) == expected

    def _drain(self) -> None:
        for number in self.sockets:
            self._pending(number)

    def _pending(self, number: int) -> list[bytes]:
        frames = []
        while select.select([self.sockets[number]], [], [], 0)[0]:
            frames.append(self.sockets[number].recv(4096))
        return frames

    def _until_fence(self, number: int, mark: bytes) -> Iterator[bytes]:
        limit = time.monotonic() + DEADLINE
        while select.select([self.sockets[number]], [], [], max(0.0, limit - time.monotonic()))[0]:
            frame = self.sockets[number].recv(4096)
            if frame[14:22] == mark:
                return
            yield frame
        pytest.fail(f"the fence never left port {number}")


class PrivateSwitch:
    """An ovsdb-server and an ovs-vswitchd of one's own: TLS keys are settings of a whole Open vSwitch."""

    def __init__(self) -> None:
        # Not in pytest's folder: the path of a Unix socket is short.
        self._folder = tempfile.TemporaryDirectory(prefix="ovs")
        self.rundir = Path(self._folder.name)
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> PrivateSwitch:
        database = str(self.rundir / "conf.db")
        _run("ovsdb-tool", "create", database, "/usr/share/openvswitch/vswitch.ovsschema")
        self._start("ovsdb-server", database, f"--remote=punix:{self.rundir}/db.sock")
        eventually((self.rundir / "db.sock").exists, "the database of Open vSwitch")
        _run("ovs-vsctl", "--no-wait", "init", rundir=self.rundir)
        self._start("ovs-vswitchd", f"unix:{self.rundir}/db.sock", "--enable-dummy")
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._processes):
            process.terminate()
            process.wait(DEADLINE)
        self._folder.cleanup()

    def set_ssl(self, key: Path, certificate: Path, ca: Path) -> None:
        """Set the certificate that its bridges show, and the CA of controllers that they accept."""
        _run("ovs-vsctl", "--timeout=30", "set-ssl", str(key), str(certificate), str(ca), rundir=self.rundir)

    def _start(self, name: str, *arguments: str) -> None:
        command = [name, *arguments, f"--unixctl={self.rundir}/{name}.ctl", "--log-file=/dev/null", "-vconsole:off"]
        self._processes.append(subprocess.Popen(command, env={**os.environ, "OVS_RUNDIR": str(self.rundir)}))


@contextmanager
def bridges(*requested: Bridge) -> Iterator[None]:
    try:
        for bridge in requested:
            bridge.make()
        yield
    finally:
        for bridge in requested:
            bridge.close()


def udp_frame(source: str, destination: str) -> bytes:
    """Return an Ethernet frame with a UDP packet of random payload; a group address maps to a group MAC (RFC 1112)."""
    address = IPv4Address(destination)
    low = int(address) & 0x7FFFFF
    mac = struct.pack("!HI", 0x0100, 0x5E00_0000 | low) if address.is_multicast else b"\x02\0\0\0\0\x22"
    payload = os.urandom(32)
    header = struct.pack("!BBHHHBBH", 0x45, 0, 28 + len(payload), 1, 0, 8, 17, 0)
    header += IPv4Address(source).packed + address.packed
    header = header[:10] + struct.pack("!H", _checksum(header)) + header[12:]
    udp = struct.pack("!HHHH", 5000, 5000, 8 + len(payload), 0)
    return mac + b"\x02\0\0\0\0\x11" + b"\x08\0" + header + udp + payload


def arp_frame() -> bytes:
    body = struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1) + os.urandom(20)
    return b"\xff" * 6 + b"\x02\0\0\0\0\x11" + b"\x08\x06" + body + b"\0" * 18


def dscp(frame: bytes) -> int:
    """Return the DSCP of a received frame, whose IPv4 header checksum must be correct."""
    assert _checksum(frame[14:34]) == 0
    return frame[15] >> 2


def _checksum(data: bytes) -> int:
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


# ----------------------------------------------------------------------------------------------------- a fake switch

HELLO, ERROR, ECHO_REQUEST, ECHO_REPLY, FEATURES_REPLY = 0, 1, 2, 3, 6
PACKET_IN, PORT_STATUS = 10, 12
FLOW_MOD, MULTIPART_REQUEST, MULTIPART_REPLY, BARRIER_REQUEST, BARRIER_REPLY = 14, 18, 19, 20, 21
ROLE_REQUEST, ROLE_REPLY = 24, 25
FLOW_STATS, AGGREGATE, PORT_DESCRIPTIONS = 1, 2, 13
STALE = struct.pack("!HH", 11, 0)
IS_SLAVE = struct.pack("!HH", 1, 10)


class FakeSwitch:
    """An OpenFlow 1.3 switch that does the handshake and answers as a test requires, or not at all.

    `rules` are the ofp_flow_stats that it reports, `foreign` how many more it has; messages of the
    kind `ignores` are not answered.
    """

    def __init__(
        self,
        port: int,
        datapath: int,
        answers_echo: bool = True,
        rules: Sequence[bytes] = (),
        foreign: int = 0,
        role_error: bytes | None = None,
        tls: ssl.SSLContext | None = None,
        ignores: int | None = None,
    ) -> None:
        self.datapath, self.answers_echo, self.ignores = datapath, answers_echo, ignores
        self.rules, self.foreign, self.role_error = rules, foreign, role_error
        self.generation: int | None = None
        self.stream = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE)
        if tls is not None:
            self.stream = tls.wrap_socket(self.stream, server_hostname="127.0.0.1")
        self._rest = b""
        self.send(HELLO, 1)

    def __enter__(self) -> FakeSwitch:
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.close()

    def send(self, kind: int, xid: int, body: bytes = b"") -> None:
        self.stream.sendall(struct.pack("!BBHI", 4, kind, 8 + len(body), xid) + body)

    def next(self, kinds: Iterable[int] = (FLOW_MOD, BARRIER_REQUEST)) -> tuple[int, int, bytes]:
        """(kind, xid, body) of the next message of these kinds; handshake and echo are answered on the way."""
        while True:
            kind, xid, body = self._receive()
            match kind:
                case self.ignores:
                    pass
                case 5:
                    self.send(FEATURES_REPLY, xid, struct.pack("!QIBB2xII", self.datapath, 0, 254, 0, 0, 0))
                case 18:
                    self._answer_multipart(xid, body)
                case 24:
                    self._take_role(xid, body)
                case 2 if self.answers_echo:
                    self.send(ECHO_REPLY, xid, body)
            if kind in kinds:
                return kind, xid, body

    def until_barrier(self) -> tuple[list[tuple[int, bytes]], int]:
        """Return the flow mods, (xid, body) each, up to the next barrier request, and that request's xid."""
        mods = []
        while True:
            kind, xid, body = self.next()
            if kind == BARRIER_REQUEST:
                return mods, xid
            mods.append((xid, body))

    def prepare(self) -> list[tuple[int, bytes]]:
        """Take the guards and confirm them."""
        mods, barrier = self.until_barrier()
        self.send(BARRIER_REPLY, barrier)
        return mods

    def until_closed(self) -> None:
        """Read until the controller closes the connection."""
        with pytest.raises((EOFError, ConnectionError, ssl.SSLError)):
            while True:
                self.next()

    def expect_handled(self) -> None:
        """Wait until the controller has handled everything that was sent to it."""
        self.send(ECHO_REQUEST, 99)
        self.next((ECHO_REPLY,))

    def _take_role(self, xid: int, body: bytes) -> None:
        self.generation = struct.unpack("!I4xQ", body)[1]
        if self.role_error:
            self.send(ERROR, xid, self.role_error + struct.pack("!BBHI", 4, ROLE_REQUEST, 24, xid) + body)
        else:
            self.send(ROLE_REPLY, xid, body)

    def _answer_multipart(self, xid: int, body: bytes) -> None:
        match struct.unpack_from("!H", body)[0]:
            case 1:
                # In parts, as a real table comes.
                for start in range(0, len(self.rules), 100):
                    part = b"".join(self.rules[start : start + 100])
                    self.send(MULTIPART_REPLY, xid, struct.pack("!HH4x", FLOW_STATS, 1) + part)
                self.send(MULTIPART_REPLY, xid, struct.pack("!HH4x", FLOW_STATS, 0))
            case 2:
                counts = struct.pack("!QQI4x", 0, 0, len(self.rules) + self.foreign)
                self.send(MULTIPART_REPLY, xid, struct.pack("!HH4x", AGGREGATE, 0) + counts)
            case 13:
                self.send(MULTIPART_REPLY, xid, struct.pack("!HH4x", PORT_DESCRIPTIONS, 0))

    def _receive(self) -> tuple[int, int, bytes]:
        while len(self._rest) < 8 or len(self._rest) < struct.unpack_from("!H", self._rest, 2)[0]:
            data = self.stream.recv(65_536)
            if not data:
                raise EOFError
            self._rest += data
        _, kind, length, xid = struct.unpack_from("!BBHI", self._rest)
        body, self._rest = self._rest[8:length], self._rest[length:]
        return kind, xid, body


def cookie_of(rule: str) -> int:
    found = re.search(r"cookie=(0x[0-9a-f]+)", rule)
    assert found
    return int(found.group(1), 16)

"""A client that sends bytes, and an emulated switch for it: nothing here is shared with the server's own code."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from xml.etree import ElementTree as ET

import asyncssh

from optical_switch.emulator.netconf_server.messages.names import AnnouncedFeature
from optical_switch.emulator.netconf_server.server import serve_netconf
from optical_switch.emulator.netconf_server.settings import NetconfSwitchSettings, UserAccount
from optical_switch.emulator.netconf_server.switch import EmulatedNetconfSwitch
from optical_switch.emulator.timing import Clock
from optical_switch.model import Circuit

BASE = "urn:ietf:params:xml:ns:netconf:base:1.0"
OPSW = "http://www.polatis.com/yang/optical-switch"
PLTS = "http://www.polatis.com/yang/polatis-switch"
NAMES = {"nc": BASE, "o": OPSW, "p": PLTS, "n": "urn:ietf:params:xml:ns:netconf:notification:1.0"}
BASE_1_0, BASE_1_1 = "urn:ietf:params:netconf:base:1.0", "urn:ietf:params:netconf:base:1.1"
END = b"]]>]]>"
PORTS = 8
PASSWORD = "open sesame"
HANGING = 30.0
"""Seconds that only keep a test from hanging."""


class ManualClock:
    """A time that a test moves; sleepers wait for it."""

    def __init__(self) -> None:
        self.time = 1000.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._numbers = itertools.count()

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)  # other tasks run
            return
        woken = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.time + seconds, next(self._numbers), woken))
        await woken

    @property
    def sleepers(self) -> int:
        return sum(not woken.done() for _, _, woken in self._sleepers)

    def advance(self, seconds: float) -> None:
        self.time += seconds
        while self._sleepers and self._sleepers[0][0] <= self.time:
            woken = heapq.heappop(self._sleepers)[2]
            if not woken.done():
                woken.set_result(None)

    @property
    def clock(self) -> Clock:
        return Clock(now=lambda: self.time, sleep=self.sleep)


class LightPaths:
    """The real light paths, which `apply` sets unless a test holds them."""

    def __init__(self) -> None:
        self.lit: set[Circuit] = set()
        self.calls: list[tuple[list[Circuit], list[Circuit]]] = []
        self.released = asyncio.Event()
        self.released.set()
        self.error: Exception | None = None

    async def apply(self, removed: Sequence[Circuit], added: Sequence[Circuit]) -> None:
        self.calls.append((list(removed), list(added)))
        await self.released.wait()
        if self.error is not None:
            raise self.error
        assert set(removed) <= self.lit
        self.lit = self.lit - set(removed) | set(added)


class RawSession:
    """A channel of the subsystem `netconf`."""

    def __init__(self, writer: asyncssh.SSHWriter[bytes], reader: asyncssh.SSHReader[bytes]) -> None:
        self.writer, self.reader = writer, reader
        self.chunked = False
        self.number = 0
        self.capabilities: set[str] = set()
        self._ids = itertools.count(101)
        self._buffer = b""

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    def send_message(self, text: str) -> None:
        data = text.encode()
        self.send(b"\n#%d\n%b\n##\n" % (len(data), data) if self.chunked else data + END)

    async def read(self) -> ET.Element:
        """Return the next message."""
        return ET.fromstring(await self.read_bytes())

    async def read_bytes(self) -> bytes:
        async with asyncio.timeout(HANGING):
            if not self.chunked:
                return (await self._until(END))[: -len(END)]
            message = b""
            while (header := await self._header()) is not None:
                message += await self._exactly(header)
            return message

    async def ended(self) -> bytes:
        """Return what comes before the end of the channel."""
        async with asyncio.timeout(HANGING):
            with contextlib.suppress(asyncssh.Error, OSError):
                while data := await self.reader.read(65536):
                    self._buffer += data
        return self._buffer

    async def hello(self, *capabilities: str) -> None:
        """Exchange hello messages, and use the newer framing if both announce it."""
        greeting = await self.read()
        self.capabilities = {one.text or "" for one in greeting.iterfind("nc:capabilities/nc:capability", NAMES)}
        self.number = int(greeting.findtext("nc:session-id", "", NAMES))
        uris = "".join(f"<capability>{uri}</capability>" for uri in capabilities or (BASE_1_0, BASE_1_1))
        self.send_message(f'<hello xmlns="{BASE}"><capabilities>{uris}</capabilities></hello>')
        self.chunked = BASE_1_1 in (capabilities or (BASE_1_1,)) and BASE_1_1 in self.capabilities

    def request(self, operation: str) -> int:
        """Send an operation, and return its message id."""
        number = next(self._ids)
        self.send_message(f'<rpc message-id="{number}" xmlns="{BASE}">{operation}</rpc>')
        return number

    async def rpc(self, operation: str) -> ET.Element:
        """Return the reply to an operation."""
        number = self.request(operation)
        reply = await self.read()
        assert reply.get("message-id") == str(number), ET.tostring(reply)
        return reply

    async def ok(self, operation: str) -> None:
        """Check that an operation is carried out."""
        reply = await self.rpc(operation)
        assert [one.tag for one in reply] == [f"{{{BASE}}}ok"], ET.tostring(reply)

    async def data(self, operation: str) -> ET.Element:
        """Return the data of a reply."""
        found = (await self.rpc(operation)).find("nc:data", NAMES)
        assert found is not None
        return found

    async def error(self, operation: str) -> RawError:
        """Return the only error of a reply."""
        errors = await self.errors(operation)
        assert len(errors) == 1
        return errors[0]

    async def errors(self, operation: str) -> list[RawError]:
        return errors_of(await self.rpc(operation))

    async def pairs(self, source: str = "running") -> dict[int, int]:
        """Return the circuits in a configuration, by the numbers of the device."""
        data = await self.data(get_config(source, f'<cross-connects xmlns="{OPSW}"/>'))
        return pairs_in(data)

    async def connect(self, *pairs: tuple[int, int]) -> None:
        """Connect ports, and commit."""
        await self.ok(edit(cross_connects(*pairs)))
        await self.ok("<commit/>")

    async def _header(self) -> int | None:
        await self._fill(lambda data: re.match(rb"\n#(\d+|#)\n", data) is not None)
        match = re.match(rb"\n#(\d+|#)\n", self._buffer)
        assert match is not None
        self._buffer = self._buffer[match.end() :]
        return None if match[1] == b"#" else int(match[1])

    async def _exactly(self, size: int) -> bytes:
        await self._fill(lambda data: len(data) >= size)
        found, self._buffer = self._buffer[:size], self._buffer[size:]
        return found

    async def _until(self, end: bytes) -> bytes:
        await self._fill(lambda data: end in data)
        size = self._buffer.index(end) + len(end)
        return await self._exactly(size)

    async def _fill(self, is_enough) -> None:
        while not is_enough(self._buffer):
            data = await self.reader.read(65536)
            assert data, f"the channel ended after {self._buffer!r}"
            self._buffer += data


@dataclass(frozen=True)
class RawError:
    """An error in a reply."""

    layer: str
    tag: str
    path: str
    message: str
    info: dict[str, str] = field(default_factory=dict)


def errors_of(reply: ET.Element) -> list[RawError]:
    """Return the errors in a reply, which has nothing else."""
    assert len(reply) and all(one.tag == f"{{{BASE}}}rpc-error" for one in reply), ET.tostring(reply)
    assert all(one.findtext("nc:error-severity", "", NAMES) == "error" for one in reply)
    return [
        RawError(
            *(one.findtext(f"nc:error-{name}", "", NAMES) for name in ("type", "tag", "path", "message")),
            {info.tag.partition("}")[2]: info.text or "" for info in one.iterfind("nc:error-info/*", NAMES)},
        )
        for one in reply
    ]


def pairs_in(data: ET.Element) -> dict[int, int]:
    """Return the circuits in data."""
    return {
        int(pair.findtext("o:ingress", "", NAMES)): int(pair.findtext("o:egress", "", NAMES))
        for pair in data.iterfind("o:cross-connects/o:pair", NAMES)
    }


def get(filters: str | None = None) -> str:
    """Return the operation that reads state."""
    return "<get/>" if filters is None else f'<get><filter type="subtree">{filters}</filter></get>'


def get_config(source: str = "running", filters: str | None = None) -> str:
    """Return the operation that reads a configuration."""
    chosen = "" if filters is None else f'<filter type="subtree">{filters}</filter>'
    return f"<get-config><source><{source}/></source>{chosen}</get-config>"


def edit(config: str, target: str = "candidate", options: str = "") -> str:
    """Return the operation that edits a configuration."""
    return (
        f'<edit-config><target><{target}/></target>{options}<config xmlns:nc="{BASE}">{config}</config></edit-config>'
    )


def cross_connects(*pairs: tuple[int, int], operation: str = "") -> str:
    """Return pairs of ports, each with an operation."""
    attribute = f' nc:operation="{operation}"' if operation else ""
    entries = "".join(
        f"<pair{attribute}><ingress>{ingress}</ingress><egress>{egress}</egress></pair>" for ingress, egress in pairs
    )
    return f'<cross-connects xmlns="{OPSW}">{entries}</cross-connects>'


def removed(*ingresses: int, operation: str = "delete") -> str:
    """Return pairs that an edit removes."""
    entries = "".join(f'<pair nc:operation="{operation}"><ingress>{one}</ingress></pair>' for one in ingresses)
    return f'<cross-connects xmlns="{OPSW}">{entries}</cross-connects>'


class NetconfLab:
    """An emulated switch and its clients."""

    def __init__(
        self, switch: EmulatedNetconfSwitch, paths: LightPaths, time: ManualClock, stack: contextlib.AsyncExitStack
    ) -> None:
        self.switch, self.paths, self.time = switch, paths, time
        self._stack = stack

    @property
    def circuits(self) -> dict[int, int]:
        """The circuits that are set, by the numbers of the device."""
        return {circuit.input: PORTS + circuit.output for circuit in self.switch.hardware.crossbar.circuits}

    async def ssh(self, user: str = "admin", **options) -> asyncssh.SSHClientConnection:
        """Log in."""
        host, port = self.switch.address
        options = {"password": PASSWORD, "client_keys": None, "agent_path": None, "config": None, **options}
        key = asyncssh.import_public_key(self.switch.host_key)
        connection = await asyncssh.connect(host, port, username=user, known_hosts=([key], [], []), **options)
        self._stack.push_async_callback(connection.wait_closed)
        self._stack.callback(connection.abort)
        return connection

    async def open(
        self, connection: asyncssh.SSHClientConnection | None = None, user: str = "admin", **options
    ) -> RawSession:
        """Open a channel; no hello messages are read or sent."""
        connection = connection or await self.ssh(user)
        writer, reader, _ = await connection.open_session(subsystem="netconf", encoding=None, **options)
        return RawSession(writer, reader)

    async def session(self, *capabilities: str, user: str = "admin") -> RawSession:
        """Open a session."""
        session = await self.open(user=user)
        await session.hello(*capabilities)
        return session


async def arrived(connection: asyncssh.SSHClientConnection) -> None:
    """Wait until the device has received all bytes that were sent before, though it may not answer them."""
    with contextlib.suppress(asyncssh.ChannelOpenError):
        await connection.open_session(subsystem="none", encoding=None)


ACCOUNTS = {name: UserAccount(PASSWORD, group=name) for name in ("admin", "user", "view")}
USUAL = NetconfSwitchSettings().features


@contextlib.asynccontextmanager
async def netconf_lab(
    *, add: Sequence[AnnouncedFeature] = (), without: Sequence[AnnouncedFeature] = (), **options
) -> AsyncIterator[NetconfLab]:
    """Serve an emulated switch with `PORTS` ingress and egress ports, whose time only the test moves."""
    paths, time = LightPaths(), ManualClock()
    features = (USUAL | set(add)) - set(without)
    settings = NetconfSwitchSettings(accounts=ACCOUNTS, features=features, connect_seconds=0.0)
    async with (
        serve_netconf(PORTS, PORTS, apply=paths.apply, settings=settings, clock=time.clock, **options) as switch,
        contextlib.AsyncExitStack() as stack,
    ):
        yield NetconfLab(switch, paths, time, stack)

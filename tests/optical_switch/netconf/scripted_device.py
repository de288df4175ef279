"""A NETCONF device that answers by a script: in memory, or behind an SSH server of asyncssh."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from xml.etree.ElementTree import Element, fromstring

import asyncssh

from optical_switch.netconf.framing import NetconfDecoder, in_one_chunk, with_end
from optical_switch.netconf.markup import BASE
from optical_switch.netconf.messages import BASE_1_0, BASE_1_1
from optical_switch.netconf.operations import NOTIFICATIONS
from optical_switch.netconf.polatis import OPTICAL_SWITCH

MODEL = f"{OPTICAL_SWITCH}?module=optical-switch&amp;revision=2018-03-22"
CAPABILITY = "urn:ietf:params:netconf:capability:"
FULL = ("candidate:1.0", "confirmed-commit:1.1", "rollback-on-error:1.0", "notification:1.0", "interleave:1.0")
OK = "<ok/>"


def error(tag: str, path: str = "", session_id: int | None = None) -> str:
    """Return the content of a reply that refuses."""
    info = "" if session_id is None else f"<error-info><session-id>{session_id}</session-id></error-info>"
    return (
        f"<rpc-error><error-type>application</error-type><error-tag>{tag}</error-tag><error-severity>error"
        f"</error-severity><error-path>{path}</error-path><error-message>refused</error-message>{info}</rpc-error>"
    )


def data(content: str = "") -> str:
    """Return the content of a reply with data of the model."""
    return f"<data>{content}</data>"


def container(name: str, content: str) -> str:
    """Return a container of the model."""
    return f'<{name} xmlns="{OPTICAL_SWITCH}">{content}</{name}>'


def cross_connects(*pairs: tuple[int, int]) -> str:
    """Return the container of circuits, with numbers of the device."""
    listed = "".join(f"<pair><ingress>{i}</ingress><egress>{e}</egress></pair>" for i, e in pairs)
    return container("cross-connects", listed)


class ScriptedDevice:
    """One session of a device. `answers` maps an operation to contents of replies, the last of which is repeated.

    None as content leaves the request without a reply. Operations without an entry are carried out: readings return
    no data. `log` has the operations, with their datastore or the container that they read.
    """

    def __init__(self, *features: str, chunks: bool = True, **answers: str | Sequence[str | None] | None) -> None:
        self.features = features or FULL
        self.chunks = chunks
        self.answers = {
            name.replace("_", "-"): [one] if one is None or isinstance(one, str) else list(one)
            for name, one in answers.items()
        }
        self.log: list[str] = []
        self.requests: list[Element] = []
        self.send: Callable[[bytes], None] = lambda data: None
        self.end: Callable[[], None] = lambda: None
        """Ends the connection from the side of the device."""
        self._decoder = NetconfDecoder()
        self._is_greeted = False

    def begin(self, send: Callable[[bytes], None]) -> None:
        """Send the hello of the device by `send`, and all else."""
        self.send = send
        base = [BASE_1_0, BASE_1_1] if self.chunks else [BASE_1_0]
        listed = [*base, *(f"{CAPABILITY}{name}" for name in self.features), MODEL]
        capabilities = "".join(f"<capability>{one}</capability>" for one in listed)
        content = f"<capabilities>{capabilities}</capabilities><session-id>4</session-id>"
        self.send(with_end(f'<hello xmlns="{BASE}">{content}</hello>'.encode()))

    def receive(self, data: bytes) -> None:
        """Take bytes of the client, and answer."""
        self._decoder.feed(data)
        while (message := self._decoder.next_message()) is not None:
            if self._is_greeted:
                self._answer(fromstring(message))
                continue
            self._is_greeted = True
            if self.chunks:
                self._decoder.use_chunks()

    def notify(self, event: str) -> None:
        """Send a notification."""
        self._send(f'<notification xmlns="{NOTIFICATIONS}"><eventTime>now</eventTime>{event}</notification>')

    def reply(self, message_id: str, content: str) -> None:
        """Send a reply."""
        self._send(f'<rpc-reply xmlns="{BASE}" message-id="{message_id}">{content}</rpc-reply>')

    def _answer(self, request: Element) -> None:
        [operation] = request
        name = operation.tag.rpartition("}")[2]
        self.requests.append(operation)
        self.log.append(" ".join([name, *_objects(operation)]))
        default = data() if name in {"get", "get-config"} else OK
        contents = self.answers.get(self.log[-1].replace(" ", "-"), self.answers.get(name, [default]))
        content = contents.pop(0) if len(contents) > 1 else contents[0]
        if content is not None:
            self.reply(request.get("message-id", ""), content)

    def _send(self, message: str) -> None:
        self.send((in_one_chunk if self.chunks else with_end)(message.encode()))


def _objects(operation: Element) -> list[str]:
    """Return the datastore of an operation, or the container that it reads."""
    name = operation.tag.rpartition("}")[2]
    if name in {"get", "get-config"}:
        return [one.tag.rpartition("}")[2] for one in operation[-1]]
    if name in {"lock", "unlock", "edit-config"}:
        return [operation[0][0].tag.rpartition("}")[2]]
    return ["confirmed"] if name == "commit" and len(operation) else []


class MemoryTransport(asyncio.Transport):
    """A transport to a scripted device in the same process; it is its own `NetconfTransport`."""

    def __init__(self, device: ScriptedDevice) -> None:
        super().__init__()
        self.device = device
        self._link: asyncio.Protocol | None = None
        self.is_open = False

    async def connect(self, link: asyncio.Protocol, host: str, port: int) -> None:
        """Connect `link` to the device."""
        self._link, self.is_open = link, True
        loop = asyncio.get_running_loop()
        link.connection_made(self)
        self.device.begin(lambda data: self._deliver(loop, data))

    def _deliver(self, loop: asyncio.AbstractEventLoop, data: bytes) -> None:
        assert self._link is not None
        link = self._link
        loop.call_soon(lambda: link.data_received(data) if self.is_open else None)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Pass bytes to the device."""
        if self.is_open:
            asyncio.get_running_loop().call_soon(self.device.receive, bytes(data))

    def close(self) -> None:
        """Close after the bytes that were written."""
        asyncio.get_running_loop().call_soon(self.abort)

    def abort(self) -> None:
        """Close at once."""
        if self.is_open:
            self.is_open = False
            assert self._link is not None
            asyncio.get_running_loop().call_soon(self._link.connection_lost, None)


class ScriptedServer(asyncssh.SSHServerSession[bytes]):
    """The subsystem `netconf` of an SSH server, with a scripted device behind it."""

    def __init__(self, device: ScriptedDevice) -> None:
        self._device = device
        self._channel: asyncssh.SSHServerChannel[bytes] | None = None

    def connection_made(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
        """Store the channel."""
        self._channel = chan

    def subsystem_requested(self, subsystem: str) -> bool:
        """Accept `netconf` only."""
        return subsystem == "netconf"

    def session_started(self) -> None:
        """Send the hello."""
        assert self._channel is not None
        self._device.end = self._channel.close
        self._device.begin(self._channel.write)

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        """Pass bytes to the device."""
        self._device.receive(data)


class TextFiles:
    """The reader of files, without the check of their modes."""

    def read(self, path: Path) -> str:
        """Return the text of a file."""
        return path.read_text()

    read_secret = read

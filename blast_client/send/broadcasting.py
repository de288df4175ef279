"""Multicast of data from one program to programs on many hosts: `broadcast` sends, `receive` reads."""

from __future__ import annotations

import asyncio
import os
import secrets
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from blast_base.endpoint import Endpoint
from blast_client.api.address import DEFAULT_ADDRESS
from blast_client.api.agent_credentials import agent_secret
from blast_client.api.base_error import BlastError, InvalidArgumentError
from blast_client.api.tls import read_token
from blast_client.cli.options import tls_settings_of_environment
from blast_client.objects.encoding import opened
from blast_client.send.option_values import HOST_VARIABLE, SECRET_VARIABLE
from blast_client.send.receivers import Receiver, parse_receivers
from blast_client.send.round import DeliveryRound, RoundResult, RoundSettings
from blast_transport.base.errors import TransportError, UnsafeNameError, WrongInputError
from blast_transport.base.report import Progress, ReceiverOutcome
from blast_transport.session.settings import Destination
from blast_transport.store.files.file_names import checked_parts

ToHost = str | Receiver
Watch = Callable[[Progress], None]


MAX_AT_ONCE = 8
"""Concurrent broadcasts of this process; others wait. An agent accepts 16 sessions, of all senders together."""
_LOOK_SECONDS = 0.01
"""A cancelled transfer ends within this time."""
_places = threading.BoundedSemaphore(MAX_AT_ONCE)


class SendError(BlastError):
    """The sender could not send, or was stopped."""


class DeliveryError(BlastError):
    """Some hosts did not receive the data.

    Parameters
    ----------
    outcome : Outcome
        Result of the broadcast, also an attribute; `outcome.failed` has the reason of each host.
    """

    def __init__(self, outcome: Outcome) -> None:
        failed = outcome.failed
        name, reason = next(iter(failed.items()))
        others = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
        super().__init__(f"{outcome.name!r} was not delivered to {name} ({reason}){others}")
        self.outcome = outcome

    def __reduce__(self) -> tuple[type[DeliveryError], tuple[Outcome]]:
        return DeliveryError, (self.outcome,)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a broadcast.

    Parameters
    ----------
    name : str
        Name for `receive`.
    bytes : int
        Size of the data.
    seconds : float
        Time from the call to the last confirmation.
    delivered : Mapping[str, ReceiverOutcome]
        Outcome of each host that has all data, verified.
    failed : Mapping[str, str]
        Reason of each host that does not.
    transports : tuple[str, ...]
        Transports in the order of their use ("optical", "pipeline", …).
    no_optical_path : str
        Reason why the controller granted no light tree; empty if it did, or was not asked.
    """

    name: str
    bytes: int
    seconds: float
    delivered: Mapping[str, ReceiverOutcome]
    failed: Mapping[str, str]
    transports: tuple[str, ...]
    no_optical_path: str

    @property
    def complete(self) -> bool:
        """True if every host has the data."""
        return not self.failed

    def check(self) -> Outcome:
        """Check that every host has the data.

        Returns
        -------
        Outcome
            The outcome itself.

        Raises
        ------
        DeliveryError
            A host does not have the data.
        """
        if self.failed:
            raise DeliveryError(self)
        return self


def broadcast(  # noqa: PLR0913 - data, receivers, name, and options
    data: object,
    to: Iterable[ToHost],
    name: str | None = None,
    *,
    folder: str = "",
    settings: RoundSettings | None = None,
    progress: Watch | None = None,
) -> Outcome:
    """Send data to the agents of hosts, which verify every block; `receive(name)` reads it there.

    The client submits a request, uses the light tree while it is granted, and releases it. Before a grant, and if the
    controller rejects or preempts the request or the optical path fails, a fault-tolerant pipeline carries the data.
    A host that fails does not delay the others.

    Ctrl-C withdraws the request. Receivers keep partial data only for a retry to continue with.

    Parameters
    ----------
    data : object
        Bytes or any buffer, a `Path` of a file or directory, a NumPy array, a PyTorch tensor on the CPU, a
        `state_dict`, or a dict of arrays. It is neither pickled nor copied: do not change it before the call returns.
    to : Iterable[ToHost]
        Receivers: HOST, HOST:PORT, HOST=ADDRESS:PORT, or (name, address, port).
    name : str | None
        Name of the data, relative to `folder`. None: the name of the file, or a random one.
    folder : str
        Directory of the agents. Default: their first.
    settings : RoundSettings | None
        None: `settings_of_environment()`.
    progress : Watch | None
        Function that receives the progress several times a second, in another thread.

    Returns
    -------
    Outcome
        The hosts that have the data and the hosts that failed; `.check()` raises `DeliveryError` if any failed.

    Raises
    ------
    InvalidArgumentError
        The data or a receiver cannot be used, or an event loop runs in this thread; nothing was sent.
    SendError
        The sender failed.
    AddressError, CredentialsError
        The address of the controller, or a token, secret or certificate, cannot be used.
    BlastError
        With `via="optical"` or `order="racks"`: the exceptions of `Client`.

    Examples
    --------
    >>> broadcast(weights, to=["r2h1", "r3h1"], name="weights-17").check().transports
    ('optical',)
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        coroutine = async_broadcast(data, to, name, folder=folder, settings=settings, progress=progress)
        return asyncio.run(coroutine)
    raise InvalidArgumentError("broadcast would block the running event loop: await async_broadcast(...) instead")


async def async_broadcast(  # noqa: PLR0913 - as `broadcast`
    data: object,
    to: Iterable[ToHost],
    name: str | None = None,
    *,
    folder: str = "",
    settings: RoundSettings | None = None,
    progress: Watch | None = None,
) -> Outcome:
    """Send data as `broadcast` does, for asyncio; cancellation stops the transfer and withdraws the request.

    Parameters
    ----------
    data, to, name, folder, settings, progress
        As for `broadcast`.

    Returns
    -------
    Outcome
        As for `broadcast`.

    Raises
    ------
    InvalidArgumentError
        The data or a receiver cannot be used; nothing was sent.
    SendError, AddressError, CredentialsError, BlastError
        As for `broadcast`.
    """
    began, receivers = time.monotonic(), _receivers(to)
    settings = settings or settings_of_environment()
    called = name or _name_of(data)
    try:
        with opened(data) as (source, suffix):
            checked_parts(f"{called}{suffix}")
            destination = Destination(f"{called}{suffix}", folder=folder)
            async with _place():
                sent = await DeliveryRound(receivers, settings).deliver(
                    source, destination, lambda _, now: _report(progress, now)
                )
            size = source.size or 0
    except (WrongInputError, UnsafeNameError) as error:
        raise InvalidArgumentError(f"cannot send {called!r}: {error}") from error
    except TransportError as error:
        raise SendError(str(error)) from error
    return _outcome(called, size, time.monotonic() - began, receivers, sent)


@asynccontextmanager
async def _place() -> AsyncIterator[None]:
    """Hold one of the MAX_AT_ONCE slots, which all threads and their event loops share."""
    while not _places.acquire(blocking=False):
        await asyncio.sleep(_LOOK_SECONDS)
    try:
        yield
    finally:
        _places.release()


def settings_of_environment() -> RoundSettings:
    """Return the settings of the environment variables that `blast send` reads.

    They are $BLAST_CONTROLLER, $BLAST_CA, $BLAST_TOKEN_FILE, $BLAST_HOST, $BLAST_SECRET_FILE, ….

    Returns
    -------
    RoundSettings
        The settings. If $BLAST_CONTROLLER is empty, they have no controller, and pipelines carry all data.

    Raises
    ------
    CredentialsError
        The token or the secret cannot be used. Certificates are read later, by the client.
    """
    secret, token = os.environ.get(SECRET_VARIABLE), os.environ.get("BLAST_TOKEN_FILE")
    return RoundSettings(
        controller=os.environ.get("BLAST_CONTROLLER", DEFAULT_ADDRESS) or None,
        tls=tls_settings_of_environment(),
        token=read_token(Path(token)) if token else None,
        sender=os.environ.get(HOST_VARIABLE) or None,
        credentials=agent_secret(secret) if secret else None,
    )


def _written(name: str, address: str, port: int) -> str:
    return f"{name}={Endpoint(str(address).strip('[]'), port)}"


def _receivers(to: Iterable[ToHost]) -> list[Receiver]:
    if isinstance(to, str):
        raise InvalidArgumentError(f"to must be a list, not the text {to!r}: write [{to!r}]")
    try:
        written = [host if isinstance(host, str) else _written(*host) for host in to]
        receivers = parse_receivers(written)
    except (ValueError, TypeError, IndexError) as error:
        raise InvalidArgumentError(f"to: {error}") from error
    if not receivers:
        raise InvalidArgumentError("to is empty: name at least one host")
    return receivers


def _name_of(data: object) -> str:
    return Path(data).absolute().name if isinstance(data, PathLike) else f"broadcast-{secrets.token_hex(8)}"


def _report(progress: Watch | None, now: Progress) -> None:
    if progress is not None:
        progress(now)


def _outcome(name: str, size: int, seconds: float, receivers: list[Receiver], sent: RoundResult) -> Outcome:
    ends = {end.name: end for result in sent.results for end in result.receivers}
    failed = dict(sent.unreached) | {end.name: end.reason for end in ends.values() if not end.complete}
    for host, _, _ in receivers:
        if host not in ends and host not in failed:
            failed[host] = sent.refused or "the sender never reached it"
    return Outcome(
        name=name,
        bytes=size,
        seconds=seconds,
        delivered={end.name: end for end in ends.values() if end.complete},
        failed=failed,
        transports=tuple(dict.fromkeys(transport for result in sent.results for transport in result.transports)),
        no_optical_path=sent.refused,
    )

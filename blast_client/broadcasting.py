"""Data from one program to the programs of many hosts, in one call: `broadcast` here, `receive` there."""

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

from blast_client.address import DEFAULT_ADDRESS
from blast_client.agent_credentials import agent_secret
from blast_client.base_error import BlastError, WrongArgument
from blast_client.objects.encoding import opened
from blast_client.options import tls_settings_of_environment
from blast_client.receivers import Receiver, parse_receivers
from blast_client.round import Round, RoundResult, RoundSettings
from blast_client.send_words import HOST_VARIABLE, SECRET_VARIABLE
from blast_client.tls import read_token
from blast_transport.base.endpoint import Endpoint
from blast_transport.base.errors import TransportError, UnsafeNameError, WrongInputError
from blast_transport.base.report import Progress, ReceiverOutcome
from blast_transport.session.settings import Destination
from blast_transport.store.file_names import checked_parts

ToHost = str | Receiver
Watch = Callable[[Progress], None]


MAX_AT_ONCE = 8
"""Broadcasts of this process that are under way; others wait. An agent takes 16 sessions, and not only ours."""
_LOOK_SECONDS = 0.01
_places = threading.BoundedSemaphore(MAX_AT_ONCE)


class NotSent(BlastError):
    """Our own side could not send, or was told to stop."""


class NotDelivered(BlastError):
    """Some hosts do not have what was sent; `outcome` says which, and why."""

    def __init__(self, outcome: Outcome) -> None:
        failed = outcome.failed
        name, reason = next(iter(failed.items()))
        others = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
        super().__init__(f"{outcome.name!r} is not at {name} ({reason}){others}")
        self.outcome = outcome

    def __reduce__(self) -> tuple[type[NotDelivered], tuple[Outcome]]:
        return NotDelivered, (self.outcome,)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a broadcast.

    `name`: what `receive` is told. `bytes` were sent within `seconds`, from the call to the last confirmation. A host
    is either in `delivered`, where it has everything, verified, or in `failed`, with the reason. `transports`: how it
    went, in that order ("optical", "pipeline", …). `no_light` says why none was to be had, empty if there was, or
    nobody asked.
    """

    name: str
    bytes: int
    seconds: float
    delivered: Mapping[str, ReceiverOutcome]
    failed: Mapping[str, str]
    transports: tuple[str, ...]
    no_light: str

    @property
    def complete(self) -> bool:
        """Every host has it."""
        return not self.failed

    def check(self) -> Outcome:
        """Itself. Raises NotDelivered unless every host has it."""
        if self.failed:
            raise NotDelivered(self)
        return self


def broadcast(  # noqa: PLR0913 - what, to whom, as what, and how
    data: object,
    to: Iterable[ToHost],
    name: str | None = None,
    *,
    folder: str = "",
    settings: RoundSettings | None = None,
    progress: Watch | None = None,
) -> Outcome:
    """Bring `data` to the agents of these hosts, and see every byte verified there; `receive(name)` gets it.

    The whole round: light is asked for, used when it is granted and given back; while there is none, or if it is
    refused, late, withdrawn or fails, a fault-tolerant pipeline goes on. One host that fails does not disturb the
    others; the outcome names it, and `.check()` raises for whoever wants that.

    `data`: bytes or any buffer, a `Path` of a file or folder, a NumPy array, a PyTorch tensor on the CPU, a
    `state_dict`, a dict of arrays. It is sent from where it lies, not pickled and not copied, so it must not change
    before the call returns. `to`: HOST, HOST:PORT or HOST=ADDRESS:PORT, or (name, address, port). `name`: relative to
    `folder` of the agents (their first); None: a file's own name, or one that nobody has. `settings`: None for
    `settings_of_environment()`. `progress` is told some times a second how far it is, from another thread.

    Ctrl-C gives the light back and leaves nothing behind at receivers but what a second try goes on with. Raises
    WrongArgument before anything is sent, NotSent where our own side fails; with `via="optical"` also what
    `Client.submit` does.

    >>> broadcast(weights, to=["r2h1", "r3h1"], name="weights-17").check().transports
    ('optical',)
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        coroutine = async_broadcast(data, to, name, folder=folder, settings=settings, progress=progress)
        return asyncio.run(coroutine)
    raise WrongArgument("broadcast would stop this event loop: await async_broadcast(...) instead")


async def async_broadcast(  # noqa: PLR0913 - as `broadcast`
    data: object,
    to: Iterable[ToHost],
    name: str | None = None,
    *,
    folder: str = "",
    settings: RoundSettings | None = None,
    progress: Watch | None = None,
) -> Outcome:
    """As `broadcast`, for asyncio. Cancelled, it gives up, and the light goes back."""
    began, receivers = time.monotonic(), _receivers(to)
    settings = settings or settings_of_environment()
    called = name or _name_of(data)
    try:
        with opened(data) as (source, suffix):
            checked_parts(f"{called}{suffix}")
            destination = Destination(f"{called}{suffix}", folder=folder)
            async with _place():
                sent = await Round(receivers, settings).deliver(
                    source, destination, lambda _, now: _tell(progress, now)
                )
            size = source.size or 0
    except (WrongInputError, UnsafeNameError) as error:
        raise WrongArgument(f"{called!r} cannot be sent: {error}") from error
    except TransportError as error:
        raise NotSent(str(error)) from error
    return _outcome(called, size, time.monotonic() - began, receivers, sent)


@asynccontextmanager
async def _place() -> AsyncIterator[None]:
    """One of the places for broadcasts, of all threads and their event loops."""
    while not _places.acquire(blocking=False):
        await asyncio.sleep(_LOOK_SECONDS)
    try:
        yield
    finally:
        _places.release()


def settings_of_environment() -> RoundSettings:
    """As `blast send` finds them: $BLAST_CONTROLLER, $BLAST_CA, $BLAST_TOKEN_FILE, $BLAST_HOST, $BLAST_SECRET_FILE, ….

    Without a controller there all goes along pipelines. Raises BadCredentials, WrongArgument.
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
        raise WrongArgument(f"to must be a list, as [{to!r}], and not {to!r}")
    try:
        written = [host if isinstance(host, str) else _written(*host) for host in to]
        receivers = parse_receivers(written)
    except (ValueError, TypeError, IndexError) as error:
        raise WrongArgument(f"to: {error}") from error
    if not receivers:
        raise WrongArgument("to names no host")
    return receivers


def _name_of(data: object) -> str:
    return Path(data).absolute().name if isinstance(data, PathLike) else f"broadcast-{secrets.token_hex(8)}"


def _tell(progress: Watch | None, now: Progress) -> None:
    if progress is not None:
        progress(now)


def _outcome(name: str, size: int, seconds: float, receivers: list[Receiver], sent: RoundResult) -> Outcome:
    ends = {end.name: end for result in sent.results for end in result.receivers}
    failed = dict(sent.unreached) | {end.name: end.reason for end in ends.values() if not end.complete}
    for host, _, _ in receivers:
        if host not in ends and host not in failed:
            failed[host] = sent.refused or "it was never sent to"
    return Outcome(
        name=name,
        bytes=size,
        seconds=seconds,
        delivered={end.name: end for end in ends.values() if end.complete},
        failed=failed,
        transports=tuple(dict.fromkeys(transport for result in sent.results for transport in result.transports)),
        no_light=sent.refused,
    )

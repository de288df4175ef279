"""The transports at either end, by the names that they have on the wire. `wire/transports.py` has their table."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, TypeVar

from blast_transport.base.errors import WrongInputError
from blast_transport.transports.choices import TransportChoice
from blast_transport.wire.transports import TRANSPORTS

if TYPE_CHECKING:
    from blast_transport.transports.receiving import ReceivingContext, ReceivingTransport
    from blast_transport.transports.sending import SendingContext, SendingTransport
    from blast_transport.wire.messages import Phase

Made = TypeVar("Made")


def new_sender(phase: Phase, choice: TransportChoice, context: SendingContext) -> SendingTransport:
    """Return the sender's side of a phase, which has no parameters yet. Raises WrongInputError, LightPathError."""
    make: Callable[..., SendingTransport] = _named(TRANSPORTS[choice.transport].sender)
    return make(phase, choice, context)


def new_receiver(phase: Phase, context: ReceivingContext) -> ReceivingTransport | None:
    """Return the receiver's side of a phase; None for a transport that delivers blocks as repairs do."""
    place = TRANSPORTS[phase.transport].receiver
    if not place:
        return None
    make: Callable[..., ReceivingTransport] = _named(place)
    return make(phase, context)


def default_choice(name: str) -> TransportChoice:
    """Return a transport with default settings. Raises WrongInputError if it has settings without a default."""
    make: Callable[[], TransportChoice] = _named(TRANSPORTS[name].choice)
    try:
        return make()
    except TypeError as error:
        raise WrongInputError(f"the transport {name!r} has required settings ({error})") from None


def load_receivers() -> None:
    """Load all transports of a receiver before it listens, because a phase does not wait for that.

    The first phase of seven receivers on two processors began 0.1 s later. A host without compiled Python files
    compiles them on loading: a hundred such receivers on few processors were too late for their first phase.
    """
    for traits in TRANSPORTS.values():
        if traits.receiver:
            _named(traits.receiver)


def _named(place: str) -> Callable[..., Made]:
    # Transports load on demand: most processes that send or receive live for seconds.
    module, _, name = place.partition(":")
    made: Callable[..., Made] = getattr(import_module(module), name)
    return made

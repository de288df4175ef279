"""Everything the core can raise. `RequestError` is the caller's fault and changes nothing; the rest is ours."""

from __future__ import annotations


class CoreError(Exception):
    """Base of all errors of the core."""


class ImpossibleTransition(CoreError):
    """Our fault: an event reached a state machine in a state whose table does not know it."""

    def __init__(self, machine: str, state: str, event: str) -> None:
        super().__init__(f"a {machine} in state {state} cannot take the event '{event}'")


class FabricError(CoreError):
    """The operator's fault: the declared fabric contradicts itself."""


class RequestError(CoreError):
    """The caller's fault; nothing has changed."""


class Rejected(RequestError):
    """The request breaks a rule or exceeds the fabric. `largest` is the widest possible group in racks, if known."""

    def __init__(self, code: str, sentence: str, largest: int | None = None) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence
        self.largest = largest


class UnknownRequest(RequestError):
    """No request has this key."""

    def __init__(self, key: str) -> None:
        super().__init__(f"no request has the key {key!r}")
        self.key = key


class KeyReused(RequestError):
    """A request with this key but other content exists."""

    def __init__(self, key: str) -> None:
        super().__init__(f"the key {key!r} belongs to a request with other content")
        self.key = key


class RequestEnded(RequestError):
    """The request is over. `state` is the final state's name."""

    def __init__(self, state: str, reason: str) -> None:
        super().__init__(reason)
        self.state = state
        self.reason = reason


class NotLeader(RequestError):
    """Another controller decides; `address` is where it is asked, None while nobody does."""

    def __init__(self, address: str | None) -> None:
        super().__init__(f"another controller decides: {address}" if address else "no controller decides at the moment")
        self.address = address


class TimedOut(RequestError):
    """Nothing happened within the time that the caller gave."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence

"""Everything the core can raise. `RequestError` is the caller's fault and changes nothing; the rest is ours."""

from __future__ import annotations


class CoreError(Exception):
    """Base of all errors of the core."""


class ImpossibleTransitionError(CoreError):
    """Our fault: an event reached a state machine in a state whose table does not know it."""

    def __init__(self, machine: str, state: str, event: str) -> None:
        super().__init__(f"a {machine} in state {state} has no transition for the event '{event}'")


class FabricError(CoreError):
    """The operator's fault: the declared fabric contradicts itself."""


class RequestError(CoreError):
    """The caller's fault; nothing has changed."""


class RejectedError(RequestError):
    """The request breaks a rule or exceeds the fabric. `largest` is the widest possible group in racks, if known."""

    def __init__(self, code: str, sentence: str, largest: int | None = None) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence
        self.largest = largest


class UnknownRequestError(RequestError):
    """No request has this key."""

    def __init__(self, key: str) -> None:
        super().__init__(f"no request has the key {key!r}; check the key and the tenant")
        self.key = key


class KeyReusedError(RequestError):
    """A request with this key but other content exists."""

    def __init__(self, key: str) -> None:
        super().__init__(f"a request with the key {key!r} and different content exists; use a new key")
        self.key = key


class RequestEndedError(RequestError):
    """The request is over. `state` is the final state's name."""

    def __init__(self, state: str, reason: str) -> None:
        super().__init__(reason)
        self.state = state
        self.reason = reason


class NotLeaderError(RequestError):
    """Another controller is the leader; `address` is its address, None if there is no leader."""

    def __init__(self, address: str | None) -> None:
        super().__init__(
            f"another controller is the leader: {address}"
            if address
            else "no controller is the leader; try again later"
        )
        self.address = address


class RequestTimeoutError(RequestError):
    """Nothing happened within the time that the caller gave."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence

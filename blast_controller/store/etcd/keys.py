"""Where things are under the prefix of a journal.

| key | what |
|---|---|
| `leader` | the address of the controller that leads; gone with its lease |
| `epoch` | how often somebody has begun to lead |
| `generation` | OpenFlow's generation id of the latest who has begun to lead |
| `head` | where the journal stands, see `head`; without it there is no journal |
| `state/N` | a thing as it is; N is the sequence that first inserted it, so that they lie in that order |
| `history/N` | some entries of one commit; N is the sequence of the last of them |
| `staged/N` | a part of a commit too large for one transaction, see `ledger` |
| `candidates/A` | how many devices the controller at the address A reaches, which could lead; gone with its lease |
| `importing` | a copy from elsewhere is not finished |

Sequences are written with sixteen hexadecimal digits: in the order of their numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

LARGEST = (1 << 63) - 1
DEFAULT_PREFIX = "/blast/"


@dataclass(frozen=True, slots=True)
class Span:
    """The keys from `first` to before `end`."""

    first: bytes
    end: bytes


class Keys:
    """The keys of a journal. Raises ValueError for an empty prefix, under which all of etcd would lie."""

    def __init__(self, prefix: str = DEFAULT_PREFIX) -> None:
        if not prefix.strip("/"):
            raise ValueError("the journal needs a prefix of its own in etcd")
        self.prefix = prefix if prefix.endswith("/") else prefix + "/"
        base = self.prefix.encode()
        self.leader, self.epoch = base + b"leader", base + b"epoch"
        self.generation = base + b"generation"
        self.head, self.importing = base + b"head", base + b"importing"
        self._state, self._history, self._staged = base + b"state/", base + b"history/", base + b"staged/"
        self._candidates = base + b"candidates/"
        self.states, self.histories, self.all_staged, self.candidates = (
            Span(folder, _after(folder)) for folder in (self._state, self._history, self._staged, self._candidates)
        )

    def state(self, first: int) -> bytes:
        """The thing that entry `first` inserted."""
        return self._state + _number(first)

    def history(self, last: int) -> bytes:
        """The entries up to `last`."""
        return self._history + _number(last)

    def history_after(self, sequence: int) -> Span:
        """What has entries after `sequence`."""
        return Span(self.history(min(max(sequence, 0), LARGEST - 1) + 1), self.histories.end)

    def history_up_to(self, sequence: int) -> Span:
        """What has none after `sequence`."""
        return Span(self.histories.first, self.history(sequence + 1))

    def candidate(self, address: str) -> bytes:
        """A controller that could lead."""
        return self._candidates + address.encode()

    def staged(self, number: int) -> bytes:
        """A part of a commit."""
        return self._staged + _number(number)


def number_of(key: bytes) -> int:
    """N of a key. Raises ValueError."""
    return int(key.rpartition(b"/")[2], 16)


def _number(number: int) -> bytes:
    return f"{number:016x}".encode()


def _after(folder: bytes) -> bytes:
    """The first key behind all keys that begin with `folder`, which ends in a slash."""
    return folder[:-1] + bytes([folder[-1] + 1])

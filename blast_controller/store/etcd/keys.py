"""Keys of a journal in etcd, below its prefix.

| key | value |
|---|---|
| `leader` | the address of the leader; bound to its lease |
| `epoch` | the number of leaders' terms |
| `generation` | OpenFlow's generation id of the latest leader |
| `head` | the position of the journal, see `head`; without it there is no journal |
| `state/N` | an object of the state; N is the sequence that first inserted it, which orders them |
| `history/N` | some entries of one commit; N is the sequence of the last of them |
| `staged/N` | a part of a commit too large for one transaction, see `ledger` |
| `candidates/A` | the number of devices that the candidate at the address A reaches; bound to its lease |
| `importing` | an import is not complete |

Sequences have sixteen hexadecimal digits, so that their order is numeric.
"""

from __future__ import annotations

from dataclasses import dataclass

LARGEST = (1 << 63) - 1
"""Sequence numbers are signed integers of 64 bits, as in SQLite."""
DEFAULT_PREFIX = "/blast/"


@dataclass(frozen=True, slots=True)
class KeySpan:
    """The keys from `first` to before `end`."""

    first: bytes
    end: bytes


class Keys:
    """The keys of a journal. Raises ValueError for an empty prefix, under which all of etcd would lie."""

    def __init__(self, prefix: str = DEFAULT_PREFIX) -> None:
        if not prefix.strip("/"):
            raise ValueError("the journal's prefix in etcd must not be empty")
        self.prefix = prefix if prefix.endswith("/") else prefix + "/"
        base = self.prefix.encode()
        self.leader, self.epoch = base + b"leader", base + b"epoch"
        self.generation = base + b"generation"
        self.head, self.importing = base + b"head", base + b"importing"
        self._state, self._history, self._staged = base + b"state/", base + b"history/", base + b"staged/"
        self._candidates = base + b"candidates/"
        self.states, self.histories, self.all_staged, self.candidates = (
            KeySpan(folder, _after(folder)) for folder in (self._state, self._history, self._staged, self._candidates)
        )

    def state(self, first: int) -> bytes:
        """Return the key of the object that entry `first` inserted."""
        return self._state + _number(first)

    def history(self, last: int) -> bytes:
        """Return the key of the batch of entries that ends with `last`."""
        return self._history + _number(last)

    def history_after(self, sequence: int) -> KeySpan:
        """Return the keys with entries after `sequence`."""
        return KeySpan(self.history(min(max(sequence, 0), LARGEST - 1) + 1), self.histories.end)

    def history_up_to(self, sequence: int) -> KeySpan:
        """Return the keys without entries after `sequence`."""
        return KeySpan(self.histories.first, self.history(sequence + 1))

    def candidate(self, address: str) -> bytes:
        """Return the key of the candidate at this address."""
        return self._candidates + address.encode()

    def staged(self, number: int) -> bytes:
        """Return the key of a part of a commit."""
        return self._staged + _number(number)


def number_of(key: bytes) -> int:
    """Return N of a key. Raises ValueError."""
    return int(key.rpartition(b"/")[2], 16)


def _number(number: int) -> bytes:
    return f"{number:016x}".encode()


def _after(folder: bytes) -> bytes:
    """Return the first key behind all keys that begin with `folder`, which ends in a slash."""
    return folder[:-1] + bytes([folder[-1] + 1])

"""One change of the device's configuration, without a socket or clock: replies in, operations out.

    LOCK_RUNNING, LOCK_CANDIDATE, READ -> RESET -> EDIT, COMMIT

`TRANSITIONS` (`transitions.py`) defines what follows each answer. A phase that a device or a change does not need is
passed over as if its answer were `DONE`: without a candidate the edit of the running configuration is the change
itself; READ belongs to changes with a condition, such as that a circuit to be removed is still the one that is set.

Requests between two arrows are sent in one write: a device carries out the requests of a session in their order and
answers in that order (RFC 6241, section 4.5). So a request may be sent before the answer to the previous one if it does
no harm when that one is refused.

- Neither the locks nor READ change a configuration.
- RESET and EDIT wait for the locks. A candidate with changes of another session cannot be locked (section 7.5), but it
  can be edited: that session could then commit the edit, and a discard would remove its changes.
- COMMIT is sent with EDIT if the device grants both locks and has `rollback-on-error`. A refused edit then leaves the
  candidate as it was when it was locked, which is without changes (sections 7.2 and 7.5), so that the commit changes
  nothing. Otherwise COMMIT waits: it could put a part of a refused edit into effect, or undo changes of other clients.

Both datastores are locked. The lock of the candidate makes edits and commits of other sessions fail (sections 7.5 and
8.3.4.1). The lock of the running configuration does so for direct edits and for clients of other protocols: a commit
replaces that configuration, so that nothing else may change it between READ and COMMIT. Locks are released after each
change, because they exclude all other clients. A device that cannot lock the candidate may have one with changes of an
earlier session that broke off; RESET discards them, because the commit would put them into effect.

The commit is a plain one, also where the device has confirmed commits (section 8.4). Those help a client that loses its
connection by its own change, but circuits do not carry the connection to the switch. A confirmed commit takes one more
round trip, and if the session breaks off before the confirmation, the device undoes it when it notices: that may be
after the next session has read the circuits. A plain commit is in effect as a whole or not at all (section 8.3.4.1); a
caller that gets no answer to it reads the circuits in the next session.

At the end, changes that were refused are discarded and locks released. Nothing waits for the answers: the requests of
the next change follow in order. If the device refuses one of these operations, the caller must end the session,
whereupon the device does the same (sections 7.5 and 8.3.5.2).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from optical_switch.netconf.features import EditFeatures
from optical_switch.netconf.messages import RpcError, RpcReply
from optical_switch.netconf.operations import (
    Datastore,
    commit,
    discard_changes,
    edit_config,
    get_config,
    lock,
    unlock,
)
from optical_switch.netconf.transitions import TRANSITIONS, Answer, TransactionOutcome, TransactionPhase

_BUSY_TAGS = {"lock-denied", "in-use", "resource-denied"}
"""Tags of the refusal of a lock that another session holds, or of a device without room for one."""


@dataclass(frozen=True, slots=True)
class Precondition:
    """A condition that the running configuration must meet.

    Parameters
    ----------
    content : str
        Subtree filter of the part that is read.
    holds : Callable[[Element], bool]
        Function that returns true if the data meet it. Raises ProtocolError if they cannot be read.
    """

    content: str
    holds: Callable[[Element], bool]


@dataclass(frozen=True, slots=True)
class TransactionEnd:
    """The end of a change.

    Parameters
    ----------
    outcome : TransactionOutcome
        How it ended.
    errors : tuple[RpcError, ...]
        Errors of the device that ended it.
    cleanup : tuple[str, ...]
        Operations to send now; if one is refused, the caller must end the session.
    """

    outcome: TransactionOutcome
    errors: tuple[RpcError, ...] = ()
    cleanup: tuple[str, ...] = ()


_LOCKED_IN: dict[TransactionPhase, Datastore] = {
    TransactionPhase.LOCK_RUNNING: "running",
    TransactionPhase.LOCK_CANDIDATE: "candidate",
}


class Transaction:
    """A change, from its first request to its end.

    Parameters
    ----------
    features : EditFeatures
        How the device edits.
    edit : str
        Content of the edit.
    condition : Precondition | None
        Precondition of the change. None: none.
    without_lock : Sequence[Datastore]
        Datastores that the device cannot lock.
    """

    def __init__(
        self,
        features: EditFeatures,
        edit: str,
        condition: Precondition | None = None,
        without_lock: Sequence[Datastore] = (),
    ) -> None:
        self._features = features
        self._edit = edit
        self._condition = condition
        self._unanswered: deque[TransactionPhase] = deque()
        self._outcome: TransactionOutcome | None = None
        """Its end, if it is certain while other requests have no answer yet."""
        self._errors: tuple[RpcError, ...] = ()
        self._locked: list[Datastore] = []
        self._is_edited = False
        self.without_lock = set(without_lock)
        """Datastores that the device cannot lock, as far as it is known."""

    def start(self) -> Sequence[str]:
        """Return the first operations to send."""
        operations = self._send(TransactionPhase.LOCK_RUNNING)
        assert not isinstance(operations, TransactionEnd), "every change has an edit"
        return operations

    def advance(self, reply: RpcReply) -> Sequence[str] | TransactionEnd:
        """Process the reply to the oldest operation that has none yet.

        Parameters
        ----------
        reply : RpcReply
            The reply.

        Returns
        -------
        Sequence[str] | TransactionEnd
            The next operations, which are none while others have no reply; or the end.

        Raises
        ------
        ProtocolError
            If what the device reports cannot be read; the caller must end the session.
        """
        phase = self._unanswered.popleft()
        answer = self._answer(phase, reply)
        self._note(phase, answer)
        follows = TRANSITIONS[phase, answer]
        if self._outcome is None and isinstance(follows, TransactionOutcome):
            self._outcome, self._errors = follows, reply.errors
        # Locks may still be granted, and are to be released.
        return () if self._unanswered else self._send(self._outcome or follows)

    def _send(self, follows: TransactionPhase | TransactionOutcome) -> Sequence[str] | TransactionEnd:
        """Return the requests of the next phase and of the phases that are sent with it; the end if there are none."""
        operations: list[str] = []
        while isinstance(follows, TransactionPhase):
            answer = self._without_request(follows)
            if answer is None:
                if operations and not self._is_sent_with_previous(follows):
                    return operations
                operations.append(self._operation(follows))
                self._unanswered.append(follows)
            follows = TRANSITIONS[follows, answer or Answer.DONE]
        return operations or TransactionEnd(follows, self._errors, self._cleanup(follows))

    def _is_sent_with_previous(self, phase: TransactionPhase) -> bool:
        """Return true if a request does no harm when the previous one is refused."""
        if phase is TransactionPhase.COMMIT:
            return self._features.rollback_on_error and set(self._locked) == set(self._features.locks)
        return phase in {TransactionPhase.LOCK_CANDIDATE, TransactionPhase.READ}

    def _without_request(self, phase: TransactionPhase) -> Answer | None:
        """Return the answer in a phase that needs no request; None if it needs one."""
        needed = {
            TransactionPhase.LOCK_CANDIDATE: self._features.candidate,
            TransactionPhase.READ: self._condition is not None,
            TransactionPhase.RESET: self._features.candidate and "candidate" in self.without_lock,
            TransactionPhase.COMMIT: self._features.candidate,
        }
        if not needed.get(phase, True):
            return Answer.DONE
        return Answer.UNSUPPORTED if _LOCKED_IN.get(phase) in self.without_lock else None

    def _operation(self, phase: TransactionPhase) -> str:
        """Return the request of a phase."""
        match phase:
            case TransactionPhase.LOCK_RUNNING | TransactionPhase.LOCK_CANDIDATE:
                return lock(_LOCKED_IN[phase])
            case TransactionPhase.READ:
                assert self._condition is not None, "the phase is passed over"
                return get_config(self._condition.content)
            case TransactionPhase.RESET:
                return discard_changes()
            case TransactionPhase.EDIT:
                return edit_config(self._features.target, self._edit, rollback=self._features.rollback_on_error)
            case TransactionPhase.COMMIT:
                return commit()

    def _answer(self, phase: TransactionPhase, reply: RpcReply) -> Answer:
        if reply.errors:
            return self._refused(phase, reply.errors[0].tag)
        # Without the locks, what was read decides nothing.
        if phase is TransactionPhase.READ and self._outcome is None:
            assert self._condition is not None, "the phase is passed over"
            data = reply.data if reply.data is not None else Element("data")
            return Answer.DONE if self._condition.holds(data) else Answer.WITHHELD
        return Answer.DONE

    def _refused(self, phase: TransactionPhase, tag: str) -> Answer:
        if phase in _LOCKED_IN:
            if tag in _BUSY_TAGS:
                return Answer.BUSY
            if tag == "operation-not-supported":
                return Answer.UNSUPPORTED
        return Answer.REFUSED

    def _note(self, phase: TransactionPhase, answer: Answer) -> None:
        datastore = _LOCKED_IN.get(phase)
        if datastore is not None and answer is Answer.DONE:
            self._locked.append(datastore)
        elif datastore is not None and answer is Answer.UNSUPPORTED:
            self.without_lock.add(datastore)
        elif phase is TransactionPhase.EDIT:
            # Without rollback, a refused edit may have changed a part of the candidate.
            self._is_edited = self._features.candidate

    def _cleanup(self, outcome: TransactionOutcome) -> tuple[str, ...]:
        unlocks = (unlock(datastore) for datastore in reversed(self._locked))
        if self._is_edited and outcome is TransactionOutcome.REFUSED:
            return (discard_changes(), *unlocks)
        return tuple(unlocks)

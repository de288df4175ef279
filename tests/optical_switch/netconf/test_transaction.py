"""A change of the configuration: its requests on every kind of device, and what each refusal leaves behind."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Sequence
from itertools import product
from typing import Literal
from xml.etree.ElementTree import Element

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optical_switch.errors import ProtocolError
from optical_switch.netconf.features import EditFeatures, edit_features
from optical_switch.netconf.messages import RpcError, RpcReply
from optical_switch.netconf.transaction import Precondition, Transaction, TransactionEnd
from optical_switch.netconf.transitions import TRANSITIONS, Answer, TransactionOutcome, TransactionPhase

CANDIDATE = EditFeatures(candidate=True, rollback_on_error=False)
ROLLBACK = EditFeatures(candidate=True, rollback_on_error=True)
RUNNING = EditFeatures(candidate=False, rollback_on_error=False)
ALL_FEATURES = [EditFeatures(*flags) for flags in product((False, True), repeat=2)]
LOCKS = ["lock running", "lock candidate"]
UNLOCKS = ["unlock candidate", "unlock running"]
EDIT, COMMIT = "edit-config candidate", "commit"

Device = Callable[[str], Sequence[str]]
"""Returns the tags of the errors with which an operation is refused; none if it is carried out."""


def name(operation: str) -> str:
    """Return an operation in a word or two: its name, and the datastore."""
    found = re.match(r"<([a-z-]+)(?:[^>]*>(?:<(?:target|source)><([a-z]+)/>))?", operation)
    assert found is not None
    return " ".join(filter(None, found.groups()))


def carry_out(transaction: Transaction, refuse: Device) -> tuple[list[list[str]], TransactionEnd]:
    """Return the names of the operations that are sent together, until the end without the cleanup."""
    sent = [[name(operation) for operation in transaction.start()]]
    unanswered = deque(sent[0])
    while True:
        assert unanswered, "a change without requests on their way never ends"
        errors = tuple(RpcError(tag) for tag in refuse(unanswered.popleft()))
        step = transaction.advance(RpcReply("1", errors, Element("data")))
        if isinstance(step, TransactionEnd):
            assert not unanswered, "its locks are not known before all answers"
            return sent, step
        if step:
            sent.append([name(operation) for operation in step])
            unanswered += sent[-1]


def refusing(**tags: str) -> Device:
    by_name = {
        operation.replace("_", " ").replace("edit config", "edit-config"): tag for operation, tag in tags.items()
    }
    return lambda operation: [by_name[operation]] if operation in by_name else []


def condition(holds: bool) -> Precondition:
    return Precondition("<a/>", lambda _: holds)


# ----------------------------------------------------------------------------------------------- without a refusal


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        (RUNNING, [["lock running"], ["edit-config running"], ["unlock running"]]),
        (CANDIDATE, [LOCKS, [EDIT], [COMMIT], UNLOCKS]),
        (ROLLBACK, [LOCKS, [EDIT, COMMIT], UNLOCKS]),
    ],
)
def test_change_takes_the_requests_that_the_device_needs(features: EditFeatures, expected: list[list[str]]) -> None:
    sent, ended = carry_out(Transaction(features, "<a/>"), refusing())
    assert ended.outcome is TransactionOutcome.DONE
    assert [*sent, [name(operation) for operation in ended.cleanup]] == expected


def test_condition_is_read_under_the_locks_before_the_edit() -> None:
    sent, ended = carry_out(Transaction(CANDIDATE, "<a/>", condition(holds=True)), refusing())
    assert sent == [[*LOCKS, "get-config running"], [EDIT], [COMMIT]]
    sent, ended = carry_out(Transaction(CANDIDATE, "<a/>", condition(holds=False)), refusing())
    assert sent == [[*LOCKS, "get-config running"]] and ended.outcome is TransactionOutcome.WITHHELD
    assert [name(operation) for operation in ended.cleanup] == UNLOCKS


def test_condition_decides_nothing_without_the_locks() -> None:
    def fail(_data: Element) -> bool:
        raise AssertionError("it was read without a lock")

    sent, ended = carry_out(
        Transaction(CANDIDATE, "<a/>", Precondition("<a/>", fail)), refusing(lock_candidate="lock-denied")
    )
    assert sent == [[*LOCKS, "get-config running"]] and ended.outcome is TransactionOutcome.BUSY
    assert [error.tag for error in ended.errors] == ["lock-denied"]


@pytest.mark.parametrize("features", ALL_FEATURES)
def test_edit_asks_for_rollback_where_the_device_has_it(features: EditFeatures) -> None:
    transaction = Transaction(features, "<a/>", without_lock=["running"])
    step: Sequence[str] | TransactionEnd = transaction.start()
    if features.candidate:
        step = transaction.advance(RpcReply("1"))
    assert not isinstance(step, TransactionEnd)
    assert ("<error-option>rollback-on-error</error-option>" in step[0]) == features.rollback_on_error


@pytest.mark.parametrize("unlockable", [["running"], ["candidate"], ["running", "candidate"]])
def test_commit_waits_for_the_edit_without_one_of_the_locks(unlockable: list[Literal["running", "candidate"]]) -> None:
    sent, ended = carry_out(Transaction(ROLLBACK, "<a/>", without_lock=unlockable), refusing())
    assert sent[-2:] == [[EDIT], [COMMIT]] and ended.outcome is TransactionOutcome.DONE


# -------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("refused", "last", "outcome", "cleanup"),
    [
        ({"lock_running": "lock-denied"}, "lock candidate", TransactionOutcome.BUSY, ["unlock candidate"]),
        ({"lock_running": "access-denied"}, "lock candidate", TransactionOutcome.REFUSED, ["unlock candidate"]),
        ({"lock_candidate": "in-use"}, "lock candidate", TransactionOutcome.BUSY, ["unlock running"]),
        ({"lock_candidate": "operation-failed"}, "lock candidate", TransactionOutcome.REFUSED, ["unlock running"]),
        (
            {"edit_config_candidate": "data-exists"},
            "commit",
            TransactionOutcome.REFUSED,
            ["discard-changes", "unlock candidate", "unlock running"],
        ),
        (
            {"commit": "operation-failed"},
            "commit",
            TransactionOutcome.REFUSED,
            ["discard-changes", "unlock candidate", "unlock running"],
        ),
    ],
)
def test_refusal_discards_changes_and_releases_locks(
    refused: dict[str, str], last: str, outcome: TransactionOutcome, cleanup: list[str]
) -> None:
    sent, ended = carry_out(Transaction(ROLLBACK, "<a/>"), refusing(**refused))
    assert (sent[-1][-1], ended.outcome, [name(one) for one in ended.cleanup]) == (last, outcome, cleanup)
    assert [error.tag for error in ended.errors] == list(refused.values())


def test_first_refused_lock_decides() -> None:
    refused = refusing(lock_running="lock-denied", lock_candidate="access-denied")
    _, ended = carry_out(Transaction(ROLLBACK, "<a/>"), refused)
    assert (ended.outcome, ended.cleanup) == (TransactionOutcome.BUSY, ())
    assert [error.tag for error in ended.errors] == ["lock-denied"]


def test_refused_edit_is_reported_although_the_commit_after_it_is_answered() -> None:
    for tags in ({}, {"commit": "operation-failed"}):
        _, ended = carry_out(Transaction(ROLLBACK, "<a/>"), refusing(edit_config_candidate="data-exists", **tags))
        assert ended.outcome is TransactionOutcome.REFUSED
        assert [error.tag for error in ended.errors] == ["data-exists"]


def test_commit_never_follows_a_refused_edit_without_rollback() -> None:
    sent, ended = carry_out(Transaction(CANDIDATE, "<a/>"), refusing(edit_config_candidate="data-exists"))
    assert sent == [LOCKS, [EDIT]] and ended.outcome is TransactionOutcome.REFUSED
    assert [name(operation) for operation in ended.cleanup] == ["discard-changes", *UNLOCKS]


def test_refused_edit_of_running_configuration_has_nothing_to_discard() -> None:
    _, ended = carry_out(Transaction(RUNNING, "<a/>"), refusing(edit_config_running="invalid-value"))
    assert (ended.outcome, [name(one) for one in ended.cleanup]) == (TransactionOutcome.REFUSED, ["unlock running"])


def test_device_without_locks_is_edited_all_the_same_after_a_reset() -> None:
    unsupported = refusing(lock_running="operation-not-supported", lock_candidate="operation-not-supported")
    first = Transaction(CANDIDATE, "<a/>")
    sent, ended = carry_out(first, unsupported)
    assert sent == [LOCKS, ["discard-changes"], [EDIT], [COMMIT]]
    assert ended == TransactionEnd(TransactionOutcome.DONE) and first.without_lock == {"running", "candidate"}
    sent, _ = carry_out(Transaction(CANDIDATE, "<a/>", without_lock=tuple(first.without_lock)), unsupported)
    assert sent == [["discard-changes"], [EDIT], [COMMIT]]


def test_candidate_that_cannot_be_locked_is_reset_under_the_lock_of_the_running_configuration() -> None:
    holds = condition(holds=True)
    sent, ended = carry_out(
        Transaction(CANDIDATE, "<a/>", holds, without_lock=("candidate",)), refusing(lock_running="lock-denied")
    )
    assert sent == [["lock running", "get-config running"]] and ended.outcome is TransactionOutcome.BUSY
    sent, _ = carry_out(Transaction(CANDIDATE, "<a/>", holds, without_lock=("candidate",)), refusing())
    assert sent[:2] == [["lock running", "get-config running"], ["discard-changes"]]


def test_device_that_locks_the_candidate_alone_needs_no_reset() -> None:
    transaction = Transaction(CANDIDATE, "<a/>")
    sent, ended = carry_out(transaction, refusing(lock_running="operation-not-supported"))
    assert sent == [LOCKS, [EDIT], [COMMIT]]
    assert [name(one) for one in ended.cleanup] == ["unlock candidate"] and transaction.without_lock == {"running"}


TAGS = ["", "", "", "lock-denied", "operation-not-supported", "operation-failed"]


@given(
    st.sampled_from(ALL_FEATURES),
    st.sampled_from([None, True, False]),
    st.lists(st.sampled_from(TAGS), min_size=9, max_size=9),
)
def test_every_change_ends_with_its_locks_released(features: EditFeatures, holds: bool | None, tags: list[str]) -> None:
    answers = iter(tags)
    log: list[tuple[str, bool]] = []

    def refuse(operation: str) -> Sequence[str]:
        tag = next(answers)
        log.append((operation, not tag))
        return [tag] if tag else []

    transaction = Transaction(features, "<a/>", None if holds is None else condition(holds))
    _, ended = carry_out(transaction, refuse)
    done = [operation for operation, is_done in log if is_done]
    cleanup = [name(operation) for operation in ended.cleanup]
    locked = [operation for operation in done if operation.startswith("lock ")]
    assert [f"un{operation}" for operation in reversed(locked)] == [one for one in cleanup if one.startswith("unlock")]
    edits = [is_done for operation, is_done in log if operation.startswith("edit-config")]
    assert ("discard-changes" in cleanup) == (
        features.candidate and bool(edits) and ended.outcome is TransactionOutcome.REFUSED
    )
    has_commit = any(operation == COMMIT for operation, _ in log)
    if holds is False or ended.outcome is TransactionOutcome.BUSY:
        assert not edits
    if not all(edits):
        # The commit of a candidate that the refused edit left without changes.
        assert has_commit == (features.rollback_on_error and sorted(locked) == sorted(LOCKS))
    if ended.outcome is TransactionOutcome.DONE:
        assert edits == [True] and done[-1] == (COMMIT if features.candidate else "edit-config running")


def test_table_reaches_every_phase_and_outcome() -> None:
    assert {phase for phase, _ in TRANSITIONS} == set(TransactionPhase)
    assert set(TRANSITIONS.values()) == {*TransactionPhase, *TransactionOutcome} - {TransactionPhase.LOCK_RUNNING}
    for phase in TransactionPhase:
        assert {(phase, Answer.DONE), (phase, Answer.REFUSED)} <= TRANSITIONS.keys()


# -------------------------------------------------------------------------------------------------------- features


def test_features_follow_from_capabilities() -> None:
    def announced(*names: str) -> list[str]:
        return [f"urn:ietf:params:netconf:capability:{name}" for name in names]

    assert edit_features(announced("writable-running:1.0")) == RUNNING
    assert edit_features(announced("candidate:1.0", "confirmed-commit:1.0")) == CANDIDATE
    everything = announced("candidate:1.0", "confirmed-commit:1.1", "rollback-on-error:1.0", "writable-running:1.0")
    assert edit_features(everything) == ROLLBACK
    assert (RUNNING.atomic, CANDIDATE.atomic) == (False, True)
    with pytest.raises(ProtocolError, match="read-only"):
        edit_features(announced("startup:1.0"))

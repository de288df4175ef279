"""The meaning of refusals."""

from __future__ import annotations

import grpc
import pytest

from optical_switch.errors import DeviceBusyError, OpticalSwitchError, ProtocolError, RefusedError, UnreachableError
from optical_switch.model import Circuit, Port
from optical_switch.sonic_ocs.refusals import grpc_error, refused_batch

DELETES, ADDS = [Circuit(1, 2)], [Circuit(7, 9), Circuit(8, 3)]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("UNAVAILABLE", UnreachableError),
        ("DEADLINE_EXCEEDED", UnreachableError),
        ("CANCELLED", UnreachableError),
        ("RESOURCE_EXHAUSTED", DeviceBusyError),
        ("UNIMPLEMENTED", ProtocolError),
        ("UNAUTHENTICATED", RefusedError),
        ("PERMISSION_DENIED", RefusedError),
        ("INVALID_ARGUMENT", RefusedError),
        ("ABORTED", RefusedError),
        ("UNKNOWN", RefusedError),
    ],
)
def test_status_code_decides_error(code: str, kind: type[OpticalSwitchError]) -> None:
    error = grpc_error(code, "port\n" + "x" * 1000)
    assert type(error) is kind
    assert code in str(error) and str(error).isprintable() and len(str(error)) < 400


def test_every_code_of_grpc_has_an_error() -> None:
    for code in grpc.StatusCode:
        assert isinstance(grpc_error(code.name, ""), OpticalSwitchError)


@pytest.mark.parametrize(
    ("text", "circuits", "ports"),
    [
        ("no such table", [], []),
        ("7A-9B: invalid", [Circuit(7, 9)], []),
        ("7A-9B and 1A-2B: invalid, 2B has failed", [Circuit(1, 2), Circuit(7, 9)], [Port("out", 2)]),
        ("port 3B has failed", [Circuit(8, 3)], [Port("out", 3)]),
        ("7A: in use", [Circuit(7, 9)], [Port("in", 7)]),
        ("9B is in use by 3A-9B", [Circuit(7, 9)], [Port("out", 9)]),
        ("7B and 9A are unknown", [], [Port("out", 7), Port("in", 9)]),
        # A delete is not blamed for a port that an add needs.
        ("2B is in use", [], [Port("out", 2)]),
    ],
)
def test_refused_transaction_blames_circuits_and_ports_that_text_names(
    text: str, circuits: list[Circuit], ports: list[Port]
) -> None:
    result = refused_batch("INVALID_ARGUMENT", text, DELETES, ADDS)
    assert list(result.refused) == circuits
    assert result.error is not None and result.error.ports == frozenset(ports)
    assert str(result.error) == f"INVALID_ARGUMENT: {text}"
    assert set(result.refused.values()) <= {result.error}


def test_text_of_refusal_is_bounded_and_names_beyond_the_bound_count() -> None:
    result = refused_batch("UNKNOWN", "\x1b" * 1000 + " 7A-9B", DELETES, ADDS)
    assert list(result.refused) == [Circuit(7, 9)]
    assert result.error is not None and str(result.error).isprintable() and len(str(result.error)) < 300

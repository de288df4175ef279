"""Both tables name exactly the interface's methods, and every field of the interface reaches the core or the client."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest
from thrift.Thrift import TType

import blast_controller.rpc
from blast_api import Blast, BlastOperator, ttypes
from blast_client.api.aio import AsyncClient
from blast_client.api.client import Client
from blast_client.api.methods import SAFE_TO_REPEAT
from blast_controller.rpc.clients.access import OPEN_POLICY
from blast_controller.rpc.clients.gate import Gate
from blast_controller.rpc.clients.identity import Role
from blast_controller.rpc.connections.connection import Connection
from blast_controller.rpc.connections.messages import ServiceCodec
from blast_controller.rpc.handler import FIELD_FEATURES, BlastHandler
from blast_controller.rpc.methods import METHODS, ROLES, Cost
from tests.support.controller.core import World, make_fabric
from tests.support.controller.direct_runtime import DirectRuntime

INTERFACE = ServiceCodec(BlastOperator).methods
NEVER_SENT: set[str] = set()
"""Structs that only several controllers send."""


# ------------------------------------------------------------------------------------------------------- the tables


def test_both_tables_name_the_methods_of_the_interface_and_nothing_else():
    declared = {*vars(Blast.Iface), *vars(BlastOperator.Iface)} - {*vars(type("Empty", (), {}))}
    assert set(METHODS) == set(SAFE_TO_REPEAT) == set(INTERFACE) == declared


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_client_has_a_call_for_every_method(kind):
    names = {"".join(f"_{c.lower()}" if c.isupper() else c for c in name) for name in INTERFACE}
    assert {name for name in names if callable(getattr(kind, name, None))} == names


def test_viewer_methods_change_nothing():
    by_role = {role: {name for name, method in METHODS.items() if method.role is role} for role in (None, *Role)}
    assert by_role[None] == {"ping", "version", "login"}
    assert by_role[Role.VIEWER] == {"status", "awaitEvent", "listRequests", "explain", "fabric", "elements"}
    assert by_role[Role.USER] == {"submit", "request", "extend", "finish", "withdraw"}


def test_methods_that_are_not_idempotent_are_not_repeated():
    assert {name for name, safe in SAFE_TO_REPEAT.items() if not safe} == {
        "extend", "finish", "withdraw", "login", "reconcile", "verifyFabric", "resume", "stepDown",
    }  # fmt: skip


def test_methods_without_worker_cost_are_answered_in_the_io_thread():
    """A method that reads a file or scans everything would block all other clients there."""
    quick = {name for name, method in METHODS.items() if method.cost is not Cost.WORKER}
    assert handler().at_once == quick


def test_method_features_differ_from_field_features():
    assert not FIELD_FEATURES & {method.feature for method in METHODS.values()}


# ------------------------------------------------------------------------------------------- what clients send is read


def handler() -> BlastHandler:
    runtime = DirectRuntime(World(make_fabric(3, [4])))
    return BlastHandler(runtime, "os-ken", lambda after, limit: [], Gate(OPEN_POLICY, ROLES))


def structs_in(kind: int, detail: object) -> Iterator[type]:
    match kind, detail:
        case TType.STRUCT, [struct, *_]:
            yield from reachable(struct)
        case ((TType.LIST | TType.SET), (inner, inner_detail, _)):
            yield from structs_in(inner, inner_detail)
        case TType.MAP, (key, key_detail, value, value_detail, _):
            yield from structs_in(key, key_detail)
            yield from structs_in(value, value_detail)


def reachable(struct: type) -> Iterator[type]:
    """Yield a struct and all structs in it."""
    yield struct
    for _, kind, _, detail, _ in filter(None, struct.thrift_spec):
        yield from structs_in(kind, detail)


def fields(struct: type) -> list[str]:
    return [spec[2] for spec in filter(None, struct.thrift_spec)]


def inside(struct: type) -> set[type]:
    return set(reachable(struct)) - {struct}


def sample(kind: int, detail: object) -> object:
    match kind:
        case TType.STRING:
            return "1"
        case TType.LIST:
            return [sample(*detail[:2])]
        case TType.BOOL:
            return True
    return 1


def noting(struct: type, read: set[str]) -> type:
    """Return a subclass of a struct that adds the name of each field that is read to `read`."""

    def look(self, name):
        read.add(name)
        return object.__getattribute__(self, name)

    return type(struct.__name__, (struct,), {"__getattribute__": look})


ALWAYS_SENT = ("key", "sender", "receivers", "bytes", "progressBytes")
SENT = [(name, spec) for name, method in INTERFACE.items() for spec in filter(None, method.arguments.thrift_spec)]


@pytest.mark.parametrize(("method", "struct"), [(name, s[3][0]) for name, s in SENT if s[1] == TType.STRUCT])
def test_handler_reads_every_field_that_clients_send(method, struct):
    read: set[str] = set()
    samples = {name: sample(kind, detail) for _, kind, name, detail, _ in filter(None, struct.thrift_spec)}
    for name in (None, *fields(struct)):
        # The handler reads some fields only when others are set, or are not.
        values = {one: value if one in (*ALWAYS_SENT, name) else None for one, value in samples.items()}
        arguments = [
            noting(struct, read)(**values) if spec[1] == TType.STRUCT else sample(spec[1], spec[3])
            for spec in filter(None, INTERFACE[method].arguments.thrift_spec)
        ]
        try:
            answer = getattr(handler(), method)(Connection(1, "192.0.2.1:1"), *arguments)
            assert isinstance(answer, Future | ttypes.RequestPage)
        except (ttypes.Rejected, ttypes.Unsupported):
            pass
    assert set(fields(struct)) <= read


# ------------------------------------------------------------------------------------------ what clients get is set


def given() -> dict[str, set[str]]:
    """Return the fields that the server sets, by struct."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for folder in blast_controller.rpc.__path__:
        for file in Path(folder).glob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                match node:
                    case ast.Call(func=ast.Attribute(value=ast.Name(id="ttypes"), attr=name)):
                        found[name] |= given_by(node, fields(getattr(ttypes, name)))
    return found


def given_by(call: ast.Call, names: list[str]) -> set[str]:
    if any(isinstance(one, ast.Starred) for one in call.args):
        return set(names)
    return {*names[: len(call.args)], *(keyword.arg for keyword in call.keywords)}


def answers() -> set[type]:
    found: set[type] = set()
    for method in INTERFACE.values():
        for _, kind, _, detail, _ in filter(None, method.result.thrift_spec):
            found |= set(structs_in(kind, detail))
    return found


@pytest.mark.parametrize("struct", sorted(answers(), key=lambda struct: struct.__name__), ids=lambda s: s.__name__)
def test_server_sets_every_field_that_clients_receive(struct):
    missing = set(fields(struct)) - given()[struct.__name__]
    assert missing == (set(fields(struct)) if struct.__name__ in NEVER_SENT else set())

"""The type stubs of the generated package: they match its description and are complete."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TType

import blast_api
from blast_api import Blast, BlastOperator, constants, ttypes

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def stubs() -> ModuleType:
    spec = importlib.util.spec_from_file_location("typed_stubs", ROOT / "scripts" / "typed_stubs.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("module", [ttypes, Blast, BlastOperator, constants])
def test_committed_stubs_equal_generated_stubs(stubs, module):
    assert (ROOT / "blast_api" / f"{module.__name__.rpartition('.')[2]}.pyi").read_text() == stubs.stub_of(module)


def test_every_module_has_a_stub():
    folder = Path(blast_api.__path__[0])
    assert {file.stem for file in folder.glob("*.py")} == {file.stem for file in folder.glob("*.pyi")}


@pytest.mark.parametrize(
    ("kind", "detail", "type_"),
    [
        (TType.DOUBLE, None, "float"),
        (TType.STRING, "UTF8", "str"),
        (TType.STRING, "BINARY", "bytes"),
        (TType.STRUCT, [ttypes.Grant, None], "Grant"),
        (TType.LIST, (TType.STRUCT, [ttypes.Grant, None], False), "list[Grant]"),
        (TType.MAP, (TType.STRING, "UTF8", TType.LIST, (TType.I32, None, False), False), "dict[str, list[int]]"),
    ],
)
def test_types(stubs, kind, detail, type_):
    assert stubs.type_of(kind, detail) == type_


class Mixed:
    """A struct like those of the compiler: 1: optional string note, 2: required i32 size, 3: string name."""

    thrift_spec = (
        None,
        (1, TType.STRING, "note", "UTF8", None),
        (2, TType.I32, "size", None, None),
        (3, TType.STRING, "name", "UTF8", None),
    )

    def __init__(self, note=None, size=None, name=None):
        self.note, self.size, self.name = note, size, name

    def validate(self):
        if self.size is None:
            raise TProtocolException(message="Required field size is unset!")


def test_only_required_fields_are_not_optional(stubs):
    assert stubs.fields_of(Mixed) == {"note": "str | None", "size": "int", "name": "str | None"}
    written = list(stubs.structure(Mixed))
    assert "    def __init__(self, note: str | None, size: int, name: str | None = ...) -> None: ..." in written


def test_method_stub_has_parameters_return_type_and_exceptions():
    written = (ROOT / "blast_api" / "Blast.pyi").read_text()
    assert "def submit(self, request: MulticastRequest | None) -> RequestStatus:" in written
    assert '"""Raises UnknownRequest, Denied, NotLeader."""' in written
    assert "def ping(self) -> None: ..." in written

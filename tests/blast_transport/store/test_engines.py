"""Selection of engines, messages about unusable ones, and faults of the compiled one."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path
from types import ModuleType

import pytest

from blast_client.cli.command import main
from blast_client.cli.failures import InvalidArgumentError
from blast_client.send.round import RoundSettings
from blast_transport.agent.settings import parse
from blast_transport.base import engines
from blast_transport.base.engines import AUTO, COMPILED, PYTHON, check_engine, compiled, engines_here, examined
from blast_transport.base.errors import EngineError, SettingsError, SourceChangedError, StoreError, WrongInputError
from blast_transport.blocks.digests import suite_named
from blast_transport.blocks.layout import BlockLayout
from blast_transport.session.sender import Sender
from blast_transport.session.settings import SenderSettings
from blast_transport.store.opening import open_store
from blast_transport.store.sources.block_reader import BlockReader
from blast_transport.store.sources.compiled_reader import open_reader
from blast_transport.store.sources.source import FileSource
from blast_transport.store.targets.file_target import FileRules, FileTarget
from blast_transport.store.targets.memory_target import MemoryTarget
from tests.support.transport.engines import BOTH, file_store
from tests.support.transport.pipeline_chain import open_descriptors
from tests.support.transport.transport_data import SUITE, Data, data_of
from tests.support.waiting import eventually

LAYOUT = BlockLayout(1000, 10, 4)
AGENT = '[agent]\nengine = "{}"\n[[folder]]\nname = "f"\npath = "/f"\n'


@pytest.fixture
def no_engine(monkeypatch: pytest.MonkeyPatch) -> str:
    reason = examined("no_such_module_anywhere")
    assert isinstance(reason, str)
    monkeypatch.setattr(engines, "_found", lambda: reason)
    return reason


@pytest.mark.usefixtures("no_engine")
def test_missing_compiled_engine_falls_back_to_python(tmp_path: Path) -> None:
    assert (compiled(AUTO), compiled(PYTHON)) == (None, None)
    assert file_store(PYTHON, tmp_path, LAYOUT).engine == PYTHON
    assert parse(AGENT.format(AUTO)).agent.engine == AUTO
    assert engines_here().startswith("python; the compiled engine is not installed: install the package")


@pytest.mark.usefixtures("no_engine")
def test_request_for_missing_engine_explains_installation(no_engine: str) -> None:
    assert "not installed: install the package blast-engine" in no_engine
    for ask, error in (
        (lambda: check_engine(COMPILED), WrongInputError),
        (lambda: Sender([("a", "127.0.0.1", 1)], SenderSettings(engine=COMPILED)), WrongInputError),
        (lambda: RoundSettings(engine=COMPILED), InvalidArgumentError),
        (lambda: parse(AGENT.format(COMPILED)), SettingsError),
    ):
        with pytest.raises(error, match=r"scripts/build-engine makes .* or choose the engine python"):
            ask()  # type: ignore[no-untyped-call]


def test_unknown_engine_is_rejected() -> None:
    with pytest.raises(WrongInputError, match="there is no engine 'rust'; choose one of auto, python, compiled"):
        check_engine("rust")
    with pytest.raises(SettingsError, match=r"agent\.engine: cannot be used: there is no engine 'rust'"):
        parse(AGENT.format("rust"))


@pytest.mark.parametrize("interface", [0, 99, None])
def test_engine_with_other_interface_is_rejected(monkeypatch: pytest.MonkeyPatch, interface: int | None) -> None:
    other = ModuleType("other_transport")
    if interface is not None:
        other.INTERFACE = interface  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "other_transport", other)
    reason = examined("other_transport")
    assert reason == (
        f"the compiled engine has interface {interface}, where this version of Blast needs {engines._INTERFACE}: "
        "install the package blast-engine, or the wheel that scripts/build-engine makes in a checkout of Blast"
    )
    monkeypatch.setattr(engines, "_found", lambda: reason)
    assert compiled(AUTO) is None
    with pytest.raises(WrongInputError, match=f"has interface {interface}"):
        compiled(COMPILED)


def test_unloadable_engine_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_transport.py").write_text("import nothing_of_that_name")
    monkeypatch.syspath_prepend(tmp_path)
    reason = str(examined("broken_transport"))
    assert "cannot be loaded (No module named 'nothing_of_that_name'): install the package" in reason


@pytest.mark.compiled
def test_compiled_engine_is_selected_for_files_only(tmp_path: Path) -> None:
    assert compiled(AUTO) is compiled(COMPILED) is not None
    assert compiled(PYTHON) is None
    assert file_store(COMPILED, tmp_path, LAYOUT).engine == COMPILED
    assert open_store(AUTO, LAYOUT, SUITE, MemoryTarget("m", 1000)).engine == PYTHON
    assert open_store(COMPILED, LAYOUT, suite_named("sha256"), MemoryTarget("m", 1000)).engine == PYTHON


def test_version_option_lists_engines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("blast ") and second == f"engines: {engines_here()}"


# ------------------------------------------------------------------------------------------------------- faults


@pytest.mark.compiled
def test_panic_of_engine_raises_error_without_ending_process(capfd: pytest.CaptureFixture[str]) -> None:
    native = compiled(COMPILED)
    assert native is not None
    with pytest.raises(native.EngineFault, match="as asked for"):
        native.panic()
    assert "panicked" in capfd.readouterr().err


@pytest.mark.compiled
def test_invalid_call_raises_engine_error(tmp_path: Path) -> None:
    store = file_store(COMPILED, tmp_path, LAYOUT)
    with pytest.raises(EngineError, match=r"a block of more than 40 bytes\); choose the engine python, and report"):
        store.put(0, bytes(41))
    assert not store.has(0)


@pytest.mark.parametrize("engine", BOTH)
def test_store_can_be_discarded_repeatedly_and_rejects_writes(engine: str, tmp_path: Path) -> None:
    data = data_of(1000)
    store = file_store(engine, tmp_path, data.layout)
    store.put(0, data.block(0))
    for _ in range(3):
        store.discard(resumable=True)
    eventually(lambda: not any(link.startswith(str(tmp_path)) for link in open_descriptors()), "nothing left open")
    for put in (lambda: store.put(1, data.block(1)), lambda: store.put_row(1, memoryview(data.block(1)))):
        with pytest.raises(StoreError, match=r"cannot write .*/file: Bad file descriptor$"):
            put()


@pytest.mark.parametrize("engine", BOTH)
def test_committed_store_ignores_duplicate_blocks(engine: str, tmp_path: Path) -> None:
    """A former transport may still deliver blocks."""
    data = data_of(1000)
    store = file_store(engine, tmp_path, data.layout)
    store.expect(0, data.digests())
    store.put_row(0, memoryview(data.content))
    store.commit(data.whole)
    assert not store.put(0, data.block(0))
    store.put_row(0, memoryview(data.content))
    store.discard()
    assert (tmp_path / "file").read_bytes() == data.content


@pytest.mark.parametrize("engine", BOTH)
def test_rejected_claim_claims_no_blocks(engine: str, tmp_path: Path) -> None:
    """The Python engine must not leave the blocks before the rejected one claimed."""
    data = data_of(41)
    store = file_store(engine, tmp_path, BlockLayout(None, 10, 4), FileRules(41))
    store.put_row(1, memoryview(data.block(1)))
    with pytest.raises(StoreError, match="more bytes came than the 41 that this agent takes"):
        store.claim(0, 3)
    assert store.put(0, data.block(0))


@pytest.mark.parametrize("engine", BOTH)
def test_row_beyond_size_limit_is_not_written(engine: str, tmp_path: Path) -> None:
    store = file_store(engine, tmp_path, BlockLayout(None, 10, 4), FileRules(60))
    with pytest.raises(StoreError, match="more bytes came than the 60 that this agent takes"):
        store.put_all(0, [bytes(40), bytes(40)])
    assert store.descriptor is not None and os.fstat(store.descriptor).st_size == 0


@pytest.mark.parametrize("engine", BOTH)
def test_full_disk_is_reported_with_system_error(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each write to /dev/full fails like a write to a full disk."""
    full = os.open("/dev/full", os.O_RDWR)
    try:
        monkeypatch.setattr(FileTarget, "_open_alone", lambda self: os.dup(full))
        monkeypatch.setattr(FileTarget, "_check_room", lambda self, size: None)
        monkeypatch.setattr("fcntl.flock", lambda *_: None)
        data = data_of(1000)
        store = file_store(engine, tmp_path, data.layout)
        with pytest.raises(StoreError, match=r"cannot write .*/file: No space left on device$"):
            store.put(0, data.block(0))
        assert not store.has(0) and store.position == 0
        store.discard()
    finally:
        os.close(full)


# ---------------------------------------------------------------------------------------------------- the sender


def reader_of(engine: str, path: Path, data: Data) -> tuple[BlockReader, int]:
    descriptor = os.open(path, os.O_RDONLY)
    reader = open_reader(engine, FileSource(path, descriptor), data.layout, SUITE, None)
    assert reader.engine == engine
    return reader, descriptor


@pytest.mark.parametrize("engine", BOTH)
@pytest.mark.parametrize("size", [0, 1, 39, 40, 41, 40 * 300 + 7])
def test_digests_do_not_depend_on_portions(engine: str, tmp_path: Path, size: int) -> None:
    data, draw = data_of(size), random.Random(size)
    path = tmp_path / "source"
    path.write_bytes(data.content)
    reader, descriptor = reader_of(engine, path, data)
    view = memoryview(bytearray(data.layout.block_size))
    found = b""
    while not reader.last(reader.digested):
        if draw.random() < 0.3:
            block = reader.digested
            assert view[: reader.load(block, view)] == data.block(block)
        else:
            assert reader.digest(draw.randint(1, 150))
        found += reader.take_digests()
    assert found == data.digests()
    assert not reader.digest(5)
    os.close(descriptor)


@pytest.mark.parametrize("engine", BOTH)
def test_reader_reports_truncated_file(engine: str, tmp_path: Path) -> None:
    data = data_of(1000)
    path = tmp_path / "source"
    path.write_bytes(data.content)
    reader, descriptor = reader_of(engine, path, data)
    assert reader.digest(5)
    os.truncate(path, 410)
    with pytest.raises(SourceChangedError, match="it has 410 bytes and had 1000"):
        while reader.digest(5):
            pass
    os.close(descriptor)

"""A kept result belongs to the code that computed it, including policies and methods outside the package."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from algorithms.scheduling import POLICIES
from blast_sim.base import software
from blast_sim.base.report import Row
from blast_sim.base.scenario_file import ScenarioSource
from blast_sim.base.sweep import Kept, Workers, run_cells
from blast_sim.base.wrong_input import InputError
from blast_sim.experiments.cell import Effort, FlowCell, cells_of
from blast_sim.experiments.run import run_cell
from blast_sim.plugins.loading import plugins_of
from blast_sim.scenarios.loading import load
from tests.support.simulators.plugin_modules import (
    CONTENDED,
    NARROWEST,
    POLICY,
    WIDEST,
    imported,
    new_name,
    write_module,
)


def contended(policy: str) -> FlowCell:
    (cell,) = cells_of(load(ScenarioSource("contended.toml", CONTENDED)), (0,), Effort("1"))
    return replace(cell, policy=policy)


def kept_result(cell: FlowCell, folder: Path) -> Row:
    ((row,),) = run_cells(run_cell, [cell], Workers(), Kept(folder))
    return row


def digest(policy: str) -> str:
    (plugin,) = plugins_of(policy)
    return plugin.sha256


def test_flipped_key_of_registered_policy_is_not_answered_by_kept_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    name = write_module(tmp_path, POLICY.format(key=WIDEST))
    for key in (WIDEST, NARROWEST):
        write_module(tmp_path, POLICY.format(key=key), name)
        monkeypatch.setitem(POLICIES, "mine", imported(monkeypatch, tmp_path, name).Mine())
        found.append(kept_result(contended("mine"), tmp_path / "kept")["seconds"])
    assert found[0] != found[1]
    assert len(list((tmp_path / "kept").iterdir())) == 2


def test_digest_covers_modules_that_the_policy_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A helper beside a single file, and every module of a package."""
    helper, package = new_name("helper"), new_name("package")
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").touch()
    write_module(tmp_path / package, "unused = 1\n", "deep")
    text = f"import {helper}\nfrom {package} import deep\n{POLICY.format(key='0.0')}"
    name, found = new_name(), []
    for folder, changed, content in (
        (tmp_path, helper, "a = 1\n"),
        (tmp_path, helper, "a = 2\n"),
        (tmp_path / package, "deep", "unused = 2\n"),
    ):
        write_module(folder, content, changed)
        write_module(tmp_path, text, name)
        monkeypatch.setitem(POLICIES, "mine", imported(monkeypatch, tmp_path, name).Mine())
        found.append(digest("mine"))
    assert len(set(found)) == 3


def test_digest_covers_parameters_of_a_registered_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = imported(monkeypatch, tmp_path, write_module(tmp_path, POLICY.format(key="self.sign")))
    found = []
    for sign in (1.0, -1.0, 1.0):
        policy = module.Mine()
        policy.sign = sign
        monkeypatch.setitem(POLICIES, "mine", policy)
        found.append(digest("mine"))
    assert found[0] == found[2] != found[1]


def test_digest_does_not_depend_on_where_the_module_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers of a cluster have their own folders."""
    name, found = new_name(), []
    for folder in (tmp_path / "here", tmp_path / "there"):
        folder.mkdir()
        write_module(folder, POLICY.format(key="0.0"), name)
        monkeypatch.setitem(POLICIES, "mine", imported(monkeypatch, folder, name).Mine())
        found.append(digest("mine"))
    assert found[0] == found[1]


def test_policy_of_the_package_is_covered_by_its_code() -> None:
    assert not any(plugins_of(policy) for policy in POLICIES)


def test_result_of_a_policy_without_a_file_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An example is a class in a cell of a notebook."""
    names: dict[str, Any] = {"__name__": "nowhere_in_particular"}
    exec(POLICY.format(key=NARROWEST), names)
    monkeypatch.setitem(POLICIES, "mine", names["Mine"]())
    cell = contended("mine")
    with pytest.raises(
        InputError, match="the policy 'mine' cannot be stored, because its class is not in a file: move"
    ):
        kept_result(cell, tmp_path / "kept")
    (rows,) = run_cells(run_cell, [cell], Workers(), Kept(None))
    assert isinstance(rows, list)


def test_data_beside_the_code_counts_as_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Recorded computation is in a TOML file."""
    package = new_name("code")
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(software, "CODE", (package,))
    found = []
    for text in ("a = 1", "a = 2"):
        (tmp_path / package / "recorded.toml").write_text(text)
        found.append(software.code_version.__wrapped__())
    assert found[0] != found[1]

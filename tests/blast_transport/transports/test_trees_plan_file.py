"""Plans of trees from files: the output of `blast trees`, and invalid files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from blast_transport.base.errors import WrongInputError
from blast_transport.links.dialling import SOURCE
from blast_transport.standalone.command import WRONG_INPUT, main
from blast_transport.transports.choices import Tree, Trees
from blast_transport.transports.plan_file import read_plan


def test_host_without_parent_in_any_tree_is_sender(tmp_path: Path) -> None:
    trees = [{"rate": 4e6, "edges": [["s", "a"], ["a", "b"]]}, {"rate": 1, "edges": [["s", "b"], ["b", "a"]]}]
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"rate": 1.0, "bound": 1.0, "trees": trees}))
    assert read_plan(path) == Trees((Tree(4e6, {"a": SOURCE, "b": "a"}), Tree(1.0, {"b": SOURCE, "a": "b"})))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "is no plan"),
        ('{"trees": [{"rate": 1}]}', "is no plan"),
        ('{"trees": [{"rate": 1, "edges": [[1, 2]]}]}', "is no plan"),
        ('{"trees": []}', "name at least one"),
        ('{"trees": [{"rate": 0, "edges": [["s", "a"]]}]}', "above 0"),
        ('{"trees": [{"rate": NaN, "edges": [["s", "a"]]}]}', "above 0"),
        ('{"trees": [{"rate": Infinity, "edges": [["s", "a"]]}]}', "above 0"),
        ('{"trees": [{"rate": 1, "edges": [["s", "a"], ["s", "a"]]}]}', "enters 'a' twice"),
        ('{"trees": [{"rate": 1, "edges": [["s", "a"], ["t", "b"]]}]}', "more than one sender"),
        ('{"trees": [{"rate": 1, "edges": [["a", "b"], ["b", "a"]]}]}', "cycle"),
    ],
)
def test_invalid_plan_is_reported(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(WrongInputError, match=message):
        read_plan(path)


def test_missing_plan_file_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x")
    command = ["send", str(file), "--to", "a=127.0.0.1:9", "--transport", "trees"]
    assert main(command) == WRONG_INPUT
    assert "needs --trees FILE" in capsys.readouterr().err
    assert main([*command, "--trees", str(tmp_path / "none")]) == WRONG_INPUT
    assert "cannot read" in capsys.readouterr().err

"""Results as Parquet: typed columns, and the same provenance as in CSV."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from blast_base import extras
from blast_client.cli.command import main
from blast_sim.base.parquet import as_parquet_rows, read_parquet, write_parquet
from blast_sim.base.provenance import Origin, Recording
from blast_sim.base.wrong_input import InputError
from tests.blast_sim.flow.test_flow_scenarios import SMALL

ROWS = [
    {"method": "naive", "seconds": 0.1 + 0.2, "share": 1, "light": True, "receivers": [1, 2]},
    {"method": "blast", "seconds": 1e-300, "share": 0.5, "light": False, "receivers": [], "more": 7},
]


@pytest.mark.pyarrow
def test_parquet_keeps_types_and_provenance(tmp_path: Path) -> None:
    provenance = Recording().provenance(Origin("flow", {"scenario": {"text": "é\n"}}, (1,)))
    path = tmp_path / "rows.parquet"
    write_parquet(path, ROWS, provenance)
    record, rows = read_parquet(path)
    assert record == provenance.as_dict()
    assert rows == as_parquet_rows(ROWS) == [{**ROWS[0], "more": None}, ROWS[1]]
    assert isinstance(rows[0]["share"], float) and rows[0]["seconds"] == 0.1 + 0.2
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InputError, match="is no Parquet file with the provenance of a result"):
        read_parquet(path)


@pytest.mark.pyarrow
@pytest.mark.parametrize(
    "words", [("flow", "mine.toml", "--compute", "1"), ("replay", "sample", "--first", "4", "--policy", "paper,smith")]
)
def test_result_as_parquet_repeats(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(SMALL)
    assert main(["sim", *words, "--processes", "1", "--parquet", "rows.parquet"]) == 0
    count = len(read_parquet(Path("rows.parquet"))[1])
    capsys.readouterr()
    assert main(["sim", "rerun", "rows.parquet", "--processes", "1"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"{count} results: {count} identical"


def test_missing_pyarrow_is_reported_before_the_simulation(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == "pyarrow" else find_spec(name))
    assert main(["sim", "flow", "fig4", "--parquet", "rows.parquet"]) == 1
    assert "pyarrow not installed" in capsys.readouterr().err

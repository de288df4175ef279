"""The pure parts of the benchmark of pushed weights."""

from __future__ import annotations

import importlib
import subprocess
import sys
import zlib
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks" / "transfers"
PROGRAMS = BENCHMARKS / "weights_bed" / "programs"


@pytest.fixture
def weights(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the module that the programs share, which run with their folder as the first place of modules."""
    monkeypatch.syspath_prepend(str(PROGRAMS))
    return importlib.import_module("weights")


def test_ratios_use_rounds_in_which_neither_tool_failed():
    from benchmarks.transfers.weights_bed.ways import Pushed
    from benchmarks.transfers.weights_push import _ratios, _text, _verdict

    def runs(*seconds: float, broken: int = -1) -> list[Pushed]:
        return [Pushed(s, 1.0, 0.5, "broken" if n == broken else "") for n, s in enumerate(seconds)]

    results = {"light": runs(1.0, 9.0, 2.0, broken=1), "gloo": runs(4.0, 8.0, 4.0), "ray": runs(2.0, 2.0, 2.0)}
    found = {(one["ours"], one["peer"]): one for one in _ratios(results)}
    assert found["light", "gloo"]["pairs"] == [0.25, 0.5]
    assert found["light", "gloo"]["ratio"] == 0.375
    assert "MISSED" in _verdict(found["light", "gloo"])
    assert "MISSED" not in _verdict({**found["light", "gloo"], "ratio": 0.33})
    report = {"megabytes": 8, "workers": 2, "rate_mbps": 64, "rows": [], "ratios": []}
    assert "one copy on a link takes 1.00 s" in _text(report)[0]


@pytest.mark.parametrize(
    ("values", "interval"),
    [
        ([3.0], (3.0, 3.0, 3.0)),
        ([1.0, 2.0, 3.0], (1.0, 2.0, 3.0)),
        # 1/16 lies outside of the least and the greatest of five, less than a tenth; 3/8 outside of the next.
        ([5.0, 1.0, 4.0, 2.0, 3.0], (1.0, 3.0, 5.0)),
        ([float(n) for n in range(1, 16)], (4.0, 8.0, 12.0)),
    ],
)
def test_an_interval_is_of_ranks(values: list[float], interval: tuple[float, float, float]):
    from benchmarks.median_interval import median_interval

    assert median_interval(values) == interval


def test_layers_cover_whole_file_and_have_its_checksum(weights: ModuleType, tmp_path: Path):
    source = tmp_path / "source"
    source.write_bytes(bytes(range(250)) * ((weights.LAYER_BYTES + 1_000_000) // 250))
    assert [length for _, _, length in weights.spans(source.stat().st_size)] == [weights.LAYER_BYTES, 1_000_000]
    assert weights.digest_of_layers(weights.layers(str(source), "weights")) == zlib.crc32(source.read_bytes())
    small = source.read_bytes()[: weights.SMALL_BYTES]
    assert weights.digest_of_layers(weights.layers(str(source), "small")) == zlib.crc32(small)


def test_missing_tools_are_reported_with_install_commands(tmp_path: Path):
    words = [sys.executable, str(BENCHMARKS / "weights_push.py"), "--ways", "gloo,gloo-layers,ray"]
    words += ["--torch", str(tmp_path / "python"), "--ray", str(tmp_path / "ray")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    message = done.stderr.splitlines()[-1]
    assert "apt-get install" in message and "pip install ray numpy" in message and message.count("has no PyTorch") == 1

"""The errors of `ip` and `tc`, and the ones to ignore."""

from __future__ import annotations

from pathlib import Path

import pytest

from mininet_topos.kernel.errors import HostError
from mininet_topos.kernel.netdev import batch, query

INTERRUPTED = "Dump was interrupted and may be inconsistent."


def tool(folder: Path, name: str, script: str) -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\ncd {folder}\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_query_repeats_interrupted_dump(tmp_path: Path) -> None:
    looks = tool(
        tmp_path,
        "tc",
        f"echo look >> looks; [ $(wc -l < looks) -ge 3 ] && echo all || {{ echo part; echo {INTERRUPTED} >&2; }}",
    )
    assert query([looks, "qdisc", "show"]) == "all"
    assert (tmp_path / "looks").read_text().count("look") == 3


def test_batch_runs_once_despite_interrupted_dump(tmp_path: Path) -> None:
    batch(tool(tmp_path, "tc", f"cat >> orders; echo {INTERRUPTED} >&2"), ["qdisc add dev a root pfifo"])
    assert (tmp_path / "orders").read_text() == "qdisc add dev a root pfifo\n"


@pytest.mark.parametrize("script", ["echo Cannot find device >&2", f"echo {INTERRUPTED} >&2; echo no >&2", "exit 1"])
def test_other_errors_of_tc_raise_host_error(tmp_path: Path, script: str) -> None:
    with pytest.raises(HostError, match="tc failed"):
        query([tool(tmp_path, "tc", script), "qdisc", "show"])


def test_query_fails_after_repeated_interrupted_dumps(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="come and go"):
        query([tool(tmp_path, "tc", f"echo {INTERRUPTED} >&2"), "qdisc", "show"])

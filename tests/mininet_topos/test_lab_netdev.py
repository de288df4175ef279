"""What `ip` and `tc` say, and what of it matters."""

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


def test_a_look_during_which_interfaces_came_is_repeated(tmp_path: Path) -> None:
    looks = tool(
        tmp_path,
        "tc",
        f"echo look >> looks; [ $(wc -l < looks) -ge 3 ] && echo all || {{ echo part; echo {INTERRUPTED} >&2; }}",
    )
    assert query([looks, "qdisc", "show"]) == "all"
    assert (tmp_path / "looks").read_text().count("look") == 3


def test_orders_are_given_once_though_the_names_were_listed_while_interfaces_came(tmp_path: Path) -> None:
    batch(tool(tmp_path, "tc", f"cat >> orders; echo {INTERRUPTED} >&2"), ["qdisc add dev a root pfifo"])
    assert (tmp_path / "orders").read_text() == "qdisc add dev a root pfifo\n"


@pytest.mark.parametrize("script", ["echo Cannot find device >&2", f"echo {INTERRUPTED} >&2; echo no >&2", "exit 1"])
def test_any_other_complaint_is_a_failure(tmp_path: Path, script: str) -> None:
    with pytest.raises(HostError, match="tc failed"):
        query([tool(tmp_path, "tc", script), "qdisc", "show"])


def test_a_machine_that_never_comes_to_rest_is_told(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="come and go"):
        query([tool(tmp_path, "tc", f"echo {INTERRUPTED} >&2"), "qdisc", "show"])

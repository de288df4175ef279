"""The bridges of a lab, as listed by a fake `ovs-vsctl` with the output of the real one."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mininet_topos.kernel.errors import HostError
from mininet_topos.kernel.names import BRIDGE_KEY
from mininet_topos.lab import cleanup

LAB = "a1b2"


@pytest.fixture
def vsctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of an `ovs-vsctl` that the test writes."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path / "ovs-vsctl"


def answer(vsctl: Path, status: int, out: str = "", error: str = "") -> None:
    vsctl.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{error}\nEND\ncat <<'END'\n{out}\nEND\nexit {status}\n")
    vsctl.chmod(0o755)


@pytest.mark.parametrize("cause", ["No such file or directory", "Connection refused"])
def test_stopped_open_vswitch_has_no_bridges(vsctl: Path, cause: str) -> None:
    answer(vsctl, 1, error=f"ovs-vsctl: unix:/var/run/openvswitch/db.sock: database connection failed ({cause})")
    assert cleanup.bridges_of(LAB) == []
    assert cleanup._remove_bridges(LAB) is None, "the number of bridges is unknown"


@pytest.mark.parametrize(
    "error",
    [
        "ovs-vsctl: unix:/var/run/openvswitch/db.sock: database connection failed (Permission denied)",
        'ovs-vsctl: unknown table "Bridge"',
    ],
)
def test_other_failure_of_ovs_vsctl_raises_host_error(vsctl: Path, error: str) -> None:
    answer(vsctl, 1, error=error)
    with pytest.raises(HostError, match="ovs-vsctl"):
        cleanup.bridges_of(LAB)


def test_bridges_of_returns_bridges_of_one_lab(vsctl: Path) -> None:
    marked = [[name, ["map", [[BRIDGE_KEY, lab], ["other", "x"]]]] for name, lab in (("b1", LAB), ("b2", "c3d4"))]
    rows = {"headings": ["name", "external_ids"], "data": [*marked, ["b3", ["map", []]]]}
    vsctl.write_text(f"#!/bin/sh\necho '{json.dumps(rows)}'\n")
    vsctl.chmod(0o755)
    assert cleanup.bridges_of(LAB) == ["b1"]

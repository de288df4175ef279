"""The built wheel with each extra, installed from the registry into a new environment, provides its function."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.project.test_extras import INSTANCE

ROOT = Path(__file__).resolve().parents[3]
EXTRAS: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
pytestmark = [pytest.mark.network, pytest.mark.ryu, pytest.mark.timeout(1800)]

CHECK = "blast controller example-config > c.toml && blast controller check --config c.toml"
COMMANDS = {
    "": "blast --help && blast agent example-config",
    "arrays": """python -c '
import numpy, blast_client.objects.encoding
from blast_client import broadcast, receive
'""",
    "cluster": """python -c '
import subprocess
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=1, processes=False, protocol="tcp", dashboard_address=None) as cluster:
        words = "blast sim flow sites --methods naive --compute recorded --json --scheduler".split()
        subprocess.run([*words, cluster.scheduler_address], check=True)
'""",
    "controller": CHECK,
    "etcd": f"{CHECK} && python -c 'import blast_controller.succession.by_etcd, grpc'",
    "fast": "python -c 'import numba, blast_sim.fair.filling_numba' && blast sim flow sites --methods naive --json",
    "figures": "blast figures balanced --quick --out pictures && test -s pictures/balanced-sites.svg",
    "lab": f"{CHECK} && blast lab --help",
    "parquet": "blast sim flow sites --methods naive --parquet rows.parquet && blast sim rerun rows.parquet",
    "ryu": "BLAST_OPENFLOW_FRAMEWORK=ryu python -m blast_controller.openflow --help",
    "sealed": """python -c '
from blast_transport.blocks.sealing import Sealer, new_key
sealer = Sealer(new_key())
assert sealer.open(7, sealer.seal(7, b"light")) == b"light"
'""",
    "shell": "blast completion bash | grep -q blast && blast man pages && ls pages/*.1",
    "sim": "blast plan instance.json --exact --json && blast sim replay sample --policy paper",
    "spark": "python -c 'import pyspark, blast_client.spark.broadcasts, blast_client.spark.received'",
    "ssh": """python -c '
import blast_transport.remote.shell
from blast_client.send.node_sets import expanded
assert expanded("node[1-3]") == ["node1", "node2", "node3"]
'""",
    "sonic-ocs": f"{CHECK} && python -c 'from optical_switch.sonic_ocs import gnmi_session, redis_session'",
    "ssh-switches": f"{CHECK} && python -c 'import optical_switch.netconf.netconf_session, tl1_driver.ssh'",
}


def run(command: str, folder: Path, **variables: str) -> None:
    path = f"{folder}/venv/bin:{os.environ['PATH']}"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        ["bash", "-ec", command],
        cwd=folder,
        env={**environment, "PATH": path, "PIP_DISABLE_PIP_VERSION_CHECK": "1", **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("wheel")
    run(f"{ROOT}/scripts/build-wheel {folder}", folder)
    (built,) = folder.glob("*.whl")
    yield built


def test_every_extra_has_a_command() -> None:
    assert set(COMMANDS) - {""} == set(EXTRAS) - {"dev", "test"}


@pytest.mark.parametrize("extra", COMMANDS, ids=lambda extra: extra or "no extra")
def test_wheel_works_with_extra(tmp_path: Path, wheel: Path, extra: str) -> None:
    (tmp_path / "instance.json").write_text(json.dumps(INSTANCE))
    constraints = f"-c {ROOT}/requirements/constraints.txt"
    if extra == "ryu":
        # It builds only with an old setuptools.
        (tmp_path / "build.txt").write_text("setuptools<68\n")
        constraints = "--build-constraint build.txt"
    if extra:
        # uv installs in a tenth of pip's processor time.
        pip = f"{ROOT}/.venv-ryu/bin/uv pip"
        run("python3.11 -m venv --without-pip venv", tmp_path)
    else:
        pip = "pip"
        run("python3.11 -m venv venv", tmp_path)
    variables = {"VIRTUAL_ENV": f"{tmp_path}/venv", "UV_SYSTEM_CERTS": "1"}
    run(f"{pip} install --quiet {constraints} '{wheel}{f'[{extra}]' if extra else ''}'", tmp_path, **variables)
    run(f"{pip} check", tmp_path, **variables)
    run(COMMANDS[extra], tmp_path)

"""The agent in a single file: reproducible, and usable on a Python without packages."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import blast_transport
from blast_transport.agent.bundle import _MAIN, build_bundle

ROOT = Path(blast_transport.__file__).parents[1]
PACKAGES = ("blast_base", "blast_transport")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bundle") / "agent.pyz"
    path.write_bytes(build_bundle())
    return path


def bare(*arguments: object, **more: object) -> subprocess.CompletedProcess[str]:
    """Run Python without site-packages, environment variables and the current folder."""
    command = [sys.executable, "-I", "-S", "-B", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, **more)


def test_bundle_is_reproducible_in_other_folder_and_timezone(bundle, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert build_bundle() == bundle.read_bytes()


def test_bundle_builds_identical_bundle(bundle):
    """The archive itself, which has no folders, is the source."""
    code = (
        f"import sys; sys.path.insert(0, {str(bundle)!r})\n"
        "from blast_transport.agent.bundle import build_bundle\n"
        "sys.stdout.buffer.write(build_bundle())"
    )
    made = subprocess.run([sys.executable, "-I", "-S", "-B", "-c", code], capture_output=True, check=True, timeout=60)
    assert made.stdout == bundle.read_bytes()


def test_bundle_contains_exactly_the_sources(bundle):
    names = set(zipfile.ZipFile(bundle).namelist())
    sources = {str(path.relative_to(ROOT)) for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    assert names == sources | {"__main__.py", "blast_transport/agent/example.toml"}


def test_every_module_imports_without_site_packages(bundle):
    """The standard library suffices; optional packages are imported only where they are used."""
    code = (
        f"import importlib, pkgutil, sys; sys.path.insert(0, {str(bundle)!r})\n"
        "import blast_transport as package\n"
        "for found in pkgutil.walk_packages(package.__path__, 'blast_transport.'):\n"
        "    if not found.name.endswith('.__main__'):\n"
        "        importlib.import_module(found.name)\n"
        "print(package.__file__)\n"
        "print(*[path for path in sys.path if 'site-packages' in path])"
    )
    done = bare("-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{bundle}/blast_transport/__init__.py\n\n"


def test_bundle_runs_agent_subcommands(bundle, tmp_path):
    config = tmp_path / "agent.toml"
    config.write_text(f'[[folder]]\nname = "in"\npath = "{tmp_path}"\n')
    assert bare(bundle, "example-config").stdout.startswith("# Configuration of a Blast agent.")
    checked = bare(bundle, "check", "--config", config, "--json")
    assert json.loads(checked.stdout)["folder"] == [{"name": "in", "path": str(tmp_path), "claimed": False}]
    assert bare(bundle, "check", "--config", tmp_path / "absent").returncode == 2


def test_bundle_reports_python_that_is_too_old(bundle):
    """Parse the entry point on every Python 3; Python 2.7 parses the same few lines."""
    tree = ast.parse(_MAIN, feature_version=(3, 4))
    assert isinstance(tree.body[1], ast.If), "the version is looked at before anything else is imported"
    code = (
        "import runpy, sys; sys.version_info = (3, 7, 3, 'final', 0); sys.argv = sys.argv[1:]\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    done = bare("-c", code, bundle, "on-demand")
    assert done.returncode == 1 and not done.stderr
    assert json.loads(done.stdout) == {"event": "unusable", "reason": "Python 3.7 is too old; 3.11 is needed"}

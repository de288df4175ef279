"""The wheel, not the tree: built from a copy, installed into environments of its own, used from another folder."""

import importlib.metadata
import json
import os
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest
from setuptools import find_packages

pytestmark = pytest.mark.test_all

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = sorted(find_packages(str(ROOT), include=PROJECT["tool"]["setuptools"]["packages"]["find"]["include"]))
TOP_LEVEL = sorted({name.partition(".")[0] for name in PACKAGES})
THIS_SITE_PACKAGES = Path(sysconfig.get_path("purelib"))

# The distributions of a Spark executor; it must not have the controller's.
BASE_DISTRIBUTIONS = ["blake3", "thrift", "tqdm"]
EXTRAS_ONLY = {"blast_transport.remote.shell"}
"""Modules whose import reports the extra that they need."""
CONTROLLER_ONLY = ["networkx", "os_ken", "pydantic", "mininet"]


class Environment:
    """A virtual environment without pip that holds the wheel of this project."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        run(sys.executable, "-m", "venv", "--without-pip", str(folder), cwd=folder.parent)
        self.folder = folder
        self.python = folder / "bin" / "python"
        self.site_packages = folder / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
        pip("--python", str(self.python), "install", "--no-deps", "--no-index", str(wheel), cwd=folder.parent)

    def evaluate(self, code: str) -> str:
        return run(str(self.python), "-I", "-c", code, cwd=self.folder).stdout.strip()


def run(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    result = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert result.returncode == 0, f"{' '.join(command)}\n{result.stdout}{result.stderr}"
    return result


def pip(*arguments: str, cwd: Path) -> None:
    run(sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments, cwd=cwd)


def share_distribution(name: str, environment: Environment) -> None:
    """Let `environment` see one installed distribution of ours and nothing beside it, without a network."""
    files = importlib.metadata.files(name) or []
    for top in {file.parts[0] for file in files if file.parts[0] not in {"..", "__pycache__"}}:
        (environment.site_packages / top).symlink_to(THIS_SITE_PACKAGES / top)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    words = (str(ROOT / "scripts" / "build-wheel"), str(folder))
    subprocess.run(words, env={**os.environ, "PYTHON": sys.executable}, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def base(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Return an environment as `pip install .` creates it, with the base dependencies only."""
    environment = Environment(tmp_path_factory.mktemp("base") / "venv", wheel)
    for name in BASE_DISTRIBUTIONS:
        share_distribution(name, environment)
    return environment


@pytest.fixture(scope="module")
def full(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Return an environment with the wheel and the dependencies of every extra."""
    environment = Environment(tmp_path_factory.mktemp("full") / "venv", wheel)
    # A folder added by a .pth file has its own .pth files ignored, so our editable install stays out of sight.
    (environment.site_packages / "dependencies.pth").write_text(f"{THIS_SITE_PACKAGES}\n")
    return environment


def test_base_dependencies_equal_shared_distributions() -> None:
    declared = {requirement.partition(">")[0].strip() for requirement in PROJECT["project"]["dependencies"]}
    assert declared == set(BASE_DISTRIBUTIONS)


def test_the_wheel_holds_every_file_of_the_packages_and_nothing_else(wheel: Path) -> None:
    in_tree = {
        str(file.relative_to(ROOT))
        for name in TOP_LEVEL
        for file in (ROOT / name).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    in_wheel = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert in_wheel == in_tree


def test_every_package_has_a_py_typed_marker(wheel: Path) -> None:
    typed = {name.partition("/")[0] for name in zipfile.ZipFile(wheel).namelist() if name.endswith("/py.typed")}
    assert typed == set(TOP_LEVEL)


def test_every_package_imports_from_the_wheel_and_every_command_loads(full: Environment) -> None:
    commands = PROJECT["project"]["entry-points"]["blast.commands"]
    code = (
        "import importlib, importlib.metadata, json\n"
        f"where = [importlib.import_module(name).__file__ for name in {PACKAGES}]\n"
        "found = {one.name: one.load().__module__ for one in importlib.metadata.entry_points(group='blast.commands')}\n"
        "print(json.dumps([where, found]))"
    )
    where, found = json.loads(full.evaluate(code))
    assert all(Path(one).is_relative_to(full.site_packages) for one in where)
    assert found == {name: declared.partition(":")[0] for name, declared in commands.items()}


def test_base_install_imports_every_application_module(base: Environment) -> None:
    """Every module but `__main__`, which would run, and those of extras: no import needs more than the base has."""
    code = (
        "import importlib, pkgutil\n"
        "for package in map(importlib.import_module, ('blast_client', 'blast_transport', 'blast_api')):\n"
        "    for found in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
        f"        if not found.name.endswith('.__main__') and found.name not in {EXTRAS_ONLY}:\n"
        "            importlib.import_module(found.name)\n"
        "    print(package.__file__)"
    )
    assert all(Path(one).is_relative_to(base.site_packages) for one in base.evaluate(code).splitlines())


def test_base_install_has_no_controller_dependencies(base: Environment) -> None:
    probe = f"import importlib.util as u; print(*[n for n in {CONTROLLER_ONLY} if u.find_spec(n)])"
    assert base.evaluate(probe) == ""


@pytest.mark.parametrize("kind", ["base", "full"])
def test_the_command_answers_help(request: pytest.FixtureRequest, kind: str) -> None:
    environment: Environment = request.getfixturevalue(kind)
    answer = run(str(environment.folder / "bin" / "blast"), "--help", cwd=environment.folder)
    assert answer.stdout.startswith("usage: blast")
    assert not answer.stderr

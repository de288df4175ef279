"""Which crates are compiled: each is pinned by its checksum, and `scripts/cargo` makes cargo take no others."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CRATES = ROOT / "requirements" / "crates.txt"
WORKSPACE = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
MANIFESTS = [ROOT / member / "Cargo.toml" for member in WORKSPACE["members"]]
UNCHECKED = "blast_engine/boundary"
"""The one crate where the compiler takes our word for something."""

FAKE = """\
#!/bin/bash
case "$1" in
    --version) echo "cargo {version} (0 2026-01-01)" ;;
    generate-lockfile) printf 'version = 4\\n\\n[[package]]\\nname = "x"\\nsource = "registry+here"\\n' >Cargo.lock ;;
    metadata) {metadata} ;;
    *) echo "ran {version}: $*" ;;
esac
"""
PINNED = f"one 1.0.0 {'0' * 64}\ntwo 2.0.0+a {'1' * 64}\n"
LOCKED = f"""\
version = 4

[[package]]
name = "one"
version = "1.0.0"
registry
checksum = "{"0" * 64}"

[[package]]
name = "two"
version = "2.0.0+a"
registry
checksum = "{"1" * 64}"
""".replace("registry", 'source = "registry+here"')


def test_crates_are_sorted_each_with_version_and_checksum() -> None:
    lines = CRATES.read_text().splitlines()
    assert lines == sorted(lines) and len(lines) == len({tuple(line.split()[:2]) for line in lines})
    assert all(re.fullmatch(r"[\w-]+ \d+\.\d+\.\d+\S* [0-9a-f]{64}", line) for line in lines)


def test_manifests_ask_for_exact_versions_that_are_pinned() -> None:
    pinned = {tuple(line.split()[:2]) for line in CRATES.read_text().splitlines()}
    requirements = [(name, version) for manifest in MANIFESTS for name, version in dependencies(manifest)]
    assert requirements
    for name, version in requirements:
        assert version.startswith("=") and (name, version.removeprefix("=")) in pinned, name


def dependencies(manifest: Path) -> Iterator[tuple[str, str]]:
    tables = tomllib.loads(manifest.read_text())
    for kind in ("dependencies", "dev-dependencies", "build-dependencies"):
        for name, entry in tables.get(kind, {}).items():
            if isinstance(entry, str) or "path" not in entry:
                yield name, entry if isinstance(entry, str) else entry["version"]


def test_every_manifest_belongs_to_the_workspace() -> None:
    found = {file for folder in ("blast_engine", "rack_fabric") for file in (ROOT / folder).rglob("Cargo.toml")}
    assert found == set(MANIFESTS)


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda file: str(file.parent.relative_to(ROOT)))
def test_only_one_crate_allows_unsafe_code(manifest: Path) -> None:
    lints = tomllib.loads(manifest.read_text())["lints"]
    if manifest.parent == ROOT / UNCHECKED:
        assert "unsafe_code" not in lints["rust"]
    else:
        assert WORKSPACE["lints"]["rust"]["unsafe_code"] == "forbid" and lints == {"workspace": True}


def test_every_unsafe_block_has_a_safety_comment() -> None:
    for file in (ROOT / UNCHECKED).rglob("*.rs"):
        lines = file.read_text().splitlines()
        for number, line in enumerate(lines):
            if "unsafe {" in line:
                before = "".join(lines[max(0, number - 4) : number])
                assert "// SAFETY:" in before, f"{file.name}:{number + 1}"


# ------------------------------------------------------------------------------------------------ scripts/cargo


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "crates.txt").write_text(PINNED)
    (tmp_path / "scripts").mkdir()
    for name in ("cargo", "pin-crates"):
        shutil.copy(ROOT / "scripts" / name, tmp_path / "scripts" / name)
    return tmp_path


def add_cargo(checkout: Path, version: str, metadata: str = ":") -> str:
    """Install a fake `cargo` of this version, and return its folder."""
    folder = checkout / version
    folder.mkdir()
    program = folder / "cargo"
    program.write_text(FAKE.format(version=version, metadata=metadata))
    program.chmod(0o755)
    return str(folder)


def cargo(checkout: Path, folders: list[str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(checkout / "scripts" / "cargo"), *words],
        env={"PATH": ":".join([*folders, "/usr/bin", "/bin"])},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_lock_file_contains_pinned_crates(checkout: Path) -> None:
    done = cargo(checkout, [add_cargo(checkout, "1.85.0")], "build", "--release")
    assert done.stdout == "ran 1.85.0: build --release\n"
    assert (checkout / "Cargo.lock").read_text() == LOCKED


def test_lock_file_older_than_manifest_is_rewritten(checkout: Path) -> None:
    (checkout / "Cargo.lock").write_text(LOCKED.replace('registry+here"', 'registry+there"'))
    (checkout / "member").mkdir()
    manifest = checkout / "member" / "Cargo.toml"
    manifest.touch()
    later = (checkout / "Cargo.lock").stat().st_mtime_ns + 1
    os.utime(manifest, ns=(later, later))
    cargo(checkout, [add_cargo(checkout, "1.85.0")], "build")
    assert (checkout / "Cargo.lock").read_text() == LOCKED


def test_old_cargo_is_skipped(checkout: Path) -> None:
    folders = [add_cargo(checkout, version) for version in ("0.66.0", "1.84.1", "1.100.0")]
    assert cargo(checkout, folders, "build").stdout == "ran 1.100.0: build\n"


@pytest.mark.parametrize("change", ["sed -i s/2.0.0/2.0.1/ Cargo.lock", "sed -i s/111/112/ Cargo.lock", "exit 101"])
def test_unpinned_crates_are_rejected_without_lock_file(checkout: Path, change: str) -> None:
    done = cargo(checkout, [add_cargo(checkout, "1.85.0", change)], "build")
    assert done.returncode != 0 and done.stdout == ""
    assert not (checkout / "Cargo.lock").exists()
    if "sed" in change:
        assert "run scripts/pin-crates" in done.stderr and done.stderr.count("\n") == 1


def test_missing_recent_cargo_is_reported(checkout: Path) -> None:
    done = subprocess.run(
        ["/bin/bash", "scripts/cargo", "build"],
        cwd=checkout, env={"PATH": f"{add_cargo(checkout, '1.84.9')}:{tools(checkout)}"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("cargo: cargo 1.85 or newer was not found: ") and done.stderr.count("\n") == 1


def tools(checkout: Path) -> str:
    """Return a folder of the tools that the scripts need; the folders of the machine may contain a `cargo`."""
    folder = checkout / "tools"
    folder.mkdir()
    for name in ("dirname", "sed", "sort"):
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    return str(folder)

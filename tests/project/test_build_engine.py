"""`scripts/build-engine` for other processors: the arguments of maturin, and messages about missing tools."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = {
    "scripts/cargo": 'echo "$PWD/bin/cargo"',
    "bin/rustc": 'echo "$PWD/library"',
    "bin/aarch64-linux-gnu-gcc": "",
    "bin/maturin": 'echo "$* $CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER" >>asked',
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a checkout whose tools do nothing, on a machine that has all of them."""
    for name, does in TOOLS.items():
        tool = tmp_path / name
        tool.parent.mkdir(exist_ok=True)
        tool.write_text(f"#!/bin/bash\n{does}\n")
        tool.chmod(0o755)
    shutil.copy(ROOT / "scripts" / "build-engine", tmp_path / "scripts")
    (tmp_path / "library").mkdir()
    return tmp_path


def build(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [checkout / "scripts" / "build-engine", *arguments],
        env={"PATH": f"{checkout / 'bin'}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_arm_build_uses_cross_compiler_and_keeps_other_wheels(checkout: Path) -> None:
    (checkout / "dist").mkdir()
    other, old = (checkout / "dist" / f"blast_engine-0-{processor}.whl" for processor in ("x_x86_64", "x_aarch64"))
    other.touch()
    old.touch()
    assert build(checkout, "--target", "aarch64").returncode == 0
    asked = (checkout / "asked").read_text()
    assert "--out dist --target aarch64-unknown-linux-gnu aarch64-linux-gnu-gcc" in asked
    assert other.exists() and not old.exists()


def test_native_build_needs_no_cross_compiler(checkout: Path) -> None:
    (checkout / "bin" / "aarch64-linux-gnu-gcc").unlink()
    assert build(checkout, "wheels").returncode == 0
    asked = (checkout / "asked").read_text()
    assert "--out wheels" in asked and "--target" not in asked


@pytest.mark.parametrize(
    ("lacks", "advice"),
    [
        ("bin/aarch64-linux-gnu-gcc", "apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross"),
        ("library", "apt-get install libstd-rust-web-dev:arm64"),
    ],
)
def test_missing_tool_is_reported_with_its_package(checkout: Path, lacks: str, advice: str) -> None:
    if lacks == "bin/aarch64-linux-gnu-gcc" and shutil.which("aarch64-linux-gnu-gcc", path="/usr/bin:/bin"):
        pytest.skip("this machine has a C compiler for 64-bit ARM")
    (checkout / lacks).rename(checkout / "away")
    done = build(checkout, "--target", "aarch64")
    assert done.returncode == 1 and advice in done.stderr
    assert not (checkout / "asked").exists()

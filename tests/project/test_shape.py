"""The shape of the repository: sizes of folders and files, circles of imports in Rust and Java, and use of `Any`."""

from __future__ import annotations

import ast
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.project.test_layout import circles

ROOT = Path(__file__).resolve().parents[2]
PRODUCTION = (
    "algorithms", "blast_base", "blast_client", "blast_controller", "blast_sim", "blast_transport", "mininet_topos",
    "optical_switch", "tl1_driver",
)  # fmt: skip
MAX_FILES, MAX_TEST_FILES = 25, 30
SMALL_LINES, MAX_SMALL_FILES = 40, 120
MAX_ANY = 60
MAX_UNEXPLAINED = 51
"""Numeric constants without a reason: units, and values whose name is their reason."""
GENERATED = ("blast_controller/store/etcd/proto/etcd_pb2", "optical_switch/sonic_ocs/proto/gnmi_pb2")
JAVA = ROOT / "clients" / "java"


def tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / path for path in listed.splitlines() if (ROOT / path).is_file() and not path.startswith(GENERATED)]


def production() -> list[Path]:
    return tracked(*(f"{package}/*.py" for package in PRODUCTION))


def test_folders_hold_few_files() -> None:
    sizes = Counter(path.parent for path in production())
    sizes |= Counter(path.parent for path in tracked("benchmarks/*.py"))
    tests = Counter(path.parent for path in tracked("tests/*.py"))
    assert not {str(folder): size for folder, size in sizes.items() if size > MAX_FILES}
    assert not {str(folder): size for folder, size in tests.items() if size > MAX_TEST_FILES}


def test_few_files_are_small() -> None:
    """Without the introductions of packages, which are small by their nature."""
    files = [path for path in production() if path.name != "__init__.py"]
    assert sum(len(path.read_text().splitlines()) < SMALL_LINES for path in files) <= MAX_SMALL_FILES


def test_any_is_rare() -> None:
    trees = [ast.parse(path.read_text()) for path in production()]
    uses = sum(isinstance(node, ast.Name) and node.id == "Any" for tree in trees for node in ast.walk(tree))
    assert uses <= MAX_ANY


def test_constants_have_reasons() -> None:
    """A docstring after a number, or after a group of them; or a comment."""
    assert sum(len(unexplained(path.read_text())) for path in production()) <= MAX_UNEXPLAINED


def unexplained(source: str) -> list[str]:
    """Return the numeric constants of a module without a reason."""
    lines, body = source.splitlines(), ast.parse(source).body
    found, group = list[str](), list[str]()
    for statement, following in zip(body, [*body[1:], None], strict=True):
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if not isinstance(target, ast.Name):
            group = []
            continue
        commented = "#" in lines[statement.lineno - 1] or lines[statement.lineno - 2].lstrip().startswith("#")
        if re.fullmatch(r"_?[A-Z][A-Z0-9_]*", target.id) and is_number(statement.value) and not commented:
            group.append(target.id)
        adjacent = following is not None and following.lineno == (statement.end_lineno or 0) + 1
        if not adjacent or not isinstance(following, ast.Assign):
            if not (adjacent and isinstance(following, ast.Expr)):
                found += group
            group = []
    return found


def is_number(value: ast.expr) -> bool:
    match value:
        case ast.Constant(value=bool()):
            return False
        case ast.Constant(value=int() | float()):
            return True
        case ast.BinOp(left=left, right=right):
            return is_number(left) and is_number(right)
        case ast.UnaryOp(operand=operand):
            return is_number(operand)
    return False


def rust_modules(source: Path) -> dict[str, set[str]]:
    """Return the modules of a crate (by path, without `mod`), each with the modules that it uses, without tests."""
    files = {_rust_name(path, source): path for path in source.rglob("*.rs") if path.name not in {"main.rs", "lib.rs"}}

    def known(used: str) -> str | None:
        parts = used.split("::")
        return next((name for n in range(len(parts), 0, -1) if (name := "::".join(parts[:n])) in files), None)

    graph = {}
    for name, path in files.items():
        text = path.read_text().partition("#[cfg(test)]")[0]
        graph[name] = {found for used in _used(text, name) if (found := known(used)) not in {None, name}}
    return {name: {one for one in used if one is not None} for name, used in graph.items()}


def _rust_name(path: Path, source: Path) -> str:
    parts = path.relative_to(source).with_suffix("").parts
    return "::".join(parts[:-1] if parts[-1] == "mod" else parts)


def _used(text: str, name: str) -> Iterator[str]:
    """Yield the paths after `crate::`, and after `super::` as seen from a module."""
    for path in re.findall(r"\bcrate::([\w:]*\w)", text):
        yield path
    for path, listed in re.findall(r"\bcrate::((?:\w+::)*)\{([^}]*)\}", text):
        yield from (path + one.strip().split(" ")[0] for one in listed.split(",") if one.strip())
    for path in re.findall(r"\bsuper::([\w:]*\w)", text):
        yield "::".join([*name.split("::")[:-1], path])


@pytest.mark.parametrize(
    "source",
    sorted({path.parent for path in tracked("*/src/lib.rs", "*/src/main.rs")}),
    ids=lambda path: path.parent.name,
)
def test_modules_in_rust_use_each_other_in_no_circle(source: Path) -> None:
    # A module that re-exports its parts with `pub use` names them without `crate`, so it is above them alone.
    assert not circles(rust_modules(source))


def java_packages() -> dict[str, set[str]]:
    """Return the packages of the Java client, each with those of ours that it imports."""
    graph: dict[str, set[str]] = {}
    for path in JAVA.rglob("*.java"):
        text = path.read_text()
        declared = re.search(r"(?m)^package ([\w.]+);", text)
        if declared is None:
            continue
        imports = re.findall(r"(?m)^import (?:static )?(org\.blast[\w.]*?)\.[A-Z]", text)
        graph.setdefault(declared[1], set()).update(imports)
    return {package: (used & graph.keys()) - {package} for package, used in graph.items()}


def test_packages_in_java_import_each_other_in_no_circle() -> None:
    graph = java_packages()
    assert len(graph) > 1 and not circles(graph)

"""The layout of architecture.md: folders, import directions, and no paths of a single machine."""

import ast
import fnmatch
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType

import networkx as nx
import pytest
import thrift

ROOT = Path(__file__).resolve().parents[2]
FOUND: list[str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]["find"][
    "include"
]
OURS = {name.rstrip("*") for name in FOUND}


def _floors(*names: str) -> set[str]:
    return {f"blast_controller.core.{name}" for name in names}


EVERYWHERE = {
    f"blast_base.{name}"
    for name in ("child_process", "command_line", "descriptors", "endpoint", "extras", "json_types", "settings")
}
"""Every package but `algorithms` and `tl1_driver` may import these, which import nothing of ours."""

# The packages of ours that a package may import beside itself; the longest matching prefix decides.
MAY_IMPORT: dict[str, set[str]] = {
    "algorithms": set(),
    # Drivers may import the neutral package, not one another; its emulators share hardware and messages only.
    "optical_switch": {"blast_base"},
    "tl1_driver": {"optical_switch", "blast_base"},
    "blast_base": set(),
    "blast_base.drawing": {"blast_api"},
    "blast_transport": set(),
    "blast_api": set(),
    # The command line and the process may import all others; no other package imports them.
    "blast_controller.cli": {"blast_controller", "blast_client"},
    # Transcripts of every protocol are decoded.
    "blast_controller.cli.switch": {"blast_controller", "blast_client", "optical_switch", "tl1_driver"},
    "blast_controller.process": {"blast_controller", "blast_base.drawing"},
    # The daemon assembles the parts that the configuration describes.
    "blast_controller.process.daemon": {"blast_controller", "blast_api", "optical_switch"},
    # The names of policies, dialects and roles are checked where they are read.
    "blast_controller.configuration": {
        "blast_controller.core",
        "blast_controller.openflow.rules",
        "blast_controller.ops",
        "blast_controller.rpc",
        "blast_controller.serving",
        "algorithms",
        "optical_switch",
    },
    "blast_controller.optimizer": {"blast_controller.core", "algorithms"},
    # A process of its own, which only computes.
    "blast_controller.optimizer.worker": {"algorithms", "blast_controller.optimizer.frames"},
    # Layers of the core: each may import the ones above it in this list; modules in the root connect them.
    "blast_controller.core.model": {"algorithms"},
    "blast_controller.core.inventory": {"blast_controller.core.model", "algorithms"},
    "blast_controller.core.light": {"blast_controller.core.model", "algorithms"},
    "blast_controller.core.rollout": _floors("model", "inventory", "light"),
    "blast_controller.core.journal": _floors("model", "light", "rollout"),
    "blast_controller.core.requests": {*_floors("model", "journal", "rollout"), "algorithms"},
    "blast_controller.core.fibers": _floors("model", "inventory", "light", "rollout"),
    "blast_controller.core.snapshot": _floors("model", "inventory", "light", "policy", "requests", "rollout"),
    "blast_controller.core.policy": {*_floors("model", "inventory", "light", "rollout"), "algorithms"},
    "blast_controller.core.lifecycle": {
        *_floors("model", "inventory", "light", "rollout", "requests", "policy"),
        "algorithms",
    },
    "blast_controller.core.placing": {
        *_floors("model", "inventory", "light", "rollout", "requests", "policy", "lifecycle"),
        "algorithms",
    },
    "blast_controller.core.explaining": {
        *_floors("model", "inventory", "light", "rollout", "requests", "policy"),
        "algorithms",
    },
    "blast_controller.core": {"algorithms"},
    "blast_controller.openflow": {"blast_controller.core", "blast_controller.serving"},
    "blast_controller.optical": {"blast_controller.core", "blast_controller.serving", "optical_switch"},
    "blast_controller.history": {
        "blast_controller.core",
        # One owner of a file among processes, as of the journal.
        "blast_controller.store.errors",
        "blast_controller.store.lock",
        "blast_controller.store.checksums",
        "blast_controller.store.sqlite_file",
    },
    "blast_controller.ops": {"blast_controller.core"},
    # The daemon passes it the state to serve; clients authenticate as over Thrift.
    "blast_controller.ops.http": {
        "blast_controller.core",
        "blast_controller.rpc.clients",
        "blast_controller.runtime",
        "blast_controller.serving",
    },
    # The page draws the same layout as `blast fabric svg`.
    "blast_controller.ops.page": {"blast_base.drawing"},
    "blast_controller.ops.live": {
        "blast_api",
        "blast_controller.core",
        "blast_controller.history",
        "blast_controller.ops",
        "blast_controller.rpc.clients",
    },
    "blast_controller.runtime": {
        "blast_controller.core",
        "blast_controller.ops.logging",
        "blast_controller.store",
    },
    # The servers of clients run work on the runtime's thread; the runtime imports none of them.
    "blast_controller.rpc": {
        "blast_controller.core",
        "blast_controller.runtime",
        "blast_controller.serving",
        "blast_api",
    },
    # Bytes, frames and threads only: other packages decide on calls and identities.
    "blast_controller.rpc.connections": {
        "blast_controller.runtime.faults",
        "blast_controller.serving",
        "blast_api",
    },
    "blast_controller.rpc.clients": {
        "blast_controller.rpc.connections.connection",
        "blast_controller.serving",
        "blast_api",
    },
    "blast_controller.serving": {"blast_controller.runtime.faults"},
    "blast_controller.serving.tls": set(),
    "blast_controller.store": {"blast_controller.core"},
    "blast_controller.succession": {"blast_controller.store"},
    # Where the table of the configuration becomes the part that one of several controllers plays.
    "blast_controller.succession.by_etcd": {
        "blast_controller.configuration.etcd",
        "blast_controller.store",
        "blast_controller.succession",
    },
    "blast_client": {"blast_transport", "blast_base", "blast_api"},
    "blast_sim": {
        "algorithms",
        "blast_controller.core",
        # Times of decisions are taken as in the daemon.
        "blast_controller.process.garbage",
        # Scenarios are files with a schema, as the configuration is.
        "blast_controller.configuration.schema",
        "blast_base.settings",
    },
    "mininet_topos": OURS,
}

# Frameworks that one place only may name: everything else stays independent of them.
ONLY_IN: dict[str, str] = {
    "os_ken": "blast_controller.openflow.framework",
    "ryu": "blast_controller.openflow.framework",
    "mininet": "mininet_topos",
}

SAME_NAMES: dict[str, str] = {
    "ClientConnection": "client.py is generated from aio.py, which differs in the module of this class alone",
    "EventKind": "the client has the enumeration that Thrift's interface lacks; the core knows no interface",
    "Granted": "the client's context manager of a grant, and the transports' event",
    "PartState": "as EventKind",
    "Phase": "of a transfer in the versioned interface of plug-ins, and the wire's message",
    "PlannedTrees": "the client's protocol and its implementation by the simulator, which does not import the client",
    "Suspect": "as PlannedTrees",
}
"""Names of classes that are defined more than once, and why."""

# Written in pieces, so that this file does not name them itself.
OF_A_MACHINE = [b"/" + b"work/", b"/" + b"farm/", b"/" + b"tmp/brief", b"bash" + b"_jobs", b"." + b"library"]


def is_within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def python_files(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def module_name(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(tree: ast.AST, package: str) -> Iterator[str]:
    """Every module that a file of `package` imports by name, wherever in the file; `from a import b` yields `a.b`."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (name.name for name in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                base = package.split(".")[: 1 - level or None] if level else []
                yield from (".".join([*base, *([module] if module else []), name.name]) for name in names)
            case ast.Call(
                func=ast.Attribute(attr="import_module") | ast.Name(id="import_module" | "__import__"),
                args=[ast.Constant(value=str(module)), *_],
            ):
                yield module


@cache
def imports_of(file: Path) -> list[str]:
    module = module_name(file)
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    return list(imported(ast.parse(file.read_text()), package))


def module_graph(top: str) -> dict[str, set[str]]:
    """Every module of `top`, and which others of it it imports, wherever in the file."""
    files = {module_name(file): file for file in python_files(top)}

    def known(target: str) -> str:
        return target if target in files else target.rpartition(".")[0]

    return {
        module: {known(target) for target in imports_of(file) if known(target) in files} - {module}
        for module, file in files.items()
    }


def folder_graph(modules: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return the folders of these modules with the other folders that each imports."""
    packages = {module.rpartition(".")[0] for module in modules}

    def folder(module: str) -> str:
        return module if module in packages else module.rpartition(".")[0]

    graph: dict[str, set[str]] = {}
    for module, targets in modules.items():
        graph.setdefault(folder(module), set()).update(map(folder, targets))
    return {one: targets - {one} for one, targets in graph.items()}


def circles(graph: Mapping[str, set[str]]) -> list[set[str]]:
    """Return the sets of nodes that reach each other, the largest first."""
    directed = nx.DiGraph([(one, other) for one, targets in graph.items() for other in targets])
    return sorted((found for found in nx.strongly_connected_components(directed) if len(found) > 1), key=_largest_first)


def _largest_first(some: set[str]) -> tuple[int, list[str]]:
    return -len(some), sorted(some)


def wrong_direction(module: str, target: str) -> str | None:
    """Why `module` may not import `target`, or None."""
    if target.partition(".")[0] in OURS:
        home = max((package for package in MAY_IMPORT if is_within(module, package)), key=len)
        shared = set() if home in {"algorithms", "tl1_driver", "blast_base", "blast_api"} else EVERYWHERE
        if not any(is_within(target, allowed) for allowed in {home, *shared, *MAY_IMPORT[home]}):
            return f"{module} imports {target}: {home} may import {sorted(MAY_IMPORT[home]) or 'nothing of ours'}"
    for framework, place in ONLY_IN.items():
        if is_within(target, framework) and not is_within(module, place):
            return f"{module} imports {target}: only {place} may name {framework}"
    return None


def own_files() -> Iterator[Path]:
    """Yield every file that is or could be committed, without the names in .gitignore."""
    ignored = [line.rstrip("/") for line in (ROOT / ".gitignore").read_text().split()] + [".git"]
    for folder, subfolders, files in os.walk(ROOT):
        subfolders[:] = [name for name in subfolders if not any(fnmatch.fnmatch(name, one) for one in ignored)]
        yield from (Path(folder, name) for name in files if not any(fnmatch.fnmatch(name, one) for one in ignored))


@pytest.mark.parametrize("top", sorted(OURS))
def test_imports_follow_the_directions(top: str) -> None:
    found = [
        reason
        for file in python_files(top)
        for target in imports_of(file)
        if (reason := wrong_direction(module_name(file), target))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("top", sorted(OURS))
def test_modules_and_folders_have_no_import_cycles(top: str) -> None:
    """Wherever in the file, for types only too. Files in a package's root are a folder of the package's name."""
    modules = module_graph(top)
    assert not circles(modules) and not circles(folder_graph(modules))


def test_names_of_classes_are_unique() -> None:
    files = [file for top in OURS - {"blast_api"} for file in python_files(top)]
    trees = (ast.parse(file.read_text()) for file in files)
    names = Counter(node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert {name for name, count in names.items() if count > 1} == SAME_NAMES.keys()


def test_packages_name_the_file_to_start_with() -> None:
    """A package of four modules or more: a newcomer should not have to open all of them."""
    folders = {file.parent for top in OURS - {"blast_api"} for file in python_files(top)}
    found = []
    for folder in sorted(folders):
        modules = {file.stem for file in folder.glob("*.py")} - {"__init__"}
        introduction = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
        named = {name.removesuffix(".py").rstrip("/") for name in re.findall(r"`([\w/]+(?:\.py)?)`", introduction)}
        parts = modules | {inner.name for inner in folder.iterdir() if inner.is_dir()}
        if len(modules) >= 4 and not any(name.partition("/")[0] in parts for name in named):
            found.append(module_name(folder / "__init__.py"))
    assert not found


def test_import_cycles_of_files_and_folders_are_found() -> None:
    assert circles({"t.a": {"t.b"}, "t.b": {"t.a"}}) == [{"t.a", "t.b"}]
    apart = {"t.one.a": {"t.two.b"}, "t.two.b": set[str](), "t.two.c": {"t.one.d"}, "t.one.d": set[str]()}
    assert not circles(apart) and circles(folder_graph(apart)) == [{"t.one", "t.two"}]
    in_root = {"t.a": {"t.sub.b"}, "t.sub.b": {"t.c"}, "t.c": set[str](), "t": set[str]()}
    assert circles(folder_graph(in_root)) == [{"t", "t.sub"}]


@pytest.mark.parametrize(
    ("module", "target", "is_wrong"),
    [
        ("algorithms.scheduling", "blast_controller.core.assembly", True),
        ("blast_controller.core.assembly", "blast_controller", True),
        ("blast_controller.core.inventory.totals", "blast_controller.core.rollout.reservation", True),
        ("blast_controller.openflow.application", "os_ken.lib.hub", True),
        ("blast_controller.core.assembly", "algorithms.scheduling.paper", False),
        ("blast_controller.process.daemon", "blast_controller.rpc.server", False),
        ("blast_controller.openflow.framework", "ryu.base.app_manager", False),
        ("blast_client.api.client", "thrift.Thrift", False),
    ],
)
def test_wrong_directions_are_found(module: str, target: str, is_wrong: bool) -> None:
    assert bool(wrong_direction(module, target)) is is_wrong


def test_every_form_of_import_is_found() -> None:
    source = "import a.b\ndef f():\n    from c import d\nif TYPE_CHECKING:\n    from . import e\n"
    source += "from ..f import g\nimportlib.import_module('h')"
    found = set(imported(ast.parse(source), "top.sub"))
    assert found == {"a.b", "c.d", "top.sub.e", "top.f.g", "h"}


def test_wheel_finds_every_package_folder() -> None:
    folders = {file.parent for top in OURS for file in python_files(top)}
    assert all((folder / "__init__.py").is_file() for folder in folders)


def test_thrift_folder_is_not_a_package() -> None:
    assert not list((ROOT / "thrift").rglob("*.py"))
    assert "site-packages" in Path(thrift.__file__).parts
    assert not (ROOT / "__init__.py").exists()


def test_missing_apache_thrift_ends_test_run_with_advice(request: pytest.FixtureRequest) -> None:
    conftest = request.config.pluginmanager.get_plugin(str(ROOT / "tests" / "conftest.py"))
    with pytest.raises(pytest.exit.Exception, match="Apache Thrift is not installed: pip install thrift"):
        conftest.require_apache_thrift(ModuleType("thrift"))
    # Why the guard is there: from the root, without the library, our folder of that name imports as an empty package.
    probe = "import thrift; print(getattr(thrift, '__file__', None))"
    result = subprocess.run([sys.executable, "-S", "-c", probe], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "None"


def test_no_file_names_paths_of_one_machine() -> None:
    files = list(own_files())
    assert Path(__file__).resolve() in files
    found = [
        f"{file.relative_to(ROOT)}: {name.decode()}"
        for file in files
        if file.is_file()
        for name in OF_A_MACHINE
        if name in file.read_bytes()
    ]
    assert not found, "\n".join(found)


def test_requirements_name_no_download_address() -> None:
    for file in (ROOT / "requirements").glob("*.txt"):
        text = file.read_text()
        assert "://" not in text, file
        assert not [line for line in text.splitlines() if line.startswith(("-", "/"))], file

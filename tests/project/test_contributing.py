"""The guides for contributors: every file that they name exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from blast_client.cli.version import VERSION
from blast_transport.wire import codec

ROOT = Path(__file__).resolve().parents[2]
GUIDES = [
    ROOT / name
    for name in ("CONTRIBUTING.md", "docs/explanation/architecture.md", "CHANGELOG.md", "docs/reference/glossary.md")
]
PLACEHOLDERS = ("NAME", "SEED", "…")
BELOW = [
    ROOT,
    ROOT / "blast_controller",
    ROOT / "blast_controller" / "core",
    ROOT / "blast_transport",
    ROOT / "blast_client",
]
"""Where architecture.md's walks begin: paths within a package stand without its name."""


def paths(text: str) -> set[str]:
    quoted = re.findall(r"`([^`\n]+)`", text) + re.findall(r"\]\(([^)#]+)\)", text)
    walks = "\n".join(re.findall(r"```\n(.*?)```", text, re.DOTALL))
    words = [word for one in quoted for word in one.split()] + re.findall(r"[\w/.-]+", walks)
    known = (".py", ".md", ".txt", ".toml", ".thrift", ".json", ".sqlite", ".yaml")
    found = {word.strip("(),:;").rstrip(".") for word in words}
    return {
        one
        for one in found
        if one.endswith(known)
        and Path(one).stem.strip(".") not in {"", "py"}
        and not one.startswith("/")
        and not any(mark in one for mark in PLACEHOLDERS)
    }


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.name)
def test_every_named_file_exists(guide: Path) -> None:
    named = paths(guide.read_text())
    missing = []
    for path in sorted(named):
        pattern = path.replace("../", "").removeprefix("core/")
        folders = [*BELOW, *(folder for folder in (ROOT / "blast_controller" / "core").iterdir() if folder.is_dir())]
        folders += [
            ROOT / "docs",
            *(ROOT / "docs").iterdir(),
            ROOT / "blast_transport" / "store",
            ROOT / "blast_controller" / "openflow",
        ]
        folders += [ROOT / "requirements", ROOT / "thrift", ROOT / "blast_transport" / "session"]
        if not any(list(folder.glob(pattern)) for folder in folders):
            missing.append(path)
    assert missing == []


def test_commit_hook_runs_make_lint() -> None:
    hook = (ROOT / ".pre-commit-config.yaml").read_text()
    assert "entry: make lint\n" in hook and "repo: local\n" in hook
    assert "://" not in hook, "nothing is downloaded"
    assert re.search(r"^lint:\n.*\n\t@scripts/lint$", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_the_changelog_and_the_citation_name_the_version() -> None:
    assert f"\n## {VERSION}" in (ROOT / "CHANGELOG.md").read_text()
    assert f"\nversion: {VERSION}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"now {codec.VERSION} |" in (ROOT / "CHANGELOG.md").read_text()


def test_the_architecture_is_one_page() -> None:
    assert len((ROOT / "docs" / "explanation" / "architecture.md").read_text().splitlines()) <= 100


def test_the_glossary_has_one_line_for_each_word_in_order() -> None:
    rows = re.findall(
        r"^\| ([^|]+) \|.*\|.*\|.*\|$", (ROOT / "docs" / "reference" / "glossary.md").read_text(), re.MULTILINE
    )[2:]
    words = [row.lower() for row in rows]
    assert len(words) > 75 and words == sorted(set(words))

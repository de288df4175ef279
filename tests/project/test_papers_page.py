"""Tests that each claim in docs/explanation/papers.md has a verdict, and that the evidence for it exists.

Evidence is a test by its name, a benchmark or command with its options, or a file of a figure.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from blast_client.cli.command import build_parser
from tests.support.declared_commands import declared_commands
from tests.support.named_tests import missing_tests

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "explanation" / "papers.md"
HEAD = ["§", "claim", "verdict", "evidence", "result"]
VERDICTS = {"reproduced", "not reproduced", "calibrated", "assumed", "out of scope", "refuted"}
PAPERS = ("Blast", "Kascade", "Balanced multicasting", "Rack fabric")
FEWEST_CLAIMS = {"Blast": 60, "Kascade": 45, "Balanced multicasting": 10, "Rack fabric": 10}
"""A page that has lost its rows proves nothing."""


@dataclass(frozen=True)
class Claim:
    """A row of the page."""

    paper: str
    section: str
    sentence: str
    verdict: str
    evidence: tuple[str, ...]
    outcome: str


def claims() -> list[Claim]:
    found, paper = [], ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            paper = line.removeprefix("## ")
        elif paper and line.startswith("|") and not set(line) <= set("|-: ") and (cells := _cells(line)) != HEAD:
            assert len(cells) == len(HEAD), line
            section, sentence, verdict, evidence, outcome = cells
            found.append(Claim(paper, section, sentence, verdict, tuple(re.findall(r"`([^`]+)`", evidence)), outcome))
    return found


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


CLAIMS = claims()
EVIDENCE = sorted({way for claim in CLAIMS for way in claim.evidence})
TESTS = [way for way in EVIDENCE if way.startswith("tests/")]
BENCHMARKS = [way for way in EVIDENCE if way.startswith("benchmarks/")]
COMMANDS = [way for way in EVIDENCE if way.startswith("blast ")]
OTHERS = [way for way in EVIDENCE if way.split()[0] in {"make", "cargo"} or way.startswith("rack_fabric/tests/")]


def test_each_paper_has_a_section_with_claims():
    for paper in PAPERS:
        assert len([claim for claim in CLAIMS if claim.paper == paper]) >= FEWEST_CLAIMS[paper], paper
    assert {claim.paper for claim in CLAIMS} <= set(PAPERS)


def test_claim_has_verdict_and_evidence():
    for claim in CLAIMS:
        assert claim.verdict in VERDICTS and claim.section and claim.sentence, claim
        assert claim.outcome not in {"", "…"} and "<!-- " not in claim.outcome, claim
        assert claim.evidence or claim.verdict == "out of scope", claim
        assert set(claim.evidence) <= {*TESTS, *BENCHMARKS, *COMMANDS, *OTHERS}, claim


def test_each_verdict_is_defined_on_the_page():
    legend, _, _ = PAGE.read_text().partition("\n## ")
    assert {line.split("|")[1].strip() for line in legend.splitlines() if line.startswith("|")} >= VERDICTS


def test_refuted_claim_names_test_of_counter_example():
    assert [claim for claim in CLAIMS if claim.verdict == "refuted" and not set(claim.evidence) & set(TESTS)] == []


def test_named_tests_exist():
    assert missing_tests(TESTS) == []


@pytest.mark.test_all
def test_named_benchmarks_start_and_have_named_options():
    helps = _helps()
    for command in BENCHMARKS:
        script, *words = shlex.split(command)
        options = {word.partition("=")[0] for word in words if word.startswith("-")}
        assert not [one for one in options if not re.search(rf"{re.escape(one)}\b", helps[script])], command


def _helps() -> dict[str, str]:
    """Return the help of each script.

    One process prints them all, because most of their time is spent on loading the same modules.
    """
    scripts = sorted({command.split()[0] for command in BENCHMARKS})
    asked = subprocess.run(
        [sys.executable, "-c", _ASK, *scripts], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert asked.returncode == 0, asked.stderr[-2000:]
    helps: dict[str, str] = json.loads(asked.stdout)
    return helps


_ASK = """
import contextlib, io, json, runpy, sys

scripts, helps = sys.argv[1:], {}

for script in scripts:
    sys.argv = [script, "--help"]
    with contextlib.redirect_stdout(io.StringIO()) as output:
        try:
            runpy.run_path(script, run_name="__main__")
        except SystemExit as end:
            assert not end.code, script
    helps[script] = output.getvalue()
print(json.dumps(helps))
"""


def test_named_commands_parse():
    parser = build_parser(declared_commands())
    assert all(callable(parser.parse_args(shlex.split(command)[1:]).run) for command in COMMANDS)


def test_named_targets_and_rust_tests_exist():
    for way in OTHERS:
        word, *rest = way.split()
        if word == "make":
            assert re.search(rf"^{rest[0]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
        elif word != "cargo":
            path, _, function = way.partition("::")
            assert f"fn {function}" in (ROOT / path).read_text()

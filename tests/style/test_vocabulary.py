"""The words of this project: none of `words.toml`, wherever it is."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.style.vocabulary import ROOT, findings, findings_in, rules, tracked

SHOWN = 40
RULES = rules()
SUBJECTS_SINCE = "b628923c"
SUBJECT = re.compile(r"[a-z][\w.-]*: [a-z].{3,}[^.]")


def test_forbidden_words_occur_nowhere() -> None:
    found = [str(one) for one in findings(tracked())]
    assert not found, "\n".join(found[:SHOWN])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The fibre is lit.", ["fibre"]),
        ("Nobody knows.", ["Nobody"]),
        ("Whoever waits is told.", ["Whoever", "told"]),
        ("Set `least_rate_gbps` first.", ["least_rate_gbps"]),
        ("At least two of the most loaded racks.", []),
        ("What happens when a ToR reboots?", []),
        ("It went on.\n\nWhat is lit stays.", ["What"]),
        ("Two racks wait for\nlight.", ["wait for light"]),
    ],
)
def test_words_are_found_in_text(text: str, found: list[str]) -> None:
    assert [one.found for one in findings_in("docs/some.md", text, RULES)] == found


def test_names_strings_comments_and_docstrings_are_told_apart() -> None:
    source = '"""Nobody."""\n\n\nasync def tell(most_bytes: int) -> None:\n    # whoever\n    print("so many")\n'
    assert [(one.line, one.found, one.public) for one in findings_in("blast_controller/some.py", source, RULES)] == [
        (5, "whoever", False),
        (1, "Nobody", False),
        (4, "tell", False),
        (4, "most_bytes", False),
        (6, "so many", True),
    ]


def test_commit_subjects_name_their_area() -> None:
    listed = subprocess.run(
        ["git", "log", "--no-merges", "--format=%s", f"{SUBJECTS_SINCE}..HEAD"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    # A shallow clone has no history to check.
    wrong = [line for line in listed.stdout.splitlines() if len(line) > 72 or not SUBJECT.fullmatch(line)]
    assert wrong == []

"""tests/promises.toml: the promises of the guides, each with the tests that verify it."""

from __future__ import annotations

import tomllib
from collections import Counter
from typing import Any

from tests.support.named_tests import ROOT, missing_tests

DOCUMENTS = {"how-to/operate", "how-to/agents", "reference/wire-protocol"}
MAX_PROMISES = 80
PROMISES: list[dict[str, Any]] = tomllib.loads((ROOT / "tests" / "promises.toml").read_text())["promise"]


def test_every_promise_occurs_once_in_its_document() -> None:
    texts = {name: _one_line((ROOT / "docs" / f"{name}.md").read_text()) for name in DOCUMENTS}
    counts = {promise["text"]: texts[promise["document"]].count(_one_line(promise["text"])) for promise in PROMISES}
    assert {text: count for text, count in counts.items() if count != 1} == {}
    assert {promise["document"] for promise in PROMISES} == DOCUMENTS


def test_every_promise_names_tests_that_exist() -> None:
    assert [promise["text"] for promise in PROMISES if not promise["tests"]] == []
    names = {name for promise in PROMISES for name in promise["tests"]}
    assert [name for name in sorted(names) if "::test_" not in name] == []
    assert missing_tests(sorted(names)) == []


def test_promises_are_few_and_differ() -> None:
    assert len(PROMISES) <= MAX_PROMISES
    assert all(promise.keys() == {"document", "text", "tests"} for promise in PROMISES)
    assert [text for text, count in Counter(promise["text"] for promise in PROMISES).items() if count > 1] == []
    assert [promise["text"] for promise in PROMISES if len(set(promise["tests"])) < len(promise["tests"])] == []


def _one_line(text: str) -> str:
    return " ".join(text.split())

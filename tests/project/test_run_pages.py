"""`scripts/run-pages` finds differences between a page and the behavior of its commands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(tmp_path: Path, page: str) -> tuple[int, str]:
    (tmp_path / "page.md").write_text(page)
    command = [sys.executable, "scripts/run-pages", "--offline", str(tmp_path / "page.md")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


HOLDS = """\
<!-- run: file greeting.txt -->
```json
{"greeting": 17, "lab": "b3cc"}
```

```
export NAME=greeting.txt   # holds until the end of the page
cat "$NAME" \\
    README.md | head -n 1
```

Numbers may differ:

<!-- run: output -->
```text
{"gre…: 4, "lab": "beef"}
```

<!-- not run: only on a Sunday -->
```
false
```

<!-- run: network -->
```
false
```
"""


def test_page_that_works_passes(tmp_path: Path) -> None:
    status, printed = run(tmp_path, HOLDS)
    assert status == 0, printed
    assert "not run  line 20: only on a Sunday" in printed and "needs a network" in printed
    assert not (ROOT / "greeting.txt").exists()


@pytest.mark.parametrize(
    ("page", "status", "sentence"),
    [
        ("```\ntrue\nfalse\n```\n", 1, "page.md:1: false: exit status 1"),
        ("```\nexit 0\n```\n", 1, "it ended the shell"),
        ("```\necho a\n```\n\n<!-- run: output -->\n```text\nb\n```\n", 1, "the command did not print 'b'"),
        (
            "```\necho b; echo a\n```\n\n<!-- run: output -->\n```\na\nb\n```\n",
            1,
            "did not print 'b', or not in this order",
        ),
        ("<!-- run: prompt -->\n```\ncut r3 rx\n```\n", 1, "no lab was started above"),
        (
            "<!-- run: background -->\n```\nfalse\n```\n\n```\nwait $! || true\n```\n",
            1,
            "in the background, not to the end: false",
        ),
        ("# A page\n\n```\ntrue\n```\n\n``` text\nx\n", 2, "belongs to no block"),
        ("```python\nprint()\n```\n", 2, "a block of python needs a comment with a directive"),
        ("<!-- run: sideways -->\n```\ntrue\n```\n", 2, "there is no directive 'sideways'"),
    ],
)
def test_page_that_fails_is_reported(tmp_path: Path, page: str, status: int, sentence: str) -> None:
    found, printed = run(tmp_path, page)
    assert (found, sentence in printed) == (status, True), printed


def test_every_block_of_the_pages_is_accounted_for() -> None:
    command = [sys.executable, "scripts/run-pages", "--list"]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode == 0


def test_every_page_ends_with_next_steps() -> None:
    for page in (*ROOT.glob("docs/how-to/*.md"), *ROOT.glob("docs/tutorials/*.md")):
        headings = [line for line in page.read_text().splitlines() if line.startswith("## ")]
        assert headings[-1] == "## Next steps", page

"""Worktrees of commits with their environments, kept in a cache folder.

Each worktree is in a folder with the name of its commit. A stamp next to it, written last, contains the setup commands
that created it: a worktree without this stamp is incomplete, and is removed and created again.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.regress.eras import Era, era_of
from benchmarks.regress.runs import execute


class RevisionError(Exception):
    """A revision cannot be measured. The message is one sentence."""


@dataclass(frozen=True)
class Commit:
    """A commit of the repository, and its era."""

    sha: str
    subject: str
    era: Era

    @property
    def short(self) -> str:
        """The abbreviated name."""
        return self.sha[:7]


def default_cache() -> Path:
    """Return the folder for worktrees, by the XDG Base Directory Specification."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "blast-regress"


class Worktrees:
    """The worktrees of a repository in `cache`. `report` is called with a line of progress."""

    def __init__(self, repository: Path, cache: Path, report: Callable[[str], None]) -> None:
        self._repository = repository
        self._cache = cache
        self._report = report

    def commit(self, revision: str) -> Commit:
        """Return the commit of a revision. Raises RevisionError."""
        found = self._git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        sha = found.stdout.strip()
        if found.returncode:
            raise RevisionError(f"{revision!r} is not a commit of {self._repository}: use a revision that git accepts")
        era = era_of(lambda path: self._git("cat-file", "-e", f"{sha}:{path}").returncode == 0)
        if era is None:
            raise RevisionError(
                f"{revision!r} is older than the first era in benchmarks/regress/eras.py: use a newer commit"
            )
        return Commit(sha, self._git("log", "-1", "--format=%s", sha).stdout.strip(), era)

    def prepare(self, commit: Commit) -> Path:
        """Return the worktree of a commit; create it unless it is complete. Raises RunFailedError."""
        self._cache.mkdir(parents=True, exist_ok=True)
        worktree, stamp = self._cache / commit.sha, self._cache / f"{commit.sha}.stamp"
        made_by = repr(commit.era.setup)
        with (self._cache / f"{commit.sha}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (stamp.exists() and stamp.read_text() == made_by and worktree.is_dir()):
                stamp.unlink(missing_ok=True)
                self._make(commit, worktree)
                stamp.write_text(made_by)
        return worktree

    def _make(self, commit: Commit, worktree: Path) -> None:
        self._git("worktree", "remove", "--force", "--force", str(worktree))
        if worktree.exists():
            shutil.rmtree(worktree)
        self._git("worktree", "prune")
        self._report(f"setup of {commit.short}: worktree in {worktree}")
        execute(("git", "worktree", "add", "--quiet", "--detach", str(worktree), commit.sha), self._repository)
        for argv in commit.era.setup:
            self._report(f"setup of {commit.short}: {' '.join(argv)}")
            execute(("nice", "-n", "10", *argv), worktree)

    def _git(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["git", "-C", str(self._repository), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

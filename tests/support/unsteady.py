"""What may be marked `unsteady`: few tests, each with its reason, and none that watches over what must never happen.

The mark excuses nothing: a test that fails once has failed. It names a debt, so that whoever sees the failure knows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

MOST = 5
"""Each costs everybody's trust in all the others."""

PROTECTED = re.compile(
    r"invariant|machine|isolation|property/|fuzz/"
    r"|block|digest|integrity|store|journal|intake|resum|reconcile|restart|snapshot"
    r"|access|authenti|credential|permission|refus|seal|secure|security|stranger|tls|forg|flood|invitation"
)
"""Files about invariants, integrity and security, by the words in their names."""


def faults(marked: Mapping[str, str]) -> list[str]:
    """What is wrong with the marks, as sentences; `marked` has the id of every marked test and its reason."""
    wrong = [f"{test} is marked unsteady without a reason" for test, reason in marked.items() if not reason.strip()]
    wrong += [
        f"{test} watches over an invariant, integrity or security: it must be steady, not marked unsteady"
        for test in marked
        if PROTECTED.search(test.partition("::")[0])
    ]
    if len(marked) > MOST:
        wrong.append(f"{len(marked)} tests are marked unsteady, at most {MOST} may be")
    return wrong

"""Actions of operators on the page: arguments, preview, and the method of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request

from blast_api import ttypes
from blast_base.json_types import JsonObject
from blast_controller.core.model.wording import listed
from blast_controller.core.snapshot.snapshot import Snapshot
from blast_controller.ops import action_preview as foretelling
from blast_controller.ops.action_preview import ActionPreview
from blast_controller.ops.http.access import Visitor
from blast_controller.ops.http.answers import text
from blast_controller.ops.live.calling import Call, called

Given = JsonObject
LONGEST_REASON = 300
"""Characters, so that a reason fits into a row of the page."""


@dataclass(frozen=True, slots=True)
class Now:
    """The state at the time of a preview."""

    snapshot: Snapshot
    draining: bool


@dataclass(frozen=True, slots=True)
class OperatorAction:
    """An action of operators.

    `foretell` returns the effects; `arguments` are those of the interface's `method`, and `done` builds the message
    afterwards.
    """

    foretell: Callable[[Now, Given], ActionPreview]
    method: str
    arguments: Callable[[Given], tuple[object, ...]]
    done: Callable[[Given, Any], str]


def _text(given: Given, name: str) -> str:
    return text(dict(given), name, LONGEST_REASON)


def _element(given: Given) -> str:
    return _text(given, "element")


def _request(given: Given) -> str:
    return f"{_text(given, 'tenant')}/{_text(given, 'key')}"


def _report(report: ttypes.ReconcileReport) -> list[str]:
    compared = list(report.compared or ())
    verb = "would be sent" if report.dryRun else "were sent"
    sentences = [
        f"{len(compared)} devices were compared: {listed(compared)}." if compared else "No device was compared."
    ]
    if report.commands:
        sentences.append(f"{len(report.commands)} commands {verb}: {listed(report.commands)}.")
    elif compared:
        sentences.append("All devices match the journal; no repair needed.")
    if report.foreign:
        sentences.append(f"Not created by Blast and left unchanged: {listed(report.foreign)}.")
    left = [f"{one.element} ({one.reason})" for one in report.notCompared or ()]
    if left:
        sentences.append(f"Not compared: {listed(left)}.")
    return sentences


ACTIONS: Mapping[str, OperatorAction] = {
    "drain": OperatorAction(
        lambda now, given: foretelling.drain(now.snapshot, now.draining),
        "drain",
        lambda given: (True,),
        lambda given, found: f"The controller is draining: {found.active} active requests, {found.pending} pending.",
    ),
    "admit": OperatorAction(
        lambda now, given: foretelling.admit(now.snapshot, now.draining),
        "drain",
        lambda given: (False,),
        lambda given, found: "The controller admits new requests again.",
    ),
    "quarantine": OperatorAction(
        lambda now, given: foretelling.quarantine(now.snapshot, _element(given)),
        "quarantine",
        lambda given: (_element(given), _text(given, "reason")),
        lambda given, found: f"{_element(given)} is quarantined.",
    ),
    "release": OperatorAction(
        lambda now, given: foretelling.release(now.snapshot, _element(given)),
        "releaseElement",
        lambda given: (_element(given),),
        lambda given, found: f"{_element(given)} is released.",
    ),
    "withdraw": OperatorAction(
        lambda now, given: foretelling.withdraw(now.snapshot, _text(given, "tenant"), _text(given, "key")),
        "withdraw",
        lambda given: (_request(given),),
        lambda given, found: f"The request {_request(given)} is withdrawn.",
    ),
}
RECONCILE = "reconcile"


class Actions:
    """Foretells and does them."""

    def __init__(self, call: Call, now: Callable[[], Now]) -> None:
        self.call = call
        self._now = now

    async def foretell(self, visitor: Visitor, request: Request, given: Given) -> ActionPreview:
        """Preview the action of this path. Raises HTTPException."""
        if request.path_params["name"] == RECONCILE:
            report = await called(self.call, visitor, request, "reconcile", True)
            return ActionPreview(_report(report), bool(report.compared))
        return self._action(request).foretell(self._now(), given)

    async def do(self, visitor: Visitor, request: Request, given: Given) -> str:
        """Execute the action of this path and return its message. Raises HTTPException."""
        if request.path_params["name"] == RECONCILE:
            return " ".join(_report(await called(self.call, visitor, request, "reconcile", False)))
        action = self._action(request)
        found = await called(self.call, visitor, request, action.method, *action.arguments(given))
        return action.done(given, found)

    def _action(self, request: Request) -> OperatorAction:
        name = request.path_params["name"]
        if name not in ACTIONS:
            raise HTTPException(404, f"There is no action {name!r}; use one of {', '.join([*ACTIONS, RECONCILE])}.")
        return ACTIONS[name]

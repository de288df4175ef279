"""Reload of a changed configuration file in a running controller.

Keys that affect only future decisions are applied at once. Keys that describe the machine room, or addresses and files,
require a restart: the running value stays, and the operator gets a list of such keys with reasons. A faulty file
changes nothing.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from pydantic import BaseModel

from blast_controller.configuration.config import Config, ConfigError
from blast_controller.configuration.reading import parse_file, read

AT_ONCE = frozenset(
    {
        "controller.ended_retention_ms",
        "controller.max_ended",
        "controller.disconnect_grace_ms",
        "controller.lease_factor",
        "controller.min_lease_ms",
        "controller.max_lease_ms",
        "controller.min_rate_gbps",
        "controller.max_pending_per_tenant",
        "controller.keep_warm_ms",
        "controller.warm_reserve",
        "policy.name",
        "policy.optimizer_budget_ms",
        "openflow.group_port",
        "openflow.certificate",
        "openflow.private_key",
        "journal.reconcile_interval_ms",
        "fabric.probe_timeout_ms",
        "access.certificate",
        "access.private_key",
        "access.token_file",
        "access.client",
        "tenant",
        "log.level",
        "log.format",
    }
)
"""Keys that may be taken up without a restart; every other key is not."""

TOGETHER = ("access", "tenant")
"""Tables that refer to each other, and so are taken up together or not at all."""

_LISTENING = "the listener already uses the address"
_ON_TORS = "rules on the ToRs depend on it"
_STARTING = "it is read only at the start"
_FABRIC = "it describes the fabric that active light trees use"
REASONS = {
    "controller.thrift": _LISTENING,
    "controller.http": _LISTENING,
    "controller.advertise": _STARTING,
    "controller.openflow": _LISTENING,
    "openflow.step_timeout_ms": _STARTING,
    "openflow.echo_interval_ms": "it is read only when a ToR connects",
    "openflow.max_missed_echoes": "it is read only when a ToR connects",
    "openflow.certificate": _STARTING,
    "openflow.private_key": _STARTING,
    "openflow.switch_ca": _STARTING,
    "openflow.certificate_names": _STARTING,
    "openflow": _ON_TORS,
    "journal": "the journal is already open",
    "fabric.verify_at_first_start": _STARTING,
    "fabric": _FABRIC,
    "optical_switch": _FABRIC,
    "rack": _FABRIC,
    "splitter": _FABRIC,
}
"""Why a key waits for a restart: its own reason, or its table's, or else that it is set at the start."""


@dataclass(frozen=True)
class ReloadPlan:
    """The effect of a new configuration on a running controller: keys applied, and a message for each that is not.

    `config` is the resulting configuration: the old one with the keys in `applied` from the new.
    """

    config: Config
    applied: tuple[str, ...]
    refused: tuple[str, ...]


def plan_reload(old: Config, new: Config) -> ReloadPlan:
    """Plan the change from the running configuration to a new one."""
    different = list(_differences(old, new))
    waiting = {key: _reason(key) for key in different if key not in AT_ONCE or _toggles_tls(old, new, key)}
    first = next((key for key in waiting if _table(key) in TOGETHER), None)
    if first is not None:
        for key in different:
            if _table(key) in TOGETHER:
                waiting.setdefault(key, f"it can change only together with {first}")
    applied = tuple(key for key in different if key not in waiting)
    refused = tuple(f"{key}: {waiting[key]}" for key in different if key in waiting)
    return ReloadPlan(_with(old, new, applied), applied, refused)


def _toggles_tls(old: Config, new: Config, key: str) -> bool:
    """Return true if this key would turn TLS on or off, which is possible only at the start."""
    table, _, name = key.partition(".")
    if name not in ("certificate", "private_key"):
        return False
    sections = [getattr(config, table) for config in (old, new)]
    return any(section is None or section.certificate is None for section in sections)


def _table(key: str) -> str:
    return key.partition(".")[0]


def _differences(old: BaseModel, new: BaseModel, above: str = "") -> Iterator[str]:
    """Yield every key whose value differs; a list of tables is one key."""
    for name in type(old).model_fields:
        mine, theirs = getattr(old, name), getattr(new, name)
        if isinstance(mine, BaseModel) and type(mine) is type(theirs):
            yield from _differences(mine, theirs, f"{above}{name}.")
        elif mine != theirs:
            yield f"{above}{name}"


def _reason(key: str) -> str:
    return REASONS.get(key) or REASONS.get(_table(key)) or _STARTING


def _with(old: Config, new: Config, keys: tuple[str, ...]) -> Config:
    for key in keys:
        table, _, name = key.partition(".")
        theirs = getattr(new, table)
        if name:
            theirs = getattr(old, table).model_copy(update={name: getattr(theirs, name)})
        old = old.model_copy(update={table: theirs})
    return old


# ------------------------------------------------------------------------------------------------------- doing


class ReloadResult(Enum):
    """The result of a reload, counted as `config_reload_total` unless the file is unchanged.

    WARM: all changes are applied; COLD: some require a restart; REFUSED: the file is faulty and the old one stays in
    force.
    """

    WARM = "warm"
    COLD = "cold"
    REFUSED = "refused"
    UNCHANGED = "unchanged"

    @property
    def counted(self) -> bool:
        """Return true if the result is counted: an unchanged file is not."""
        return self is not ReloadResult.UNCHANGED


@dataclass(frozen=True)
class ReloadReport:
    """The result of a reload with its message."""

    result: ReloadResult
    sentence: str
    applied: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


class Reloader:
    """The configuration file of a running controller: `running` is in force.

    `apply` applies another configuration and reads the files that it names again; it raises ConfigError, with nothing
    changed, if that fails. `settled` returns a file's configuration with the overrides of the command line.
    """

    def __init__(
        self, path: Path, apply: Callable[[Config], None], settled: Callable[[Config], Config] = lambda config: config
    ) -> None:
        self._path = path
        self._apply = apply
        self._settled = settled
        self.counts: Counter[ReloadResult] = Counter()
        text = read(path)
        self.running = settled(parse_file(path, text))
        self.digest = _digest(text)

    def reload(self) -> ReloadReport:
        """Read the file again and take up what can be taken up."""
        report = self._reload()
        if report.result.counted:
            self.counts[report.result] += 1
        return report

    def _reload(self) -> ReloadReport:
        try:
            text = read(self._path)
            if _digest(text) == self.digest:
                self._apply(self.running)
                sentence = f"{self._path} has not changed; the certificates and tokens that it names were read again"
                return ReloadReport(ReloadResult.UNCHANGED, sentence)
            plan = plan_reload(self.running, self._settled(parse_file(self._path, text)))
            self._apply(plan.config)
        except ConfigError as error:
            return ReloadReport(
                ReloadResult.REFUSED, f"the new configuration is not applied, the previous one stays in force: {error}"
            )
        self.running, self.digest = plan.config, _digest(text)
        result = ReloadResult.COLD if plan.refused else ReloadResult.WARM
        return ReloadReport(result, _sentence(plan), plan.applied, plan.refused)


def _sentence(plan: ReloadPlan) -> str:
    taken_up = f"applied: {', '.join(plan.applied) or 'nothing'}"
    return f"{taken_up}; requires a restart: {'; '.join(plan.refused)}" if plan.refused else taken_up


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()

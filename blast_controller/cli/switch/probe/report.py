"""The report of a probe: the readings of a switch, and its table of the configuration file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from blast_controller.cli.switch.probe.attempts import SwitchFit
from blast_controller.cli.switch.probe.configuration_table import table_text
from blast_controller.cli.switch.probe.readings import PortTotals, SwitchReadings
from blast_controller.cli.switch.probe.settings import SwitchTable

_FIRST = ("name", "driver", "address", "inputs", "outputs")


@dataclass(frozen=True, slots=True)
class SwitchReport:
    """The report.

    Parameters
    ----------
    table : SwitchTable
        The table of the configuration file.
    summary : str
        How the switch is reached.
    readings : SwitchReadings
        The state of the switch.
    remarks : tuple[str, ...]
        What the readings leave open; each is a sentence without a period.
    """

    table: SwitchTable
    summary: str
    readings: SwitchReadings
    remarks: tuple[str, ...] = ()

    @property
    def counts(self) -> PortTotals:
        """The numbers of ports in the table; 0: unknown."""
        found = {name: value for name, value in self.table.items() if isinstance(value, int)}
        return PortTotals(found.get("inputs", 0), found.get("outputs", 0))

    @property
    def toml(self) -> str:
        """The table as text, with the remarks as comments."""
        return table_text(self.table, self.remarks)


def report_of(fits: Sequence[SwitchFit]) -> SwitchReport:
    """Return the report about a switch, given all tables that fit it, at least one."""
    first = fits[0]
    counts = first.readings.counts
    table = {**{name: count for name, count in counts._asdict().items() if count}, **first.table}
    ordered = {name: table[name] for name in _FIRST if name in table}
    remarks = (*_remarks(fits, ordered), *first.readings.refusals)
    return SwitchReport({**ordered, **table}, first.summary, first.readings, remarks)


def _remarks(fits: Sequence[SwitchFit], table: SwitchTable) -> Iterator[str]:
    first, *others = fits
    if others:
        names = ", ".join(_differences(first, other) for other in others)
        yield f"{names} fits as well: reading shows no difference, so compare with the manual of the switch"
    if first.halved:
        total = sum(first.readings.counts)
        yield f"half of the {total} ports are assumed to be inputs: correct inputs and outputs if that is wrong"
    missing = [name for name in ("inputs", "outputs") if name not in table]
    if missing:
        yield f"add {' and '.join(missing)}: the switch does not report its ports"


def _differences(first: SwitchFit, other: SwitchFit) -> str:
    return " ".join(str(value) for key, value in other.table.items() if first.table.get(key) != value)

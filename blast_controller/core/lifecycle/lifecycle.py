"""What becomes of parts when their reservations are lit, changed, lost or gone."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from blast_controller.core.lifecycle.appointments import Appointments
from blast_controller.core.lifecycle.endings import Endings
from blast_controller.core.lifecycle.light_repair import LightRepair
from blast_controller.core.lifecycle.lightings import FailedLightings, Lightings
from blast_controller.core.rollout.outcomes import (
    Changed,
    ChangeRefused,
    Dark,
    Gone,
    LightLost,
    Lit,
    NotLit,
    Outcome,
    Spoilt,
    Stuck,
)
from blast_controller.core.rollout.reservation import Reservation


class Lifecycle:
    """Acts on outcomes of reservations."""

    def __init__(
        self,
        lightings: Lightings,
        failed: FailedLightings,
        endings: Endings,
        repair: LightRepair,
        appointments: Appointments,
    ) -> None:
        self._repair, self._appointments = repair, appointments
        self._outcomes: dict[type, Callable[..., None]] = {
            Lit: lightings.on_lit,
            NotLit: failed.on_not_lit,
            Changed: lightings.on_changed,
            ChangeRefused: lightings.on_change_refused,
            LightLost: endings.on_light_lost,
            Gone: endings.on_gone,
            Dark: self._on_dark,
            Spoilt: endings.on_spoilt,
            Stuck: appointments.on_stuck,
        }

    def act_on(self, outcomes: Iterable[Outcome], now: float) -> None:
        """Let outcomes have their consequences."""
        for outcome in outcomes:
            self._outcomes[type(outcome)](outcome, now)

    def begun(self, reservation: Reservation, outcomes: Iterable[Outcome], now: float) -> None:
        """Devices are at work on a reservation, and this is what has come of it already."""
        self._appointments.links(reservation, now)
        self.act_on(outcomes, now)

    def _on_dark(self, outcome: Dark, now: float) -> None:
        self.act_on(self._repair.on_dark(outcome, now), now)

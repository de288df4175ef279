"""The smallest change to a pending part with which it could start now.

Splitters only limit the number of leaves, so ports alone decide which racks to remove: all racks without a free port,
and as many others as the free splitters cannot reach, those with the fewest receivers first. This is exact for groups
of any size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from blast_controller.core.explaining.prospect import Prospect, SwitchProspect
from blast_controller.core.model.fabric import StaticTree


@dataclass(frozen=True, slots=True)
class AdmissionChange:
    """Racks to leave out with their receivers, or the fan-out of one more free splitter that alone would do."""

    racks: tuple[str, ...]
    receivers: tuple[str, ...]
    fan_out: int | None

    @property
    def helps(self) -> bool:
        """Return true if the change would help."""
        return bool(self.racks) or self.fan_out is not None


def smallest_change(prospect: Prospect, light: bool) -> AdmissionChange:
    """Return what would help; no racks and no splitter if only waiting does.

    `light` is False if no light tree can be provisioned now, however small: only the sender's own rack can be served.
    """
    kept = _max_racks(prospect, light)
    left_out = tuple(rack for rack in prospect.hosts_of if rack not in kept) if kept else ()
    receivers = tuple(host for rack in left_out for host in prospect.hosts_of[rack])
    return AdmissionChange(left_out, receivers, _one_more_splitter(prospect) if light else None)


# --------------------------------------------------------------------------------------------- fewer receivers


def _max_racks(prospect: Prospect, light: bool) -> frozenset[str]:
    """Return the largest set of racks with receivers that could be served now.

    Of several such sets, it is the one with the most receivers.
    """
    if prospect.is_absent(prospect.root) or not prospect.has_address:
        return frozenset()
    local = [rack for rack in prospect.hosts_of if rack == prospect.root]
    choices = [local]
    if light:
        choices += [[*local, *_joined(prospect, offer)] for offer in prospect.offers]
        choices += [_reached(prospect, tree) for tree in prospect.availability.free_static]
    best = max(choices, key=lambda racks: (len(racks), _receivers(prospect, racks)))
    return frozenset(best)


def _joined(prospect: Prospect, offer: SwitchProspect) -> list[str]:
    """Return the other racks that a switch could connect to the sender's now."""
    blocked = set(prospect.without_port(offer))
    if prospect.root in blocked:
        return []
    candidates = [rack for rack in prospect.others if rack not in blocked]
    candidates.sort(key=lambda rack: len(prospect.hosts_of[rack]), reverse=True)
    pool = offer.pool(prospect.now)
    counts = range(len(candidates), 0, -1)
    fitting = (count for count in counts if prospect.fits(count, offer.switch, pool, prospect.now))
    return candidates[: next(fitting, 0)]


def _reached(prospect: Prospect, tree: StaticTree) -> list[str]:
    """Return the racks with receivers that a static tree reaches."""
    racks = [rack for rack in prospect.hosts_of if not prospect.is_absent(rack)]
    return [rack for rack in racks if prospect.reaches_all(tree, prospect.hosts_of[rack])]


def _receivers(prospect: Prospect, racks: Sequence[str]) -> int:
    return sum(len(prospect.hosts_of[rack]) for rack in racks)


# ---------------------------------------------------------------------------------------------- one more splitter


def _one_more_splitter(prospect: Prospect) -> int | None:
    """Return the fan_out of the smallest splitter that would be enough, of the sizes in use if one of them is."""
    if prospect.absent or not prospect.has_address:
        return None
    racks = len(prospect.others)
    pools = [(o.switch, o.pool(prospect.now)) for o in prospect.offers if o.ports_ready <= prospect.now]
    if not racks or any(prospect.fits(racks, switch, pool, prospect.now) for switch, pool in pools):
        return None
    sizes = (*prospect.sizes_in_use, prospect.leaves(racks))
    more = ((fan_out, switch, pool + Counter([fan_out])) for fan_out in sizes for switch, pool in pools)
    return next((fan_out for fan_out, switch, pool in more if prospect.fits(racks, switch, pool, prospect.now)), None)

"""Settings that are fine one by one and contradict each other: each pair is a line of the table below."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

from blast_controller.configuration.config import Config, OpticalSwitchSection

Faults = Callable[[Config], Iterator[str]]


def contradiction(config: Config) -> str | None:
    """Return the first contradiction as a message with the remedy, or None."""
    return next((sentence for faults in CONTRADICTIONS for sentence in faults(config)), None)


def _warm_beyond_memory(config: Config) -> Iterator[str]:
    times = config.controller
    if times.keep_warm_ms > times.ended_retention_ms:
        yield (
            f"controller.keep_warm_ms ({times.keep_warm_ms:g}) must not exceed ended_retention_ms "
            f"({times.ended_retention_ms:g}): a tree would stay warm after its request is forgotten. Lower "
            "keep_warm_ms or raise ended_retention_ms."
        )


def _grace_beyond_memory(config: Config) -> Iterator[str]:
    times = config.controller
    if times.disconnect_grace_ms > times.ended_retention_ms:
        yield (
            f"controller.disconnect_grace_ms ({times.disconnect_grace_ms:g}) must not exceed ended_retention_ms "
            f"({times.ended_retention_ms:g}): a client that reconnects in time would find its request forgotten. "
            "Lower disconnect_grace_ms or raise ended_retention_ms."
        )


def _lease_bounds_reversed(config: Config) -> Iterator[str]:
    if config.controller.max_lease_ms < config.controller.min_lease_ms:
        yield (
            "controller.max_lease_ms is less than controller.min_lease_ms, so no lease is possible: raise max_lease_ms."
        )


def _min_rate_beyond_the_line(config: Config) -> Iterator[str]:
    if (config.controller.min_rate_gbps or 0) > config.fabric.optical_rate_gbps:
        yield (
            "controller.min_rate_gbps exceeds fabric.optical_rate_gbps, so every request would be rejected: "
            "lower min_rate_gbps."
        )


def _one_address_twice(config: Config) -> Iterator[str]:
    listens = config.controller
    named = {"thrift": listens.thrift, "openflow": listens.openflow, "http": listens.http}
    for one, other in combinations(named, 2):
        if named[one] == named[other] and not str(named[one]).endswith(":0"):
            yield f"controller.{one} and controller.{other} are both {named[one]}: use a different port for each."


def _recording_in_the_journal(config: Config) -> Iterator[str]:
    if config.recording.file is not None and config.recording.file == config.journal.path:
        yield f"journal.file and recording.file are both {config.recording.file}: use a different file for each."


def _journal_in_memory_and_in_a_file(config: Config) -> Iterator[str]:
    journal = config.journal
    named = [
        f"journal.{name}"
        for name, there in (
            ("in_memory", journal.in_memory),
            ("file", "file" in journal.model_fields_set),
            ("etcd", journal.etcd is not None),
        )
        if there
    ]
    if len(named) > 1:
        yield f"{' and '.join(named)} are mutually exclusive: keep only one."


def _loop_leaf_of_directional_ports(config: Config) -> Iterator[str]:
    if config.fabric.directional and config.fabric.loop_leaf:
        yield (
            "fabric.directional and fabric.loop_leaf are mutually exclusive, because a loop leaf occupies the "
            "sender's own receive fiber: keep only one."
        )


def _good_light_that_counts_as_dark(config: Config) -> Iterator[str]:
    for switch in config.optical_switch:
        if switch.light_checked == "off":
            continue
        for name, sensitivity in _sensitivities(config, switch):
            if switch.dark_threshold_dbm > sensitivity:
                yield (
                    f"the optical switch {switch.name} treats outputs below {switch.dark_threshold_dbm:g} dBm as dark "
                    "(dark_threshold_dbm), "
                    f"but {name} receives down to {sensitivity:g} dBm (sensitivity_dbm): set dark_threshold_dbm lower."
                )


def _sensitivities(config: Config, switch: OpticalSwitchSection) -> Iterator[tuple[str, float]]:
    for rack in config.rack:
        for port in rack.optical_ports:
            own = port.sensitivity_dbm
            needed = config.fabric.sensitivity_dbm if own is None else own
            if port.optical_switch == switch.name and needed is not None:
                yield f"port {port.port} of rack {rack.name}", needed


def _one_device_twice(config: Config) -> Iterator[str]:
    seen: dict[str, str] = {}
    for switch in config.optical_switch:
        if (other := seen.setdefault(switch.place, switch.name)) != switch.name:
            yield (
                f"the optical switches {other} and {switch.name} have the same address {switch.place}: set a "
                "different address for each."
            )


CONTRADICTIONS: tuple[Faults, ...] = (
    _warm_beyond_memory,
    _grace_beyond_memory,
    _lease_bounds_reversed,
    _min_rate_beyond_the_line,
    _one_address_twice,
    _recording_in_the_journal,
    _journal_in_memory_and_in_a_file,
    _loop_leaf_of_directional_ports,
    _good_light_that_counts_as_dark,
    _one_device_twice,
)

"""The controller as a process: the runtime, its Thrift server, its OpenFlow application and its optical switches."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from importlib.metadata import version
from math import ceil
from typing import TypeVar

from blast_api import BlastOperator
from blast_base.descriptors import DescriptorLimitError, Descriptors, descriptors, raise_limit
from blast_base.endpoint import Endpoint
from blast_base.extras import NotInstalledError, require
from blast_base.settings import endpoint_of
from blast_controller.configuration.access_files import (
    check_access_files,
    read_policy,
    switch_tls,
    tls_settings,
)
from blast_controller.configuration.config import Config, ConfigError, JournalSection, OpticalSwitchSection
from blast_controller.configuration.journal import IN_MEMORY
from blast_controller.configuration.openflow import required_names
from blast_controller.configuration.switch_access import read_access
from blast_controller.core.controller import Core
from blast_controller.core.model import events
from blast_controller.core.model.errors import FabricError, RejectedError
from blast_controller.core.model.fabric import Fabric
from blast_controller.core.model.identifiers import SwitchId
from blast_controller.core.observer import Observer
from blast_controller.history.recorder import Recorder
from blast_controller.history.retention import Keep
from blast_controller.openflow.driver import SPARE_CONNECTIONS, OpenFlowDriver
from blast_controller.openflow.framework import FRAMEWORK
from blast_controller.openflow.server import EchoProbe
from blast_controller.ops.activity_log import ActivityLog
from blast_controller.ops.http.client_counts import MAX_GUESTS, MAX_KNOWN
from blast_controller.ops.logging import fields
from blast_controller.optical.attenuation import output_levels
from blast_controller.optical.executor import OpticalExecutor, SwitchSettings
from blast_controller.optical.light_check import LightCheck
from blast_controller.optimizer.process import OptimizerProcess
from blast_controller.process.first_fiber_check import check_fibers
from blast_controller.process.garbage import GarbageCollection
from blast_controller.process.http_services import HttpSide, MetricSources, Watchers
from blast_controller.process.safe_mode import EndRecord, RunFailure, safe_mode_reason
from blast_controller.rpc.clients.gate import Gate
from blast_controller.rpc.clients.rates import Rate
from blast_controller.rpc.condition import no_standby, not_in_safe_mode
from blast_controller.rpc.connections.framed_server import FramedServer, Security
from blast_controller.rpc.connections.server_state import LEVELS, ServerLimits
from blast_controller.rpc.convert import REFUSALS
from blast_controller.rpc.handler import BlastHandler
from blast_controller.rpc.methods import ROLES
from blast_controller.runtime.runtime import Runtime
from blast_controller.runtime.standby import standby_message
from blast_controller.runtime.waiting import WaitingLimits
from blast_controller.serving.listener import HANDSHAKES
from blast_controller.serving.loop_thread import LoopThread
from blast_controller.store.compaction import Compactor
from blast_controller.store.details import read_page
from blast_controller.store.errors import JournalError, LockLostError
from blast_controller.store.interface import Loaded, Store
from blast_controller.store.memory import MemoryStore
from blast_controller.store.retention import Retention
from blast_controller.store.sqlite import SqliteStore
from blast_controller.succession.candidate import Hooks
from blast_controller.succession.succession import Succession, Watcher
from optical_switch.drivers import SwitchAccess

T = TypeVar("T")
log = logging.getLogger(__name__)

EXIT_FAILED = 1
BURST_SECONDS = 10.0
"""The burst of an account's calls, in seconds of its rate."""
THREAD_SWITCH_INTERVAL = 0.002
TO_ANSWER = 0.05
"""Seconds for the answer to a client that requests a step-down."""


class ListenError(Exception):
    """An address that the config names cannot be listened on. One sentence."""


MIN_CONNECTIONS = 64
"""For which there must be descriptors."""


class UnusableJournalError(Exception):
    """The journal cannot be opened: held by another controller, damaged, not writable. One sentence."""


class Daemon:
    """Starts everything on `start`, in an order in which nothing is lost, and ends it on `stop`."""

    def __init__(self, config: Config) -> None:
        self._config = config
        check_access_files(config)
        # Several short-lived hand-overs between threads make up a grant: do not let one wait 5 ms for the interpreter.
        sys.setswitchinterval(THREAD_SWITCH_INTERVAL)
        self._room = _room(config)
        self._began = time.monotonic()
        self._succession = _succession(config)
        self._store = _store(config) if self._succession is None else self._succession.store
        # Where several controllers share the journal, it is opened when this one comes to lead.
        self._loaded = Loaded(0, {}, False) if self._succession is not None else _opened(self._store)
        self.epoch = self._loaded.epoch
        self._ends = EndRecord.beside(config.journal.path)
        self._compactor = Compactor(self._store, self._die)
        self._garbage = GarbageCollection()
        places = WaitingLimits(of_one=config.controller.max_waiting_calls_per_tenant)
        watchers = Watchers((tenant.name for tenant in config.tenant), lambda: self.runtime.snapshot)
        self._recorder = _recorder(config)
        self._drift = watchers.metering.drift
        observers: list[Observer] = [ActivityLog(), *watchers.observers]
        if self._recorder is not None:
            observers.append(self._recorder)
        # One loop for clients, ToRs and switches: fewer threads compete with the core for the interpreter.
        self._network = LoopThread("network")
        self.runtime = Runtime(_core(config), self._store, self._die, places, observers)
        accesses = {section.name: read_access(section) for section in config.optical_switch}
        fabric = config.build_fabric()
        switches = [_switch_settings(section, accesses[section.name], fabric) for section in config.optical_switch]
        self.secrets = frozenset[str]().union(*(access.secrets for access in accesses.values()))
        """Secrets, which must never be logged."""
        self._optical = OpticalExecutor(
            switches, self.runtime.post, self._die, self._may_write, watchers.metering.refused, self._network.lend()
        )
        per_second = config.controller.max_calls_per_second
        self.gate = Gate(read_policy(config), ROLES, Rate(per_second, burst=ceil(BURST_SECONDS * per_second)))
        handler = BlastHandler(self.runtime, FRAMEWORK, self._history, self.gate, self)
        self._server = FramedServer(
            BlastOperator,
            handler,
            _server_limits(config, self._room),
            REFUSALS,
            security=Security(self.gate, tls_settings(config.access)),
            io=self._network.lend(),
        )
        sources = MetricSources(lambda: self.epoch, self._counts, self._levels)
        self._http_side = HttpSide(self.runtime, self.gate, handler, watchers, sources, config.recording.file)
        tls = tls_settings(config.access) if config.controller.http else None
        self._http = self._http_side.server(tls, self._room.share) if config.controller.http else None
        self._resuming = threading.Lock()
        self._deposed = threading.Lock()
        self.on_epoch: Callable[[int], None] = lambda epoch: None
        """Called when this controller becomes the leader."""
        self._openflow: OpenFlowDriver | None = None
        self._optimizer: OptimizerProcess | None = None

    def _counts(self) -> dict[str, float]:
        """Return the counters of the servers: connections and credentials of clients."""
        counters = asdict(self._server.counters).items()
        served = {f"rpc_{name}": count for name, count in counters if name not in LEVELS}
        merged = {} if self._recorder is None else {"recording_merged_moments": self._recorder.merged}
        return served | {f"gate_{name}": count for name, count in asdict(self.gate.counters).items()} | merged

    def _levels(self) -> dict[str, float]:
        """Return current levels: connections of clients, and the state of the recorder, if any."""
        served = {f"rpc_{name}": getattr(self._server.counters, name) for name in LEVELS}
        return served if self._recorder is None else served | self._recorder.levels()

    def start(self) -> dict[str, str]:
        """Begin to serve and return the bound addresses. Raises ListenError, UnusableJournalError, ConfigError."""
        config = self._config
        self._openflow = _listening(
            config.controller.openflow,
            lambda: OpenFlowDriver(
                endpoint_of(config.controller.openflow),
                config.rule_settings(epoch=self.epoch & 0xFFFF),
                config.optical_ports(),
                str(config.openflow.group_network),
                self.runtime.post,
                self._die,
                config.openflow.step_timeout_ms / 1000,
                EchoProbe(config.openflow.echo_interval_ms / 1000, config.openflow.max_missed_echoes),
                self.epoch if self._succession is None else None,
                switch_tls(config.openflow),
                required_names(config.openflow, config.optical_ports()),
                self._room.share(SPARE_CONNECTIONS),
                self._network.lend(),
            ),
        )
        # Early clients wait for the devices; no device is touched before all addresses are bound.
        host, port = _listening(
            config.controller.thrift,
            lambda: self._server.start(*endpoint_of(config.controller.thrift)),
        )
        addresses = {"thrift": str(Endpoint(host, port))}
        if self._http is not None and (listens := config.controller.http) is not None:
            http = self._http
            host, port = _listening(listens, lambda: http.start(*endpoint_of(listens)))
            addresses["http"] = str(Endpoint(host, port))
        if self._succession is not None:
            self._stand(self._succession)
            return {**addresses, "openflow": self._openflow_address()}
        safe_mode = safe_mode_reason(self._ends.read())
        self._record(self.epoch)
        if safe_mode is None:
            self._begin()
            self._start_devices()
        else:
            log.critical("%s", safe_mode, extra=fields(event="safe_mode"))
            self.runtime.enter_safe_mode(safe_mode, self._loaded)
        self._compactor.start(self._loaded.written)
        self._garbage.start()
        if safe_mode is None and config.fabric.verify_at_first_start and self._loaded.is_new:
            check_fibers(self.runtime)
        return {**addresses, "openflow": self._openflow_address()}

    def _record(self, epoch: int) -> None:
        """Start the recording. Of several controllers only the leader records."""
        if self._recorder is not None:
            self._recorder.start(epoch)

    def _openflow_address(self) -> str:
        assert self._openflow is not None
        return str(Endpoint(endpoint_of(self._config.controller.openflow).host, self._openflow.port))

    # ----------------------------------------------------------------------------- one of several controllers

    def _stand(self, succession: Succession) -> None:
        """Follow the leader, and take over if there is none. Raises UnusableJournalError, ConfigError."""
        assert self._openflow is not None
        following = succession.follow(Watcher(self._show, self._openflow.follow))
        self.runtime.become_standby(following)
        try:
            following.start()
        except JournalError as fault:
            raise UnusableJournalError(str(fault)) from fault
        except FabricError as error:
            raise ConfigError(
                f"{error}: configure the same racks, splitters and switches on all controllers."
            ) from error
        self._openflow.start()
        self._garbage.start()
        succession.stand(Hooks(self._lead, self._depose, self._die), self._openflow.connected)

    def _show(self, loaded: Loaded) -> None:
        core = _core(self._config)
        core.load(loaded.records(), time.monotonic())
        self.runtime.call(lambda context: self.runtime.show(core, loaded.sequence)).result()

    def _lead(self, loaded: Loaded) -> None:
        """Take over as the leader."""
        assert self._succession is not None and self._openflow is not None
        forwarding, core, self.epoch = self._openflow, _core(self._config), loaded.epoch
        succession = self._succession
        self.runtime.holds_leadership, self.runtime.sequence = self._may_write, lambda: succession.sequence
        self._loaded = loaded
        self.on_epoch(loaded.epoch)
        self._succession.stop_following()
        self._record(loaded.epoch)
        self.runtime.call(lambda context: self.runtime.go_on(core, self._optical, forwarding, loaded)).result()
        forwarding.lead(self._succession.generation, loaded.epoch & 0xFFFF)
        self._optical.start()
        self._set_optimizer(self._config)
        self._compactor.start(self._loaded.written)
        log.warning("this controller is the leader", extra=fields(event="leads", epoch=loaded.epoch))

    def _depose(self, reason: str) -> None:
        """Step down as the leader: restart as a process without decisions."""
        if not self._deposed.acquire(blocking=False):
            return
        log.warning(
            "this controller is no longer the leader: %s", reason, extra=fields(event="is_standby", reason=reason)
        )
        self.runtime.abandon()
        if self._succession is not None:
            self._succession.leave()
        start_over()

    def step_down(self) -> None:
        """Hand over to a standby after the caller has its answer.

        Raises RejectedError if there is no standby, or if the standbys cannot be read.
        """
        succession = self._succession
        try:
            if succession is None or not succession.others():
                raise no_standby()
        except JournalError as fault:
            raise RejectedError("no_standby", f"The standby controllers cannot be read: {fault}") from fault
        threading.Timer(TO_ANSWER, self._depose, ["an operator requested it"]).start()

    def _may_write(self) -> bool:
        """Return true if this controller may write."""
        return self._succession is None or self._succession.holds_leadership()

    def _die(self, error: BaseException) -> None:
        """End the process at once after an internal failure, so that a supervisor restarts it."""
        if isinstance(error, LockLostError):
            self._depose(str(error))
        if self._deposed.locked():
            # Whatever fails from here on has lost its journal, and ends with the process anyway.
            return
        self._ends.add(RunFailure(self.epoch, time.monotonic() - self._began, f"{type(error).__name__}: {error}"))
        log.critical("the controller exits: %s: %s", type(error).__name__, error)
        logging.shutdown()
        os._exit(EXIT_FAILED)

    def _begin(self) -> None:
        assert self._openflow is not None
        try:
            self.runtime.start(self._optical, self._openflow, self._loaded)
        except FabricError as error:
            raise ConfigError(
                f"{error}: restore the previous configuration, or wait until its light trees are released."
            ) from error
        except Exception as error:  # noqa: BLE001 - what the journal holds may be what the core cannot handle
            self._die(error)

    def _start_devices(self) -> None:
        assert self._openflow is not None
        self._openflow.start()
        self._optical.start()
        self._set_optimizer(self._config)

    def resume(self) -> None:
        """Leave safe mode and decide again, as after a new start; to be called in a worker thread.

        Raises RejectedError outside safe mode, or if the configuration conflicts with active light trees.
        """
        with self._resuming:
            if self.runtime.safe_mode is None:
                raise not_in_safe_mode()
            assert self._openflow is not None
            core, forwarding = _core(self._config), self._openflow
            self.runtime.call(
                lambda context: self.runtime.go_on(core, self._optical, forwarding, self._loaded)
            ).result()
            self._forget_ends()
            self._start_devices()
        log.warning("an operator ended safe mode", extra=fields(event="resumed"))

    def _forget_ends(self) -> None:
        try:
            self._ends.clear()
        except OSError as error:
            log.error(
                "the record of failures cannot be removed, so the next start will enter safe mode again: %s", error
            )

    def warnings(self) -> list[str]:
        """Return warnings about the controller, one sentence each."""
        found = [
            sentence
            for sentence in (self.runtime.safe_mode, standby_message(self.runtime.standby))
            if sentence is not None
        ]
        if self._recorder is not None and self._recorder.fault is not None:
            found.append(f"The flight recorder pauses: {self._recorder.fault}")
        return [*found, *self._drift.warnings, *([IN_MEMORY] if self._config.journal.in_memory else [])]

    def apply(self, config: Config) -> None:
        """Apply this configuration as far as a running controller can (`reload.AT_ONCE`).

        Existing grants stay unchanged. Raises ConfigError, with nothing changed.
        """
        self.reload_access(config)
        self._set_optimizer(config)
        if config.core_settings() != self._config.core_settings():
            self.runtime.post(events.SettingsChanged(config.core_settings()))
        self._config = config

    def _set_optimizer(self, config: Config) -> None:
        """Start or stop the optimizer as configured, but only on a leader."""
        if self.runtime.safe_mode is not None or self.runtime.standby is not None:
            return
        if config.policy.optimizer_budget_ms > 0 and self._optimizer is None:
            self._optimizer = OptimizerProcess(self.runtime.post, self._die)
            self._optimizer.start()
        elif config.policy.optimizer_budget_ms == 0 and self._optimizer is not None:
            self._optimizer.stop()
            self._optimizer = None
        self.runtime.optimizer = self._optimizer

    def reload_access(self, config: Config) -> None:
        """Reload tokens, client rules, tenants and certificates. Raises ConfigError; the old ones then stay."""
        check_access_files(config)
        policy, tls = read_policy(config), tls_settings(config.access)
        if tls is not None:
            self._server.reload_certificate(tls)
            if self._http is not None:
                self._http.reload_certificate(tls)
        for_switches = switch_tls(config.openflow)
        if for_switches is not None and self._openflow is not None:
            self._openflow.reload_certificate(for_switches)
        self.gate.policy = policy

    def _history(self, after_sequence: int, limit: int) -> list[tuple[int, str, str]]:
        journal = self._store.journal if self._succession is None else self._succession.history
        return read_page(journal, after_sequence, limit)

    def stop(self) -> None:
        """Stop serving; devices keep what they hold."""
        self._server.stop()
        if self._http is not None:
            self._http_side.end(self._http)
        self.runtime.stop()
        if self._recorder is not None:
            self._recorder.stop()
        if self._optimizer is not None:
            self._optimizer.stop()
        self._optical.stop()
        if self._openflow is not None:
            self._openflow.stop()
        self._network.end()
        self._compactor.stop()
        self._garbage.stop()
        if self._succession is None:
            self._store.close()
        else:
            self._succession.leave()


def _core(config: Config) -> Core:
    fabric, started = config.build_fabric(), time.monotonic()
    core = Core(fabric, config.core_settings())
    if fabric.optics.passes:
        took = (time.monotonic() - started) * 1000
        log.info(
            "computed the light trees under the power budget of %s in %.0f ms", ", ".join(fabric.optics.passes), took
        )
    return core


def _store(config: Config) -> Store:
    path = config.journal.path
    if path is None:
        log.warning("%s", IN_MEMORY, extra=fields(event="journal_in_memory"))
        return MemoryStore()
    if not path.parent.is_dir():
        raise UnusableJournalError(
            f"the journal {path} cannot be created because the directory {path.parent} does not exist: create it, "
            "set another journal.file, or keep no journal on disk with journal.in_memory = true."
        )
    return SqliteStore(path, _retention(config.journal))


def _recorder(config: Config) -> Recorder | None:
    section, listens = config.recording, config.controller
    if section.file is None:
        return None
    keep = Keep(round(section.retention_mb * 1e6), section.retention_days)
    return Recorder(section.file, keep, version("blast-controller"), listens.advertise or listens.thrift)


def _retention(keep: JournalSection) -> Retention:
    return Retention(keep.retention_entries, keep.retention_days, round(keep.retention_mb * 1e6))


def _opened(store: Store) -> Loaded:
    try:
        return store.open()
    except JournalError as fault:
        raise UnusableJournalError(str(fault)) from fault


def _room(config: Config) -> Descriptors:
    """Return the descriptors left for clients beside the devices. Raises ConfigError."""
    limits = ServerLimits()
    required = limits.connections + limits.unauthenticated + limits.handshakes + SPARE_CONNECTIONS
    if config.controller.http:
        required += MAX_KNOWN + MAX_GUESTS + HANDSHAKES
    own = 2 * len(config.optical_ports()) + 2 * len(config.optical_switch)
    try:
        return descriptors(raise_limit(), own, required, MIN_CONNECTIONS)
    except DescriptorLimitError as error:
        raise ConfigError(str(error)) from error


def _server_limits(config: Config, room: Descriptors) -> ServerLimits:
    limits = ServerLimits(workers=config.controller.workers)
    if config.access is not None:
        limits = replace(limits, seconds_to_login=config.access.login_timeout_ms / 1000)
    bounds = ("connections", "connections_per_account", "unauthenticated", "unauthenticated_per_host", "handshakes")
    shared = {name: room.share(getattr(limits, name)) for name in (*bounds, "handshakes_per_host")}
    return replace(limits, **shared)


def _switch_settings(section: OpticalSwitchSection, access: SwitchAccess, fabric: Fabric) -> SwitchSettings:
    light = LightCheck(section.light_checked, section.dark_threshold_dbm, section.light_timeout_ms / 1000)
    timeout = section.step_timeout_ms / 1000
    name = SwitchId(section.name)
    levels = {} if section.attenuator_range_db is None else output_levels(fabric, name)
    return SwitchSettings(name, section.driver, access.new_session, timeout, light, levels)


def _listening(address: str, start: Callable[[], T]) -> T:
    try:
        return start()
    except OSError as error:
        raise ListenError(f"cannot listen on {address}: {error.strerror}; is another controller running?") from error


def _succession(config: Config) -> Succession | None:
    """Return the interface to the other controllers, or None if the configuration has only one.

    Raises UnusableJournalError.
    """
    section = config.journal.etcd
    if section is None:
        return None
    try:
        require("etcd", "grpc", "google.protobuf")
        # Only who keeps its journal in etcd has the libraries for it.
        from blast_controller.succession.by_etcd import joined

        address = config.controller.advertise or config.controller.thrift
        return joined(section, address, _retention(config.journal))
    except (NotInstalledError, JournalError) as fault:
        raise UnusableJournalError(str(fault)) from fault


def start_over() -> None:
    """Replace this process by a newly started one; no thread of it remains."""
    logging.shutdown()
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])

"""The controller as a Unix process: its configuration file, its signals, its log, its service manager.

SIGTERM and SIGINT end it and leave all light trees as they are; SIGHUP reloads the configuration file.
"""

from __future__ import annotations

import logging
import queue
import signal
from collections.abc import Callable
from pathlib import Path

from blast_controller.configuration.config import Config
from blast_controller.configuration.reload import Reloader, ReloadReport, ReloadResult
from blast_controller.ops.logging import LogOutput, fields
from blast_controller.ops.notify import READY, STOPPING, Notifier, Watchdog
from blast_controller.process.daemon import Daemon
from blast_controller.process.heap import keep_compact

log = logging.getLogger(__name__)

_LEVELS = {ReloadResult.COLD: logging.WARNING, ReloadResult.REFUSED: logging.ERROR}


class ControllerProcess:
    """One controller, in the main thread of a process of its own.

    `settled` makes of the file's configuration the one that is meant. Raises ConfigError, UnusableJournalError.
    """

    def __init__(self, path: Path, settled: Callable[[Config], Config]) -> None:
        # Before there are other threads.
        keep_compact()
        self._reloader = Reloader(path, self._apply, settled)
        self._notifier = Notifier()
        self._signals: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._output = LogOutput()
        self._output.install()
        self._set_log(self._reloader.running)
        self._daemon = Daemon(self._reloader.running)
        self._output.set_epoch(self._daemon.epoch)
        self._daemon.on_epoch = self._output.set_epoch
        self._output.hide(self._daemon.secrets)
        self._logged_safe_mode: str | None = None

    def run(self, ready: Callable[[dict[str, str]], None]) -> None:
        """Serve until a signal; `ready` gets the bound addresses.

        Raises ConfigError, ListenError, UnusableJournalError.
        """
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda number, _: self._signals.put(number))
        addresses = self._daemon.start()
        ready(addresses)
        self._notify_ready()
        log.info("ready", extra=fields(event="ready", config_sha256=self._reloader.digest, **addresses))
        self._serve(Watchdog(self._notifier, self._on_core))
        self._notifier.send(STOPPING)
        log.info("stopping; light trees stay as they are", extra=fields(event="end"))
        self._daemon.stop()
        self._output.report_suppressed(all_of_it=True)

    def _serve(self, watchdog: Watchdog) -> None:
        while True:
            watchdog.beat()
            self._output.report_suppressed()
            if self._daemon.runtime.safe_mode != self._logged_safe_mode:
                self._notify_ready()
            try:
                number = self._signals.get(timeout=watchdog.interval or 1.0)
            except queue.Empty:
                continue
            if number != signal.SIGHUP:
                return
            self._reload()

    def _on_core(self, errand: Callable[[], None]) -> None:
        self._daemon.runtime.call(lambda context: errand())

    def _reload(self) -> None:
        self._notifier.reloading()
        report = self._reloader.reload()
        log.log(
            _LEVELS.get(report.result, logging.INFO), "reload: %s", report.sentence, extra=self._reload_fields(report)
        )
        self._notify_ready()

    def _reload_fields(self, report: ReloadReport) -> dict[str, object]:
        totals = {result.value: self._reloader.counts[result] for result in ReloadResult if result.counted}
        return fields(
            event="reload",
            result=report.result.value,
            applied=report.applied or None,
            refused=report.refused or None,
            config_sha256=self._reloader.digest,
            config_reload_total=totals,
        )

    def _notify_ready(self) -> None:
        running, safe_mode = self._reloader.running, self._daemon.runtime.safe_mode
        serving = f"serving {len(running.rack)} racks, {len(running.splitter)} splitters"
        self._notifier.send(READY, f"STATUS={safe_mode or serving}")
        self._logged_safe_mode = safe_mode

    def _apply(self, config: Config) -> None:
        self._daemon.apply(config)
        self._set_log(config)

    def _set_log(self, config: Config) -> None:
        self._output.set(config.log.level, config.log.format)

"""The controller as a process: the runtime with its Thrift server, its OpenFlow application and its TL1 sessions."""

from __future__ import annotations

import logging
import os
import resource
import secrets
import sys
from collections.abc import Callable
from typing import TypeVar

from blast_api import BlastOperator, ttypes
from blast_controller.config import Config, ConfigError, OpticalSwitchSection
from blast_controller.core.controller import Core
from blast_controller.openflow.driver import OpenFlowDriver
from blast_controller.openflow.framework import FRAMEWORK, EchoProbe
from blast_controller.optical.executor import OpticalExecutor, SwitchSettings
from blast_controller.rpc.framed_server import FramedServer
from blast_controller.rpc.handler import BlastHandler
from blast_controller.rpc.served_connection import ServerLimits
from blast_controller.runtime import Runtime
from tl1_driver.dialects import DIALECTS

T = TypeVar("T")
log = logging.getLogger(__name__)

EXIT_FAILED = 1
THREAD_SWITCH_INTERVAL = 0.0005


class CannotListen(Exception):
    """An address that the config names cannot be listened on. One sentence."""


class Daemon:
    """Starts everything on `start`, in an order in which nothing is lost, and ends it on `stop`."""

    def __init__(self, config: Config) -> None:
        self._config = config
        # Several short-lived hand-overs between threads make up a grant: do not let one wait 5 ms for the interpreter.
        sys.setswitchinterval(THREAD_SWITCH_INTERVAL)
        _allow_many_connections()
        self.runtime = Runtime(Core(config.build_fabric(), config.core_settings()), _die)
        self._optical = OpticalExecutor(map(_switch_settings, config.optical_switch), self.runtime.post, _die)
        self._server = FramedServer(
            BlastOperator,
            BlastHandler(self.runtime, FRAMEWORK),
            ServerLimits(workers=config.controller.workers),
            too_many_waits=ttypes.Denied,
        )
        self._openflow: OpenFlowDriver | None = None

    def start(self) -> dict[str, str]:
        """Begin to serve; returns the addresses that are bound. Raises CannotListen."""
        config = self._config
        self._openflow = _listening(
            config.controller.openflow,
            lambda: OpenFlowDriver(
                _address(config.controller.openflow),
                # Without a journal there is no boot counter yet: a random epoch tells runs apart.
                config.rule_settings(epoch=secrets.randbits(16)),
                config.optical_ports(),
                str(config.openflow.group_network),
                self.runtime.post,
                _die,
                config.openflow.step_timeout_ms / 1000,
                EchoProbe(config.openflow.echo_interval_ms / 1000, config.openflow.echo_misses),
            ),
        )
        self.runtime.start(self._optical, self._openflow)
        self._openflow.start()
        self._optical.start()
        host, port = _listening(
            config.controller.thrift, lambda: self._server.start(*_address(config.controller.thrift))
        )
        return {
            "thrift": f"{host}:{port}",
            "openflow": f"{_address(config.controller.openflow)[0]}:{self._openflow.port}",
        }

    def stop(self) -> None:
        """Stop serving; devices keep what they hold."""
        self._server.stop()
        self.runtime.stop()
        self._optical.stop()
        if self._openflow is not None:
            self._openflow.stop()


def _allow_many_connections() -> None:
    """Raise the soft limit on open files, 1024 by default, to the hard one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _switch_settings(section: OpticalSwitchSection) -> SwitchSettings:
    host, port = _address(section.address)
    password = ""
    if section.password_file is not None:
        try:
            password = section.password_file.read_text().strip()
        except OSError as error:
            raise ConfigError(f"the password file {section.password_file} cannot be read: {error.strerror}.") from error
    timeout = section.step_timeout_ms / 1000
    return SwitchSettings(section.name, host, port, DIALECTS[section.dialect], section.user, password, timeout)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


def _listening(address: str, start: Callable[[], T]) -> T:
    try:
        return start()
    except OSError as error:
        raise CannotListen(f"cannot listen on {address}: {error.strerror}; is another controller running?") from error


def _die(error: BaseException) -> None:
    """A part of the controller failed: end the process at once, so that a supervisor starts it anew."""
    log.critical("the controller ends: %s: %s", type(error).__name__, error)
    logging.shutdown()
    os._exit(EXIT_FAILED)

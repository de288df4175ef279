"""The one place that imports Mininet: a Debian package that warns about distutils and takes over logging on its way."""

from __future__ import annotations

import logging
import warnings

from mininet_topos.kernel.errors import HostError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    try:
        from mininet.cli import CLI
        from mininet.link import Intf, Link
        from mininet.log import info, setLogLevel
        from mininet.net import Mininet
        from mininet.node import Host, Node, OVSSwitch, RemoteController, Switch
        from mininet.topo import Topo
    except ModuleNotFoundError as missing:
        raise HostError(f"Mininet cannot be imported ({missing}): run `make setup` on Debian 12") from None
    finally:
        # Mininet makes its own logger, deaf to INFO, the class of every logger made after it in the process.
        logging.setLoggerClass(logging.Logger)

__all__ = [
    "CLI",
    "Host",
    "Intf",
    "Link",
    "Mininet",
    "Node",
    "OVSSwitch",
    "RemoteController",
    "Switch",
    "Topo",
    "info",
    "setLogLevel",
]

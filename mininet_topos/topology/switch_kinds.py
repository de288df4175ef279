"""The kinds of optical switches that a lab can have: the server of each, and the keys of its driver.

The names are those of the controller's drivers. Standard library only, as `mn --custom` loads it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from blast_base.extras import NotInstalledError, require
from mininet_topos.kernel.errors import HostError, PlanError
from mininet_topos.topology.switch_servers import (
    HOST_KEY,
    NETCONF_USER,
    USER_KEY,
    ServeSwitch,
    serve_polatis,
    serve_sonic,
    serve_tl1,
)

DEFAULT_KIND = "tl1"


@dataclass(frozen=True, slots=True)
class SwitchKind:
    """A kind of optical switch.

    Parameters
    ----------
    name : str
        Name of its driver.
    protocol : str
        The protocol by which it is served, in a sentence.
    serve : ServeSwitch
        Function that serves it.
    keys : Callable[[Path], Mapping[str, str]]
        Function that returns the driver's keys of the table `[[optical_switch]]` as TOML, given the switch's folder.
    extra : str
        Extra of the distribution that it needs. Empty: none.
    modules : tuple[str, ...]
        Modules of that extra.
    program : str
        Program that it needs, which has the name of its Debian package. Empty: none.
    """

    name: str
    protocol: str
    serve: ServeSwitch
    keys: Callable[[Path], Mapping[str, str]]
    extra: str = ""
    modules: tuple[str, ...] = ()
    program: str = ""

    def check(self) -> None:
        """Raise `HostError` if this machine lacks what the switch needs."""
        if self.program and shutil.which(self.program) is None:
            raise HostError(f"the optical switch {self.name} needs {self.program}: run apt-get install {self.program}")
        try:
            require(self.extra, *self.modules)
        except NotInstalledError as error:
            raise HostError(f"the optical switch {self.name} cannot be served: {error}") from error


def switch_kind(name: str) -> SwitchKind:
    """Return the kind with a name. Raises `PlanError` for an unknown one."""
    if name not in KINDS:
        raise PlanError(f"there is no kind of optical switch {name!r}: choose one of {', '.join(KINDS)}")
    return KINDS[name]


def _tl1_keys(_folder: Path) -> Mapping[str, str]:
    return {"dialect": '"glimmerglass"'}


def _sonic_keys(_folder: Path) -> Mapping[str, str]:
    # Without TLS, which the driver allows on loopback only.
    return {"access": '"gnmi"'}


def _netconf_keys(folder: Path) -> Mapping[str, str]:
    files = {"private_key": folder / USER_KEY, "host_key": folder / f"{HOST_KEY}.pub"}
    named = "".join(f", {key} = {json.dumps(str(path))}" for key, path in files.items())
    return {"ssh": f'{{ user = "{NETCONF_USER}"{named} }}'}


KINDS: Mapping[str, SwitchKind] = {
    kind.name: kind
    for kind in (
        SwitchKind("tl1", "TL1", serve_tl1, _tl1_keys),
        SwitchKind("sonic-ocs", "gNMI", serve_sonic, _sonic_keys, "sonic-ocs", ("grpc", "redis"), "redis-server"),
        SwitchKind("netconf", "NETCONF", serve_polatis, _netconf_keys, "ssh-switches", ("asyncssh",)),
    )
}

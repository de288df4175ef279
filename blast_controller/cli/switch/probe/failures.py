"""Errors of a probe, with their remedies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.util import find_spec

from blast_base.command_line import FAILED
from blast_controller.cli.switch.probe.settings import place_of
from optical_switch.errors import OpticalSwitchError, ProtocolError, RefusedError, UnreachableError

_LOGIN_CODES = frozenset({"UNAUTHENTICATED", "PERMISSION_DENIED", "NOAUTH", "WRONGPASS", "NOPERM"})
"""Codes of gRPC and Redis for a login that is missing, wrong or insufficient."""
_PRIVILEGE = re.compile(r"P[IL][A-Z]{2}")
"""Codes of TL1 for the same, such as PIUI and PLNA (GR-831)."""


class ProbeFailureError(Exception):
    """A probe ends without a report.

    Parameters
    ----------
    sentence : str
        What failed, and what to do next.
    status : int
        Exit status.
    notes : tuple[str, ...]
        Lines to print before.
    """

    def __init__(self, sentence: str, status: int = FAILED, notes: tuple[str, ...] = ()) -> None:
        super().__init__(sentence)
        self.status = status
        self.notes = notes


def refuses_login(error: BaseException) -> bool:
    """Return true if the switch refuses a login, or requires one: further attempts might lock the user out."""
    from tl1_driver.protocol.errors import LoginRefusedError

    if isinstance(error, RefusedError):
        return error.code in _LOGIN_CODES or _PRIVILEGE.fullmatch(error.code) is not None
    if find_spec("asyncssh") is None:
        return False
    from optical_switch.ssh import SshLoginRefusedError

    return isinstance(error, LoginRefusedError | SshLoginRefusedError)


def distrusts_host_key(error: BaseException) -> bool:
    """Return true if the host key of the peer is not the one to trust."""
    if find_spec("asyncssh") is None:
        return False
    from optical_switch.ssh import UntrustedHostKeyError
    from tl1_driver.protocol.errors import HostKeyRefusedError

    return isinstance(error, HostKeyRefusedError | UntrustedHostKeyError)


def advised(error: OpticalSwitchError, table: Mapping[str, object], hint: str = "") -> str:
    """Return the text of an error with its remedy.

    Parameters
    ----------
    error : OpticalSwitchError
        Error of a session.
    table : Mapping[str, object]
        The table of the switch.
    hint : str
        Remedy that follows from the protocol of the peer. Empty: none.

    Returns
    -------
    str
        One sentence without a period.
    """
    text = str(error)
    if place_of(table) not in text:
        text = f"{place_of(table)}: {text}"
    if isinstance(error, RefusedError) and refuses_login(error):
        given = "correct" if "user" in table else "give"
        return f"{text}: {given} --set user=USER and --set password_file=FILE"
    if hint:
        return f"{text}; {hint}"
    if isinstance(error, UnreachableError | ProtocolError) and "ca" in table:
        return f"{text}: check that the authority in the file of ca has signed the certificate for this address"
    return text

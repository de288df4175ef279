"""Requests that a target with the mixed schema of SONiC's gNMI server refuses. Pure."""

from __future__ import annotations

from optical_switch.emulator.gnmi_target.refusals import unsupported
from optical_switch.emulator.gnmi_target.tables import MIXED_SCHEMA
from optical_switch.sonic_ocs.proto import gnmi_pb2 as gnmi


def check_get(request: gnmi.GetRequest) -> None:
    """Check a `Get`.

    Raises
    ------
    RpcRefusalError
        UNIMPLEMENTED if it selects a type of data: SONiC's server returns all.
    """
    if request.type != gnmi.GetRequest.ALL:
        raise unsupported(f"the type {gnmi.GetRequest.DataType.Name(request.type)} is not supported: use ALL")


def check_set(request: gnmi.SetRequest) -> None:
    """Check a `Set`.

    Raises
    ------
    RpcRefusalError
        UNIMPLEMENTED if a path is not of the mixed schema, or is in another database than the first one.
    """
    paths = [*request.delete, *(update.path for update in (*request.replace, *request.update))]
    if any((request.prefix.origin or path.origin) != MIXED_SCHEMA for path in paths):
        raise unsupported(f"only databases can be changed: set the origin {MIXED_SCHEMA} in each path")
    databases = {elem.name for path in paths for elem in [*request.prefix.elem, *path.elem][:1]}
    if len(databases) > 1:
        raise unsupported(f"a request changes one database, but its paths name {' and '.join(sorted(databases))}")

"""The RPCs Capabilities, Get and Set of gNMI, and the faults that concern their answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

import grpc
from redis.exceptions import RedisError

from optical_switch.emulator.gnmi_target.admission import RpcAdmission, no_answer
from optical_switch.emulator.gnmi_target.database import RowDatabase
from optical_switch.emulator.gnmi_target.edits import plan_set, results
from optical_switch.emulator.gnmi_target.mixed_schema import check_get, check_set
from optical_switch.emulator.gnmi_target.ports import PortLayout
from optical_switch.emulator.gnmi_target.refusals import RpcRefusalError, exhausted
from optical_switch.emulator.gnmi_target.requested_path import ENCODINGS, requested_path, response_prefix
from optical_switch.emulator.gnmi_target.tables import (
    CONFIG_DB,
    MIXED_SCHEMA,
    MIXED_SCHEMA_VERSION,
    MODEL,
    ORGANIZATION,
    REVISION,
    STATE_DB,
    Fields,
    RowId,
    tables_of,
)
from optical_switch.emulator.hardware import OpticalHardware
from optical_switch.sonic_ocs.proto import gnmi_pb2 as gnmi

GNMI_VERSION = "0.10.0"
MAX_PATHS = 256
"""Paths of one Get or Subscribe: each costs a reading of its tables."""
DATABASES_OF = {
    gnmi.GetRequest.ALL: {CONFIG_DB, STATE_DB},
    gnmi.GetRequest.CONFIG: {CONFIG_DB},
    gnmi.GetRequest.STATE: {STATE_DB},
    # The states of ports and cross-connects are those of hardware: none is that of a software process.
    gnmi.GetRequest.OPERATIONAL: set[str](),
}
"""Databases with the data of a type (gNMI 3.3.1)."""

A = TypeVar("A")


class GnmiService:
    """Serves requests from the databases.

    Parameters
    ----------
    hardware : OpticalHardware
        The hardware: for its faults and its clock.
    layout : PortLayout
        Its ports.
    databases : Mapping[str, RowDatabase]
        The databases by name.
    admission : RpcAdmission
        Which RPCs are served.
    cut : Callable[[str], None]
        Function that cuts the connection of a peer.
    mixed_schema : bool
        True if databases are changed by the mixed schema only.
    """

    def __init__(  # noqa: PLR0913
        self,
        hardware: OpticalHardware,
        layout: PortLayout,
        databases: Mapping[str, RowDatabase],
        admission: RpcAdmission,
        cut: Callable[[str], None],
        *,
        mixed_schema: bool = False,
    ) -> None:
        self._faults = hardware.faults
        self._clock = hardware.clock
        self._layout = layout
        self._databases = databases
        self._admission = admission
        self._cut = cut
        self._mixed_schema = mixed_schema
        self._setting = asyncio.Lock()

    async def capabilities(
        self, _request: gnmi.CapabilityRequest, context: grpc.aio.ServicerContext
    ) -> gnmi.CapabilityResponse:
        """Return the models, the encodings and the version (gNMI 3.2)."""
        versions = {MODEL: REVISION} | ({MIXED_SCHEMA: MIXED_SCHEMA_VERSION} if self._mixed_schema else {})
        models = [gnmi.ModelData(name=name, organization=ORGANIZATION, version=versions[name]) for name in versions]

        async def respond() -> gnmi.CapabilityResponse:
            return gnmi.CapabilityResponse(
                supported_models=models, supported_encodings=ENCODINGS, gNMI_version=GNMI_VERSION
            )

        return await self._serve(context, respond)

    async def get(self, request: gnmi.GetRequest, context: grpc.aio.ServicerContext) -> gnmi.GetResponse:
        """Return one notification for each path (gNMI 3.3)."""
        return await self._serve(context, lambda: self._get(request))

    async def set(self, request: gnmi.SetRequest, context: grpc.aio.ServicerContext) -> gnmi.SetResponse:
        """Write CONFIG_DB (gNMI 3.4)."""
        response = await self._serve(context, lambda: self._set(request))
        if self._faults.cut_before_answer:
            self._cut(context.peer())
        if self._faults.cut_before_answer or self._faults.lose_answer:
            await no_answer()
        return response

    async def _serve(self, context: grpc.aio.ServicerContext, respond: Callable[[], Awaitable[A]]) -> A:
        try:
            await self._admission.admit(context.invocation_metadata())
            response = await respond()
            await self.delay()
        except RpcRefusalError as refusal:
            await self.delay()
            await context.abort(refusal.code, refusal.text)
            raise
        except RedisError as error:
            await context.abort(grpc.StatusCode.INTERNAL, f"the database failed ({type(error).__name__})")
            raise
        return response

    async def delay(self) -> None:
        """Delay an answer as the fault `answer_delay` demands."""
        if self._faults.answer_delay:
            await self._clock.sleep(self._faults.answer_delay)

    async def _get(self, request: gnmi.GetRequest) -> gnmi.GetResponse:
        if len(request.path) > MAX_PATHS:
            raise exhausted(f"a request may have {MAX_PATHS} paths: split it")
        if self._mixed_schema:
            check_get(request)
        databases = DATABASES_OF.get(request.type, set()) if uses_model(request.use_models) else set()
        requested = [requested_path(request.prefix, path, request.encoding) for path in request.path]
        prefix = response_prefix(request.prefix)
        response = gnmi.GetResponse()
        for one in (path.limited_to(databases) for path in requested):
            rows: dict[RowId, Fields] = {}
            for name in databases:
                rows |= await self._databases[name].read(one.selection.tables)
            notification = gnmi.Notification(timestamp=time.time_ns(), prefix=prefix, update=one.updates(rows))
            response.notification.append(notification)
        return response

    async def _set(self, request: gnmi.SetRequest) -> gnmi.SetResponse:
        if self._mixed_schema:
            check_set(request)
        # One after the other: each is checked against the rows that the one before has left.
        async with self._setting:
            rows = await self._databases[CONFIG_DB].read(tables_of(CONFIG_DB))
            await self._databases[CONFIG_DB].write(plan_set(request, rows, self._layout))
        return gnmi.SetResponse(
            prefix=response_prefix(request.prefix), response=results(request), timestamp=time.time_ns()
        )


def uses_model(models: Sequence[gnmi.ModelData]) -> bool:
    """Return true if a request that names models covers ours: else there is no data for it (gNMI 2.6)."""
    return not models or any(model.name == MODEL for model in models)

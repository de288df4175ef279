"""The HTTP application: `/livez`, `/readyz` and `/metrics`, all read-only, and the pages of other parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from blast_controller.ops.http.access import HttpAccess
from blast_controller.ops.http.answers import HEADERS, accepts_json, failed, with_headers
from blast_controller.ops.http.health import Health
from blast_controller.rpc.clients.access import AccessPolicy
from blast_controller.rpc.clients.identity import Role


@dataclass(frozen=True, slots=True)
class Site:
    """The parts of the application; `more` are pages of other parts with the same access control."""

    health: Health
    registry: CollectorRegistry
    policy: Callable[[], AccessPolicy]
    epoch: Callable[[], int]
    more: Callable[[HttpAccess], Iterable[Route]] = lambda access: ()


def application(site: Site) -> Starlette:
    """Build the application; health is public, in one word for unauthenticated clients.

    `state.access` authenticates requests.
    """
    access = HttpAccess(site.policy)

    async def livez(request: Request) -> Response:
        lives = await site.health.lives()
        return PlainTextResponse("ok\n" if lives else "the decision thread does not respond\n", 200 if lives else 503)

    async def readyz(request: Request) -> Response:
        readiness = site.health.readiness()
        status = 503 if readiness.faults else 200
        try:
            await access.identity(request, Role.VIEWER)
        except HTTPException:
            return JSONResponse({"ready": not readiness.faults}, status)
        answer = {
            "ready": not readiness.faults,
            "epoch": site.epoch(),
            "faults": readiness.faults,
            "optical_switches": dict(zip(("connected", "declared"), readiness.optical_switches, strict=True)),
            "tors": dict(zip(("connected", "declared"), readiness.tors, strict=True)),
        }
        return JSONResponse(answer, status)

    async def metrics(request: Request) -> Response:
        identity = await access.identity(request, Role.VIEWER)
        encode, kind = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(_Of(site.registry, identity.only_tenant)), headers={"Content-Type": kind})

    plain = [Route(f"/{page.__name__}", with_headers(page)) for page in (livez, readyz, metrics)]
    routes = [*plain, *site.more(access)]
    served = Starlette(routes=routes, exception_handlers={HTTPException: _refused, Exception: failed})
    served.state.access = access
    return served


async def _refused(request: Request, error: Exception) -> Response:
    """Return a sentence: as JSON where the live page's scripts ask, as text for people and scrapers."""
    assert isinstance(error, HTTPException)
    headers = {**(error.headers or {}), **HEADERS}
    if accepts_json(request):
        return JSONResponse({"message": error.detail}, error.status_code, headers)
    return PlainTextResponse(f"{error.detail}\n", error.status_code, headers)


class _Of:
    """A registry as a tenant may see it: nothing that is labeled with another."""

    def __init__(self, registry: CollectorRegistry, tenant: str | None) -> None:
        self._registry = registry
        self._tenant = tenant

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics, or this tenant's share."""
        for metric in self._registry.collect():
            if self._tenant is not None:
                metric.samples = [s for s in metric.samples if s.labels.get("tenant", self._tenant) == self._tenant]
            yield metric

"""A server of the live page for tests: a real core in a fake world behind what the page asks for, with every answer in
the hands of the test.

What is recorded, foretold and done is real as far as the core does it; who asks is decided by three fixed tokens.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from blast_client.fabric_layout import lay_out
from blast_controller.core.model.events import DrainAsked, ElementQuarantined, ElementReleased, WithdrawAsked
from blast_controller.core.model.identifiers import ElementId
from blast_controller.core.snapshot.changes import EVERYTHING
from blast_controller.moments.encoder import Difference, Encoder
from blast_controller.moments.moment import Moment
from blast_controller.ops.page.files import CONTENT_SECURITY_POLICY, PAGE, page_files
from blast_controller.ops.page.picture import picture
from blast_controller.rpc.fabric_reading import FabricReading
from tests.support.core import World

TOKENS = {"look": "viewer", "ask": "user", "operate": "operator"}
GATHERED_SECONDS = 0.05
BUCKETS = 300
MOST_CHANGES = 500

Value = dict[str, Any]


@dataclass
class Recorded:
    """A moment as the recorder has it."""

    wall: float
    now: float
    rows: dict[str, str]


@dataclass
class PageServer:
    """Serves the page of a world; `publish` tells what has changed in it. Everything is given by the test's thread.

    `as_role` is who everybody is without a token (None: nobody).
    """

    world: World
    as_role: str | None = "operator"
    release: str = "1.0"
    draining: bool = False
    holding: str | None = None
    store_fault: str | None = None
    drift: dict[str, int] = field(default_factory=lambda: {"rules": 0, "elements": 0})
    leader: Value = field(default_factory=lambda: {"leads": True, "epoch": 1, "leader": "ctrl-a", "staleSeconds": None})
    recording: bool = True
    wall: Callable[[], float] = time.time
    port: int = 0
    sessions: dict[str, str] = field(default_factory=dict)
    """Cookies and whose roles they are: outlive a restart, as a test wants it."""
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(8))
    posts: list[tuple[str, Value, str | None]] = field(default_factory=list)
    """Deeds that were asked for: name, arguments, and the token that came with it."""
    explanation: Value = field(default_factory=lambda: {"sentence": "It waits for a splitter.", "smallestChange": None})
    history: list[Value] = field(default_factory=list)
    recorded: list[Recorded] = field(default_factory=list)
    gaps: list[tuple[float, float]] = field(default_factory=list)
    refuse_with: tuple[int, str] | None = None
    """What every deed is refused with, if at all."""

    def __post_init__(self) -> None:
        self._encoder = Encoder()
        self._lock = threading.Lock()
        self._queues: list[asyncio.Queue[bytes | None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        self.world.core.take_changes()
        self._encode(EVERYTHING)

    # ---------------------------------------------------------------------------------------------- the test's side

    def start(self) -> str:
        """Serve; the address. A port that was had before is had again."""
        started = threading.Event()
        config = uvicorn.Config(self._application(), port=self.port, log_config=None, lifespan="off")
        self._server = server = uvicorn.Server(config)

        async def serve() -> None:
            self._loop = asyncio.get_running_loop()
            task = asyncio.ensure_future(server.serve())
            while not server.started and not task.done():
                await asyncio.sleep(0.005)  # uvicorn says in no other way that it listens
            if server.started:
                self.port = server.servers[0].sockets[0].getsockname()[1]
            started.set()
            await task

        self._thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
        self._thread.start()
        started.wait()
        assert server.started
        return self.url

    def stop(self, goodbye: str | None = None) -> None:
        """End, as a controller that is stopped: streams end at once."""
        if self._thread is None or self._loop is None or self._server is None:
            return
        if goodbye is not None:
            self._tell(_event("goodbye", {"sentence": goodbye}))
        self._tell(None)
        self._server.should_exit = True
        self._thread.join()
        self._thread = None

    def publish(self) -> None:
        """What has changed in the world is told."""
        with self._lock:
            difference = self._encode(self.world.core.take_changes())
            if difference:
                self._tell(_raw_event("changes", f'{{"clock":{self._clock()},"rows":{_rows(difference)}}}'))

    def tell_vitals(self) -> None:
        """The vitals, with a point more of their history."""
        point = self.point()
        self.history.append(point)
        self._tell(_event("vitals", {**self._vitals(), "point": point}))

    def point(self) -> Value:
        """How many wait and are lit now."""
        snapshot = self.world.core.snapshot
        waiting, trees = snapshot.waiting_of(None), len(snapshot.trees)
        return {"wall": self.wall(), "waiting": waiting, "trees": trees, "granted": 0, "grantMs": None}

    def tell_raw(self, name: str, value: Value) -> None:
        """Any event."""
        self._tell(_event(name, value))

    @property
    def url(self) -> str:
        """Where it serves."""
        return f"http://127.0.0.1:{self.port}/"

    def drop_streams(self) -> None:
        """End every stream, as a broken connection does."""
        self._tell(None)

    # ---------------------------------------------------------------------------------------------- what is told

    def _encode(self, changes: Any) -> Difference:
        moment = Moment(self.world.core.snapshot, self.world.now, self.wall(), changes)
        difference = self._encoder.encode(moment)
        if difference and self.recording:
            self.recorded.append(Recorded(moment.wall, moment.now, dict(self._encoder.rows)))
        return difference

    def _clock(self) -> str:
        return json.dumps({"now": self.world.now, "wall": self.wall()})

    def _whole(self) -> bytes:
        head = json.dumps({"instance": self.csrf, "release": self.release})[:-1]
        return _raw_event("whole", f'{head},"clock":{self._clock()},"rows":{_rows(self._encoder.rows)}}}')

    def _vitals(self) -> Value:
        return {
            "clock": {"now": self.world.now, "wall": self.wall()},
            "leader": self.leader,
            "holding": self.holding,
            "storeFault": self.store_fault,
            "draining": self.draining,
            "drift": self.drift,
            "counts": {"grantsSinceStart": 0},
        }

    def _tell(self, event: bytes | None) -> None:
        loop = self._loop
        if loop is None or loop.is_closed():
            return
        for queue in list(self._queues):
            loop.call_soon_threadsafe(queue.put_nowait, event)

    # ---------------------------------------------------------------------------------------------- HTTP

    def _application(self) -> Starlette:
        routes = [
            Route("/", self._page),
            Route("/static/{name:path}", self._static),
            Route("/session", self._session, methods=["GET", "POST", "DELETE"]),
            Route("/picture", self._picture),
            Route("/stream", self._stream),
            Route("/explain", self._explain),
            Route("/past", self._past),
            Route("/past/at", self._past_at),
            Route("/past/changes", self._past_changes),
            Route("/actions/{name}/foretold", self._foretold),
            Route("/actions/{name}", self._act, methods=["POST"]),
        ]
        return Starlette(routes=routes, exception_handlers={HTTPException: _refused})

    def _role(self, request: Request) -> str | None:
        return self.sessions.get(request.cookies.get("blast", ""), self.as_role)

    def _need(self, request: Request, *roles: str) -> None:
        role = self._role(request)
        if role is None:
            raise HTTPException(401, "Log in first.")
        if roles and role not in roles:
            raise HTTPException(403, f"This is for the role operator, and you are {role}: log in with its token.")

    async def _page(self, request: Request) -> Response:
        found = page_files()[PAGE]
        headers = {"Content-Security-Policy": CONTENT_SECURITY_POLICY, "Cache-Control": "no-cache", "ETag": found.tag}
        return Response(found.body, headers=headers, media_type=found.content_type)

    async def _static(self, request: Request) -> Response:
        found = page_files().get(request.path_params["name"])
        if found is None:
            raise HTTPException(404, "There is no such file.")
        headers = {"Cache-Control": "no-cache", "ETag": found.tag, "X-Content-Type-Options": "nosniff"}
        return Response(found.body, headers=headers, media_type=found.content_type)

    async def _session(self, request: Request) -> Response:
        cookie = request.cookies.get("blast", "")
        if request.method == "POST":
            role = TOKENS.get((await request.json())["token"])
            if role is None:
                raise HTTPException(401, "This token is not known: look whether it was copied whole.")
            cookie = secrets.token_urlsafe(8)
            self.sessions[cookie] = role
        if request.method == "DELETE":
            self.sessions.pop(cookie, None)
        role = self.sessions.get(cookie, self.as_role)
        answer = {
            "role": role,
            "name": f"{role} of tenant default" if role else "not logged in",
            "tenant": "default" if role == "user" else None,
            "csrf": self.csrf if role else None,
            "login": True,
            "release": self.release,
        }
        response = JSONResponse(answer)
        if request.method == "POST":
            response.set_cookie("blast", cookie, httponly=True, samesite="strict")
        return response

    async def _picture(self, request: Request) -> Response:
        self._need(request)
        return JSONResponse(picture(lay_out(FabricReading().read(self.world.core.snapshot, None))))

    async def _stream(self, request: Request) -> Response:
        self._need(request)
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        with self._lock:
            first = self._whole()
            self._queues.append(queue)
        return StreamingResponse(self._events(queue, first), media_type="text/event-stream")

    async def _events(self, queue: asyncio.Queue[bytes | None], first: bytes) -> AsyncIterator[bytes]:
        try:
            yield b"retry: 500\n\n"
            yield first
            yield _event("vitals", {**self._vitals(), "history": self.history})
            while (event := await queue.get()) is not None:
                yield event
        finally:
            self._queues.remove(queue)

    async def _explain(self, request: Request) -> Response:
        self._need(request)
        return JSONResponse(self.explanation)

    async def _past(self, request: Request) -> Response:
        self._need(request)
        walls = [one.wall for one in self.recorded]
        oldest, newest = (min(walls), max([*walls, self.wall()])) if walls else (0.0, 0.0)
        activity = [0] * BUCKETS
        for wall in walls:
            activity[min(int((wall - oldest) / max(newest - oldest, 1e-9) * BUCKETS), BUCKETS - 1)] += 1
        sentence = None if self.recording else "Nothing is recorded: set [record] in the configuration."
        told = {"recording": self.recording, "sentence": sentence, "oldest": oldest, "newest": newest}
        return JSONResponse({**told, "gaps": self.gaps, "activity": activity})

    async def _past_at(self, request: Request) -> Response:
        self._need(request)
        wall = float(request.query_params["wall"])
        found = [one for one in self.recorded if one.wall <= wall + 1e-6] or self.recorded[:1]
        if not found:
            raise HTTPException(404, "Nothing is recorded of that time.")
        clock = {"now": found[-1].now + (wall - found[-1].wall), "wall": wall}
        body = f'{{"clock":{json.dumps(clock)},"rows":{_rows(found[-1].rows)}}}'
        return Response(body, media_type="application/json")

    async def _past_changes(self, request: Request) -> Response:
        self._need(request)
        begin, end = (float(request.query_params[name]) for name in ("from", "to"))
        changes = [
            {"wall": after.wall, "name": name, "sentence": _sentence(name, before.rows.get(name), after.rows.get(name))}
            for before, after in zip(self.recorded, self.recorded[1:], strict=False)
            if begin <= after.wall <= end
            for name in sorted({*before.rows, *after.rows})
            if before.rows.get(name) != after.rows.get(name)
        ]
        return JSONResponse({"changes": changes[:MOST_CHANGES], "more": max(len(changes) - MOST_CHANGES, 0)})

    async def _foretold(self, request: Request) -> Response:
        self._need(request, "operator")
        name, given = request.path_params["name"], dict(request.query_params)
        whom = " ".join(given.values()) or "this controller"
        return JSONResponse({"sentences": [f"{name}: {whom}", "What is active goes on."], "possible": True})

    async def _act(self, request: Request) -> Response:
        name, given = request.path_params["name"], await request.json()
        token = request.headers.get("x-blast-csrf")
        self.posts.append((name, given, token))
        self._need(request, "operator")
        if token != self.csrf:
            raise HTTPException(403, "This page is older than the controller: reload it.")
        if self.refuse_with is not None:
            raise HTTPException(*self.refuse_with)
        with self._lock:
            self._do(name, given)
        self.publish()
        self._tell(_event("vitals", self._vitals()))
        return JSONResponse({"sentence": f"Done: {name} {' '.join(given.values())}".strip() + "."})

    def _do(self, name: str, given: dict[str, str]) -> None:
        world = self.world
        match name:
            case "drain" | "admit":
                self.draining = name == "drain"
                world.handle(DrainAsked(self.draining))
            case "quarantine":
                world.handle(ElementQuarantined(ElementId(given["element"]), given["reason"]))
            case "release":
                world.handle(ElementReleased(ElementId(given["element"])))
            case "withdraw":
                world.handle(WithdrawAsked((given["tenant"], given["key"])))
            case "reconcile":
                self.drift = {"rules": 0, "elements": 0}
        world.settle()


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"sentence": error.detail}, error.status_code)


def _event(name: str, value: Value) -> bytes:
    return _raw_event(name, json.dumps(value))


def _raw_event(name: str, data: str) -> bytes:
    return f"event: {name}\ndata: {data}\n\n".encode()


def _rows(rows: Difference | dict[str, str]) -> str:
    return "{" + ",".join(f"{json.dumps(name)}:{row or 'null'}" for name, row in rows.items()) + "}"


def _sentence(name: str, before: str | None, after: str | None) -> str:
    if before is None:
        return f"{name} came."
    if after is None:
        return f"{name} is gone."
    states = [json.loads(row).get("state") for row in (before, after)]
    return f"{name}: {states[0]} became {states[1]}." if states[0] != states[1] else f"{name} changed."

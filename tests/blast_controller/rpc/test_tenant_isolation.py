"""Two tenants and random calls: with enough optical ports for both, neither can detect the other."""

from __future__ import annotations

from concurrent.futures import Future

from hypothesis import given, settings
from hypothesis import strategies as st

from blast_api import ttypes
from blast_controller.rpc.clients.access import AccessPolicy
from blast_controller.rpc.clients.gate import Gate
from blast_controller.rpc.clients.identity import Identity, Role
from blast_controller.rpc.connections.connection import Connection
from blast_controller.rpc.handler import BlastHandler
from blast_controller.rpc.methods import ROLES
from tests.support.controller.core import World, make_fabric
from tests.support.controller.direct_runtime import DirectRuntime

TENANTS = ("physics", "biology")
OPERATORS = sorted(name for name, role in ROLES.items() if role is Role.OPERATOR)
PLENTY = 40
"""Ports of each rack, and splitters: more than all the requests there can be."""

HIDDEN = {
    # Numbers and hardware that all tenants get from one pool.
    "groupAddress", "reservation", "splitters", "crossConnects", "racks", "opticalSwitches",
    # Times.
    "timings", "ageMs", "leaseLeftMs",
}  # fmt: skip

keys = st.sampled_from(["a", "b"])
# Names of requests: a client's own keys, and every way to name a request of another tenant.
names = keys | st.builds("{}/{}".format, st.sampled_from([*TENANTS, "default", ""]), keys) | st.just("//a")
tenants_asked = st.none() | st.sampled_from([*TENANTS, "default", "unknown"])
calls = st.one_of(
    st.tuples(st.sampled_from(["submit", "request"]), names, tenants_asked, st.integers(1, 2)),
    st.tuples(st.sampled_from(["status", "explain", "withdraw", "finish", "extend", "awaitEvent"]), names),
    st.tuples(st.just("listRequests"), tenants_asked),
    st.tuples(st.just("fabric")),
    st.tuples(st.sampled_from(OPERATORS)),
)
identities = st.builds(Identity, st.sampled_from(TENANTS), st.sampled_from([Role.VIEWER, Role.USER, Role.USER]))
histories = st.lists(st.tuples(identities, calls), max_size=25)

REFUSALS = (
    ttypes.Denied,
    ttypes.Ended,
    ttypes.KeyReused,
    ttypes.TimedOut,
    ttypes.Rejected,
    ttypes.UnknownRequest,
    ttypes.Unsupported,
)


class Lab:
    """A handler over a core, as the server would call it."""

    def __init__(self) -> None:
        self.world = World(make_fabric(3, [2] * PLENTY, ports=PLENTY))
        self.gate = Gate(AccessPolicy(), ROLES)
        self.handler = BlastHandler(DirectRuntime(self.world), "os-ken", lambda after, limit: [], self.gate)

    def call(self, identity: Identity, method: str, *more: object) -> object:
        """Return the answer to a caller as plain values: a result, an exception, or None while the call waits."""
        tenants = frozenset({"default", *TENANTS})
        self.gate.policy = AccessPolicy(identity, tenants=tenants, features=frozenset({"tenants"}))
        connection = Connection(1, "192.0.2.1:1")
        try:
            self.gate.check(connection, method)
            answer = getattr(self.handler, method)(connection, *arguments_of(method, *more))
            if isinstance(answer, Future):
                answer = answer.result(0) if answer.done() else None
        except REFUSALS as refusal:
            answer = refusal
        return plain(answer)

    def requests(self) -> str:
        return repr(self.world.core.requests)


def arguments_of(method: str, name: str | None = None, asked: str | None = None, size: int = 1) -> tuple:
    """Return the Thrift arguments of a call."""
    request = ttypes.MulticastRequest(name, "r1h1", ["r2h1", "r3h1"], size * 10**6, tenant=asked)
    return {
        "submit": (request,),
        "request": (request, 1000),
        "extend": (name, ttypes.Extension(addLeaseMs=1000)),
        "finish": (name, 0, ttypes.TransferReport()),
        "awaitEvent": (name, 0, 1000),
        "listRequests": (ttypes.RequestFilter(tenant=name), 100, ""),
        "status": (name,),
        "explain": (name,),
        "withdraw": (name,),
        "fabric": (),
        "drain": (True,),
        "reconcile": (True,),
        "verifyFabric": (),
        "quarantine": ("splitter:s1", "spite"),
        "releaseElement": ("splitter:s1",),
        "journal": (0, 100),
    }[method]


def plain(answer: object) -> object:
    """Return an answer as plain values, without hidden fields."""
    if isinstance(answer, list):
        return [plain(item) for item in answer]
    if not hasattr(answer, "thrift_spec"):
        return answer
    fields = {field[2] for field in answer.thrift_spec if field} - HIDDEN
    return (type(answer).__name__, {name: plain(getattr(answer, name)) for name in sorted(fields)})


def answers_to(tenant: str, history: list) -> list:
    """Return the answers that one tenant receives in a history."""
    lab = Lab()
    answers = [(identity.tenant, lab.call(identity, *call)) for identity, call in history]
    return [answer for asker, answer in answers if asker == tenant]


@settings(max_examples=60)
@given(histories, st.sampled_from(TENANTS))
def test_answers_to_a_tenant_do_not_depend_on_another_tenant(history, tenant):
    alone = [(identity, call) for identity, call in history if identity.tenant == tenant]
    assert answers_to(tenant, history) == answers_to(tenant, alone)


def test_answers_differ_without_isolation():
    """The same comparison, with two operators in place of two tenants."""
    look, ask = ("listRequests", None), ("submit", "a", None, 1)
    first, second = (Identity(tenant, Role.OPERATOR) for tenant in TENANTS)
    for spy in (look, ("status", "biology/a"), ("fabric",), ("withdraw", "biology/a"), ("listRequests", "biology")):
        history = [(second, ask), (first, spy)]
        assert answers_to("physics", history) != answers_to("physics", history[1:]), spy
        history = [(Identity(identity.tenant, Role.USER), call) for identity, call in history]
        assert answers_to("physics", history) == answers_to("physics", history[1:]), spy


@settings(max_examples=60)
@given(histories)
def test_viewers_change_nothing_and_users_cannot_operate_hardware(history):
    lab = Lab()
    for identity, call in history:
        before = lab.requests()
        answer = lab.call(identity, *call)
        if call[0] in OPERATORS:
            assert answer[0] == "Denied"
        if identity.role is Role.VIEWER or call[0] in OPERATORS:
            assert lab.requests() == before
    assert not lab.world.core.view.quarantined
    assert {tenant for tenant, _ in lab.world.core.requests} <= {identity.tenant for identity, _ in history}

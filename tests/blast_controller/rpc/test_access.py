"""Access control without sockets: the role table, identities, tokens, the gate and its penalties."""

from __future__ import annotations

import ast
import inspect
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.transport.TTransport import TMemoryBuffer

from blast_api import Blast, BlastOperator, ttypes
from blast_controller.rpc.clients import tokens
from blast_controller.rpc.clients.access import (
    OPEN_POLICY,
    AccessPolicy,
    CertificateRule,
    name_request,
    refusal,
)
from blast_controller.rpc.clients.gate import LONGEST_REST, Gate
from blast_controller.rpc.clients.identity import Identity, Role
from blast_controller.rpc.clients.rates import Rate
from blast_controller.rpc.clients.tokens import InvalidTokenError, digest_of, new_token, parse_tokens, token_line
from blast_controller.rpc.connections.connection import Connection
from blast_controller.rpc.connections.dispatch import answer
from blast_controller.rpc.connections.messages import ServiceCodec
from blast_controller.rpc.methods import ROLES
from blast_controller.serving.tls import certificate_names

METHODS = ServiceCodec(BlastOperator).methods
CHANGING = {"submit", "request", "extend", "finish", "withdraw"}
USER = Identity("physics", Role.USER)
OPERATOR = Identity("ops", Role.OPERATOR)
TOKEN = "t" * 10 + new_token()


def client(*names: tuple[str, str]) -> Connection:
    return Connection(1, "192.0.2.1:5000", frozenset(names))


def token_policy(**more) -> AccessPolicy:
    return AccessPolicy(tokens={digest_of(TOKEN): USER}, features=frozenset({"login", "tenants"}), **more)


def refused(identity: Identity | None, method: str) -> str | None:
    return refusal(identity, method, ROLES[method])


# ------------------------------------------------------------------------------------------------ the role table


def test_methods_with_a_role_declare_denied():
    for name, role in ROLES.items():
        if role is not None:
            assert ttypes.Denied in METHODS[name].errors.values(), name


def test_viewers_only_read_and_users_change_requests_only():
    allowed = {role: {m for m in METHODS if refused(Identity("t", role), m) is None} for role in Role}
    assert allowed[Role.VIEWER] < allowed[Role.USER] < allowed[Role.OPERATOR] == set(METHODS)
    assert allowed[Role.USER] - allowed[Role.VIEWER] == CHANGING
    operators = set(METHODS) - allowed[Role.USER]
    assert operators == set(METHODS) - set(ServiceCodec(Blast).methods) - {"elements"}


def test_anonymous_client_may_only_ping_ask_version_and_log_in():
    assert {m for m in METHODS if refused(None, m) is None} == {"ping", "version", "login"}
    assert "log in" in refused(None, "submit") and "user" in refused(None, "submit")
    assert "viewer of tenant x" in refused(Identity("x", Role.VIEWER), "drain")


def test_denied_call_reaches_no_handler_method():
    class Forbidding:
        def check(self, connection, method):
            raise ttypes.Denied(method)

        def holder(self, connection):
            return None

    codec, reached = ServiceCodec(BlastOperator), []

    class Reached:
        def __getattr__(self, name):
            return lambda *_: reached.append(name)

    for name, method in codec.methods.items():
        sample = [None] * len([field for field in method.arguments.thrift_spec if field])
        buffer = TMemoryBuffer()
        protocol = TBinaryProtocolAccelerated(buffer)
        protocol.writeMessageBegin(name, 1, 1)
        method.arguments(*sample).write(protocol)
        protocol.writeMessageEnd()
        answer(codec, Reached(), client(), buffer.getvalue(), Forbidding())
    assert reached == []


# ---------------------------------------------------------------------------------------------------- identities


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ({("common_name", "a"), ("organizational_unit", "p")}, USER),
        ({("common_name", "a"), ("organizational_unit", "p"), ("dns_name", "h")}, USER),
        ({("common_name", "a")}, None),
        ({("organizational_unit", "p")}, None),
        ({("dns_name", "a"), ("organizational_unit", "p")}, None),
        ({("uri", "spiffe://x/admin")}, OPERATOR),
        ({("uri", "spiffe://x/admin"), ("common_name", "a"), ("organizational_unit", "p")}, USER),
        (set(), None),
    ],
)
def test_first_matching_certificate_rule_applies(names, expected):
    rules = (
        CertificateRule(frozenset({("common_name", "a"), ("organizational_unit", "p")}), USER),
        CertificateRule(frozenset({("uri", "spiffe://x/admin")}), OPERATOR),
    )
    assert AccessPolicy(rules=rules).identify(frozenset(names), None) == expected


def test_certificate_names_include_subject_and_alternative_names():
    certificate = {
        "subject": ((("organizationalUnitName", "p"),), (("commonName", "a"), ("countryName", "DE"))),
        "subjectAltName": (("DNS", "a.example"), ("URI", "u:1"), ("IP Address", "192.0.2.1")),
    }
    assert certificate_names(certificate) == {
        ("organizational_unit", "p"), ("common_name", "a"), ("dns_name", "a.example"), ("uri", "u:1"),
    }  # fmt: skip
    assert certificate_names({}) == frozenset()


def test_token_overrides_certificate_even_when_it_is_revoked():
    rules = (CertificateRule(frozenset({("common_name", "a")}), OPERATOR),)
    policy, names = token_policy(rules=rules), frozenset({("common_name", "a")})
    assert policy.identify(names, None) == OPERATOR
    assert policy.identify(names, digest_of(TOKEN)) == USER
    assert AccessPolicy(rules=rules).identify(names, digest_of(TOKEN)) is None


@pytest.mark.parametrize(
    ("identity", "text", "is_known", "expected"),
    [
        (USER, "k", False, ("physics", "k")),
        (USER, "physics/k", False, ("physics", "k")),
        (USER, "ops/k", False, ("physics", "ops/k")),
        (USER, "physics/k", True, ("physics", "physics/k")),
        (OPERATOR, "k", False, ("ops", "k")),
        (OPERATOR, "physics/k", False, ("physics", "k")),
        (OPERATOR, "physics/a/b", False, ("physics", "a/b")),
        (OPERATOR, "physics/k", True, ("ops", "physics/k")),
        (OPERATOR, "", False, ("ops", "")),
    ],
)
def test_request_name_is_resolved_to_tenant_and_key(identity, text, is_known, expected):
    assert name_request(identity, text, is_known) == expected


@given(st.text(max_size=12), st.booleans())
def test_user_names_requests_of_its_own_tenant_only(text, is_known):
    assert name_request(USER, text, is_known)[0] == "physics"


# -------------------------------------------------------------------------------------------------------- tokens


def test_token_file_is_parsed():
    other = new_token()
    text = f"# who\n\n{token_line(TOKEN, USER)}  # the cluster\n{token_line(other, OPERATOR)}\n"
    assert parse_tokens(text) == {digest_of(TOKEN): USER, digest_of(other): OPERATOR}
    assert TOKEN not in text and parse_tokens("") == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sha256:00 physics user", "64 hexadecimal"),
        (f"sha256:{'0' * 64} physics", "DIGEST TENANT ROLE"),
        (f"sha256:{'0' * 64} physics user more", "DIGEST TENANT ROLE"),
        (f"sha256:{'0' * 64} phy/sics user", "letters"),
        (f"sha256:{'0' * 64} {'x' * 65} user", "letters"),
        (f"sha256:{'0' * 64} physics root", "viewer, user, operator"),
        (f"md5:{'0' * 64} physics user", "sha256:"),
        (f"sha256:{'0' * 64} a user\nsha256:{'0' * 64} b operator", "line 2 has the same token"),
        ("\n\nsecret", "line 3"),
    ],
)
def test_error_in_a_token_file_names_the_line(text, words):
    with pytest.raises(InvalidTokenError, match="line ") as error:
        parse_tokens(text)
    assert words in str(error.value)


@given(st.text())
def test_any_text_is_parsed_or_rejected_in_one_line(text):
    try:
        parse_tokens(text)
    except InvalidTokenError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize("token", ["", "hunter2", "x" * 40, "ab" * 20])
def test_guessable_token_is_rejected(token):
    with pytest.raises(InvalidTokenError, match="random"):
        token_line(token, USER)


def test_logins_compare_digests_in_constant_time():
    """Check the source code, because a test that measures time would fail by chance."""
    tree = ast.parse(inspect.getsource(AccessPolicy))
    (lookup,) = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == "known_digest"]
    calls = {ast.unparse(n.func) for n in ast.walk(lookup) if isinstance(n, ast.Call)}
    assert "hmac.compare_digest" in calls
    assert not any(isinstance(n, ast.Break | ast.In | ast.Eq) for n in ast.walk(lookup))
    assert tokens.digest_of("\ud800") != tokens.digest_of("?"), "whatever text a client sends has a digest"


# ------------------------------------------------------------------------------------------------------ the gate


def test_gate_authenticates_and_counts_logins():
    gate, connection = Gate(token_policy(), ROLES), client()
    assert gate.holder(connection) is None
    with pytest.raises(ttypes.Denied, match="log in"):
        gate.check(connection, "status")
    gate.login(connection, TOKEN)
    assert gate.holder(connection) == USER.tenant and gate.identity(connection) == USER
    gate.check(connection, "submit")
    with pytest.raises(ttypes.Denied, match="user of tenant physics"):
        gate.check(connection, "drain")
    assert (gate.counters.logins, gate.counters.failed_logins, gate.counters.denied_calls) == (1, 0, 2)
    with pytest.raises(ttypes.Denied):
        gate.login(connection, "wrong")
    assert gate.identity(connection) == USER, "a failed login changes nothing"


def test_rest_after_failed_logins_doubles_until_a_login_succeeds():
    gate, connection = Gate(token_policy(), ROLES), client()
    rests = []
    for _ in range(8):
        with pytest.raises(ttypes.Denied):
            gate.login(connection, TOKEN[:-1])
        rests.append(connection.rest)
    assert rests[:4] == [0.25, 0.5, 1.0, 2.0] and rests[-1] == LONGEST_REST
    assert gate.counters.failed_logins == 8
    gate.login(connection, TOKEN)
    assert connection.failed_logins == 0


def test_rest_after_excess_calls_shrinks_after_a_pause():
    connection = client()
    rests = []
    for moment in (0.0, 0.1, 0.2, 5.0, 5.9, 7.0):
        connection.asked_too_much(moment)
        rests.append(connection.take_rest(moment))
    assert rests == [0.005, 0.01, 0.02, 0.005, 0.01, 0.005]
    assert connection.take_rest(7.9) == 0.005, "calls that are not refused yet are followed by it as well"
    assert connection.take_rest(8.1) == 0.0


def test_call_beyond_the_rate_of_an_account_causes_a_rest():
    gate, connection = Gate(OPEN_POLICY, ROLES, Rate(per_second=0.001, burst=1)), client()
    gate.admit(connection)
    assert connection.take_rest(time.monotonic()) == 0.0
    with pytest.raises(ttypes.Rejected, match="too_many_calls"):
        gate.admit(connection)
    assert connection.take_rest(time.monotonic()) == 0.005


def test_new_policy_applies_to_open_connections():
    gate, connection = Gate(token_policy(), ROLES), client()
    gate.login(connection, TOKEN)
    gate.policy = AccessPolicy(tokens={digest_of(TOKEN): Identity("physics", Role.VIEWER)})
    with pytest.raises(ttypes.Denied):
        gate.check(connection, "submit")
    gate.policy = AccessPolicy()
    with pytest.raises(ttypes.Denied):
        gate.check(connection, "status")


def test_gate_resolves_the_tenant_of_requests_and_lists():
    gate, connection = (
        Gate(token_policy(tenants=frozenset({"default", "physics", "biology"})), ROLES),
        client(),
    )
    gate.login(connection, TOKEN)
    assert gate.tenant_for(connection, None) == gate.tenant_for(connection, "physics") == "physics"
    assert gate.tenant_to_list(connection, None) == "physics"
    for asked in ("biology", "chemistry"):
        with pytest.raises(ttypes.Denied):
            gate.tenant_for(connection, asked)
        with pytest.raises(ttypes.Denied):
            gate.tenant_to_list(connection, asked)
    gate.policy = AccessPolicy(OPERATOR, tenants=frozenset({"ops", "physics"}), features=frozenset({"tenants"}))
    operator = client()
    assert gate.tenant_to_list(operator, None) is None
    assert gate.tenant_for(operator, "physics") == gate.tenant_to_list(operator, "physics") == "physics"
    with pytest.raises(ttypes.Rejected) as unknown:
        gate.tenant_for(operator, "chemistry")
    assert unknown.value.code == "unknown_tenant"


def test_open_policy_makes_each_client_operator_of_default_tenant():
    gate = Gate(OPEN_POLICY, ROLES)
    assert gate.identity(client()) == Identity("default", Role.OPERATOR) == OPEN_POLICY.anonymous
    for method in METHODS:
        gate.check(client(), method)
    with pytest.raises(ttypes.Unsupported):
        gate.tenant_for(client(), "physics")

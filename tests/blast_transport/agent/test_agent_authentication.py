"""The proof of a shared secret: both sides, byte by byte, and everything that must not be taken for one."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given
from hypothesis import strategies as st

from blast_transport.base.errors import AuthenticationError, LocalProtocolError
from blast_transport.credentials.authentication import (
    MAGIC,
    AgentHandshake,
    ClientHandshake,
    ConnectionKeys,
    hkdf_expand,
    hkdf_extract,
    refusal,
)

SECRET, OTHER = b"s" * 32, b"t" * 32


def pair(client_secret: bytes = SECRET, agent_secret: bytes = SECRET) -> tuple[ClientHandshake, AgentHandshake]:
    return ClientHandshake(client_secret, deadline=10.0), AgentHandshake(agent_secret, deadline=10.0)


def give(listener: ClientHandshake | AgentHandshake, message: bytes, step: int = 1000) -> bytes:
    """Give a message, at most `step` bytes at a time and never more than is wanted; the answer."""
    answer = b""
    while message:
        count = min(step, listener.expected_bytes)
        assert count, "more was sent than the other side wants"
        answer += listener.receive(message[:count], now=0.0)
        message = message[count:]
    return answer


def shake(client: ClientHandshake, agent: AgentHandshake, step: int = 1000) -> list[bytes]:
    """Let both talk; the messages, in the order in which they were sent."""
    said = [client.opening]
    for listener in (agent, client, agent, client):
        said.append(give(listener, said[-1], step))
    assert said.pop() == b""
    return said


@given(step=st.integers(1, 50))
def test_who_knows_the_secret_is_let_in_on_both_sides(step):
    client, agent = pair()
    said = shake(client, agent, step)
    assert client.done and agent.done and client.expected_bytes == agent.expected_bytes == 0
    assert [len(message) for message in said] == [40, 40, 32, 40]
    assert not any(SECRET in message for message in said)
    key = bytes(range(32))
    assert agent.keys.hide(7, client.keys.hide(7, key)) == key, "both sides have the same keys"


def test_a_client_with_another_secret_is_refused_and_learns_nothing():
    client, agent = pair(client_secret=OTHER)
    challenge = give(agent, client.opening)
    proof = give(client, challenge)
    with pytest.raises(AuthenticationError, match="the secret is not this agent's"):
        give(agent, proof)
    assert not agent.done


def test_an_agent_with_another_secret_is_found_out():
    """It lets everybody in, but cannot prove itself."""
    client = ClientHandshake(SECRET, deadline=10.0)
    give(client, MAGIC + bytes(32))
    forged = ConnectionKeys(OTHER, client.opening[len(MAGIC) :], bytes(32)).agent_proof
    with pytest.raises(AuthenticationError, match="the agent does not know the secret"):
        give(client, MAGIC + forged)
    assert not client.done


def test_what_was_recorded_is_worth_nothing():
    client, agent = pair()
    opening, _, proof, _ = shake(client, agent)
    again = AgentHandshake(SECRET, deadline=10.0)
    give(again, opening)
    with pytest.raises(AuthenticationError, match="the secret is not this agent's"):
        give(again, proof)


def test_a_proof_cannot_be_sent_back():
    """A stranger who listens like an agent and repeats everything is not taken for one."""
    client = ClientHandshake(SECRET, deadline=10.0)
    with pytest.raises(AuthenticationError, match="own nonce"):
        give(client, client.opening)
    client = ClientHandshake(SECRET, deadline=10.0)
    proof = give(client, MAGIC + bytes(32))
    with pytest.raises(AuthenticationError, match="does not know the secret"):
        give(client, MAGIC + proof)


@given(message=st.integers(0, 3), place=st.integers(0, 39), bit=st.integers(0, 7))
def test_one_changed_bit_anywhere_is_noticed(message, place, bit):
    client, agent = pair()

    def sent(number: int, data: bytes) -> bytes:
        if number != message:
            return data
        at = place % len(data)
        return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]

    with pytest.raises(AuthenticationError):
        challenge = give(agent, sent(0, client.opening))
        proof = give(client, sent(1, challenge))
        confirmation = give(agent, sent(2, proof))
        give(client, sent(3, confirmation))


@pytest.mark.parametrize("side", [ClientHandshake, AgentHandshake])
def test_a_proof_that_comes_late_is_none(side):
    handshake = side(SECRET, deadline=10.0)
    handshake.receive(b"", 10.0)
    with pytest.raises(AuthenticationError, match="no proof came in time"):
        handshake.receive(MAGIC, 10.001)


@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.parametrize("step", [1, 7, 1000])
def test_a_refusal_is_told_in_the_agents_words(after, step):
    client = ClientHandshake(SECRET, deadline=10.0)
    if after:
        give(client, MAGIC + bytes(32))
    with pytest.raises(AuthenticationError, match="the agent refuses: too many connections from your host; try again"):
        give(client, refusal("too many connections from your host; try again"), step)


def test_a_refusal_cannot_write_on_a_terminal():
    client = ClientHandshake(SECRET, deadline=10.0)
    message = refusal("\x1b[2J")
    give(client, message[:8])
    give(client, message[8:9])
    with pytest.raises(AuthenticationError) as caught:
        give(client, message[9:])
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "stranger", [b"GET / HTTP/1.1\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", bytes(40)]
)
def test_strangers_are_told_apart(stranger):
    agent = AgentHandshake(SECRET, deadline=10.0)
    with pytest.raises(AuthenticationError, match="requires a proof"):
        give(agent, (stranger * 4)[:40])
    client = ClientHandshake(SECRET, deadline=10.0)
    with pytest.raises(AuthenticationError, match="not an agent of this protocol"):
        give(client, (stranger * 4)[:8])


def test_more_than_was_wanted_is_the_callers_mistake():
    with pytest.raises(LocalProtocolError):
        AgentHandshake(SECRET, deadline=10.0).receive(bytes(41), 0.0)


def test_keys_of_sessions_are_hidden_apart():
    keys, key = ConnectionKeys(SECRET, b"a" * 32, b"b" * 32), bytes(32)
    hidden = {keys.hide(session, key) for session in range(100)}
    assert len(hidden) == 100 and key not in hidden
    assert ConnectionKeys(SECRET, b"a" * 32, b"c" * 32).hide(0, key) not in hidden, "another connection, another mask"
    with pytest.raises(LocalProtocolError, match="session 5 already has a key"):
        keys.hide(5, b"x" * 32)


@given(
    salt=st.binary(min_size=1, max_size=80),
    secret=st.binary(max_size=80),
    purpose=st.binary(max_size=80),
    length=st.integers(1, 200),
)
def test_keys_are_derived_as_the_library_cryptography_does(salt, secret, purpose, length):
    expected = HKDF(SHA256(), length, salt, purpose).derive(secret)
    assert hkdf_expand(hkdf_extract(salt, secret), purpose, length) == expected

"""Handshake by a shared secret: valid exchanges byte by byte, and invalid proofs."""

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


def deliver(side: ClientHandshake | AgentHandshake, message: bytes, step: int = 1000) -> bytes:
    """Deliver a message, at most `step` bytes at a time, and return the answer."""
    answer = b""
    while message:
        count = min(step, side.expected_bytes)
        assert count, "the message is longer than the other side expects"
        answer += side.receive(message[:count], now=0.0)
        message = message[count:]
    return answer


def shake(client: ClientHandshake, agent: AgentHandshake, step: int = 1000) -> list[bytes]:
    """Run the handshake, and return the messages in the order in which they were sent."""
    messages = [client.opening]
    for side in (agent, client, agent, client):
        messages.append(deliver(side, messages[-1], step))
    assert messages.pop() == b""
    return messages


@given(step=st.integers(1, 50))
def test_handshake_authenticates_both_sides_with_shared_secret(step):
    client, agent = pair()
    messages = shake(client, agent, step)
    assert client.done and agent.done and client.expected_bytes == agent.expected_bytes == 0
    assert [len(message) for message in messages] == [40, 40, 32, 40]
    assert not any(SECRET in message for message in messages)
    key = bytes(range(32))
    assert agent.keys.hide(7, client.keys.hide(7, key)) == key, "both sides have the same keys"


def test_agent_rejects_client_with_wrong_secret():
    client, agent = pair(client_secret=OTHER)
    challenge = deliver(agent, client.opening)
    proof = deliver(client, challenge)
    with pytest.raises(AuthenticationError, match="the secret is not this agent's"):
        deliver(agent, proof)
    assert not agent.done


def test_client_rejects_agent_with_wrong_secret():
    """The agent accepts every client, but cannot prove that it knows the secret."""
    client = ClientHandshake(SECRET, deadline=10.0)
    deliver(client, MAGIC + bytes(32))
    forged = ConnectionKeys(OTHER, client.opening[len(MAGIC) :], bytes(32)).agent_proof
    with pytest.raises(AuthenticationError, match="the agent does not know the secret"):
        deliver(client, MAGIC + forged)
    assert not client.done


def test_agent_rejects_replayed_proof():
    client, agent = pair()
    opening, _, proof, _ = shake(client, agent)
    again = AgentHandshake(SECRET, deadline=10.0)
    deliver(again, opening)
    with pytest.raises(AuthenticationError, match="the secret is not this agent's"):
        deliver(again, proof)


def test_client_rejects_reflection_of_its_own_messages():
    """A listener without the secret that echoes each message does not pass for an agent."""
    client = ClientHandshake(SECRET, deadline=10.0)
    with pytest.raises(AuthenticationError, match="own nonce"):
        deliver(client, client.opening)
    client = ClientHandshake(SECRET, deadline=10.0)
    proof = deliver(client, MAGIC + bytes(32))
    with pytest.raises(AuthenticationError, match="does not know the secret"):
        deliver(client, MAGIC + proof)


@given(message=st.integers(0, 3), place=st.integers(0, 39), bit=st.integers(0, 7))
def test_handshake_fails_if_any_bit_is_flipped(message, place, bit):
    client, agent = pair()

    def sent(number: int, data: bytes) -> bytes:
        if number != message:
            return data
        at = place % len(data)
        return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]

    with pytest.raises(AuthenticationError):
        challenge = deliver(agent, sent(0, client.opening))
        proof = deliver(client, sent(1, challenge))
        confirmation = deliver(agent, sent(2, proof))
        deliver(client, sent(3, confirmation))


@pytest.mark.parametrize("side", [ClientHandshake, AgentHandshake])
def test_handshake_rejects_proof_after_deadline(side):
    handshake = side(SECRET, deadline=10.0)
    handshake.receive(b"", 10.0)
    with pytest.raises(AuthenticationError, match="no proof came in time"):
        handshake.receive(MAGIC, 10.001)


@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.parametrize("step", [1, 7, 1000])
def test_client_reports_reason_of_agents_refusal(after, step):
    client = ClientHandshake(SECRET, deadline=10.0)
    if after:
        deliver(client, MAGIC + bytes(32))
    with pytest.raises(AuthenticationError, match="the agent refuses: too many connections from your host; try again"):
        deliver(client, refusal("too many connections from your host; try again"), step)


def test_reported_refusal_contains_no_control_characters():
    client = ClientHandshake(SECRET, deadline=10.0)
    message = refusal("\x1b[2J")
    deliver(client, message[:8])
    deliver(client, message[8:9])
    with pytest.raises(AuthenticationError) as caught:
        deliver(client, message[9:])
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("foreign", [b"GET / HTTP/1.1\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", bytes(40)])
def test_both_sides_reject_bytes_of_other_protocols(foreign):
    agent = AgentHandshake(SECRET, deadline=10.0)
    with pytest.raises(AuthenticationError, match="requires a proof"):
        deliver(agent, (foreign * 4)[:40])
    client = ClientHandshake(SECRET, deadline=10.0)
    with pytest.raises(AuthenticationError, match="not an agent of this protocol"):
        deliver(client, (foreign * 4)[:8])


def test_handshake_raises_local_error_on_excess_bytes():
    with pytest.raises(LocalProtocolError):
        AgentHandshake(SECRET, deadline=10.0).receive(bytes(41), 0.0)


def test_each_session_and_connection_masks_keys_differently():
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
def test_hkdf_matches_library_cryptography(salt, secret, purpose, length):
    expected = HKDF(SHA256(), length, salt, purpose).derive(secret)
    assert hkdf_expand(hkdf_extract(salt, secret), purpose, length) == expected

"""Mutual proof of knowledge of a shared secret, without sending it. No sockets, no clock.

Theory of operation. The client opens with a fresh nonce; the agent answers with its own nonce; the client then proves
first, so that an unauthenticated client gets no data from which a weak secret could be guessed; the agent proves last.
A proof is HMAC-SHA256 under a key that HKDF (RFC 5869) derives from the secret and both nonces, one key for each
direction: a recorded proof fits no other connection, and a proof cannot be reflected. A third key of this kind hides
session keys on the wire (`ConnectionKeys`).

    client                                   agent
      MAGIC nonce                    ->
                                     <-      MAGIC nonce            (or REFUSED length sentence, now or later)
      proof                          ->
                                     <-      MAGIC proof

A handshake reports how many bytes it needs next and accepts no more, so that later data on the connection stays there.
"""

from __future__ import annotations

import hmac
import secrets
from abc import ABC, abstractmethod
from enum import Enum, auto

from blast_transport.base.errors import AuthenticationError, LocalProtocolError

MAGIC = b"BlastA1\n"
REFUSED = b"BlastNO\n"
WELCOME = MAGIC
"""Confirmation of the agent to a client with an accepted certificate."""
NONCE_BYTES = PROOF_BYTES = 32
MIN_SECRET_BYTES = 32
"""The length of the hash, below which HMAC is weaker (RFC 2104, section 3)."""
MIN_DIFFERENT_BYTES = 8
"""Rejects secrets that were typed instead of drawn, such as a repeated word."""

_HASH = "sha256"
_CLIENT_PROOF, _AGENT_PROOF, _SESSION_KEYS = b"blast client proof", b"blast agent proof", b"blast session keys"
_MAX_SENTENCE_BYTES = 255


def hkdf_extract(salt: bytes, secret: bytes) -> bytes:
    """Extract a uniform key from a secret (RFC 5869, section 2.2)."""
    return hmac.digest(salt, secret, _HASH)


def hkdf_expand(key: bytes, purpose: bytes, length: int) -> bytes:
    """Expand a uniform key to `length` bytes for one purpose (RFC 5869, section 2.3)."""
    made = block = b""
    for number in range(1, -(-length // 32) + 1):
        block = hmac.digest(key, block + purpose + bytes([number]), _HASH)
        made += block
    return made[:length]


def refusal(sentence: str) -> bytes:
    """Return the message by which an agent refuses, in place of its next message."""
    answer = sentence.encode("ascii", "replace")[:_MAX_SENTENCE_BYTES]
    return REFUSED + bytes([len(answer)]) + answer


def answer_length(answer: bytes) -> int:
    """Return the bytes of the WELCOME or refusal with this beginning, as far as they are known."""
    if not answer.startswith(REFUSED):
        return len(WELCOME)
    return len(REFUSED) + 1 + (answer[len(REFUSED)] if len(answer) > len(REFUSED) else 0)


def refusal_read(answer: bytes) -> str:
    """Return the reason in an answer other than WELCOME, in a printable line."""
    if not answer.startswith(REFUSED):
        return "the other side is not an agent of this protocol; check address and credentials"
    sentence = answer[len(REFUSED) + 1 :].decode("ascii", "replace")
    return f"the agent refuses: {sentence if sentence.isprintable() else ascii(sentence)}"


class ConnectionKeys:
    """The keys of one authenticated connection."""

    def __init__(self, secret: bytes, client_nonce: bytes, agent_nonce: bytes) -> None:
        key = hkdf_extract(client_nonce + agent_nonce, secret)
        self.client_proof, self.agent_proof = (
            hmac.digest(hkdf_expand(key, purpose, 32), MAGIC + client_nonce + agent_nonce, _HASH)
            for purpose in (_CLIENT_PROOF, _AGENT_PROOF)
        )
        self._session_keys = hkdf_expand(key, _SESSION_KEYS, 32)
        self._hidden: dict[int, bytes] = {}

    def hide(self, session: int, key: bytes) -> bytes:
        """Mask or unmask the 32-byte key of a session for the wire.

        The mask is specific to this session of this connection. Raise LocalProtocolError for a second key of the same
        session, which would reveal both.
        """
        if self._hidden.setdefault(session, key) != key:
            raise LocalProtocolError(f"session {session} already has a key on this connection")
        mask = hkdf_expand(self._session_keys, session.to_bytes(4, "little"), 32)
        return bytes(one ^ other for one, other in zip(key, mask, strict=True))


class _HandshakeState(Enum):
    FIRST = auto()
    SECOND = auto()
    DONE = auto()


class _Handshake(ABC):
    """Receiver of the handshake's messages, one after the other. `deadline` uses the caller's clock."""

    _first: int
    """Bytes of the other side's first message."""
    _second: int

    def __init__(self, secret: bytes, deadline: float, nonce: bytes | None = None) -> None:
        self.deadline = deadline
        self._secret = secret
        self._nonce = nonce or secrets.token_bytes(NONCE_BYTES)
        self._state = _HandshakeState.FIRST
        self._received = b""
        self._keys: ConnectionKeys | None = None

    @property
    def done(self) -> bool:
        """Return whether both sides are authenticated."""
        return self._state is _HandshakeState.DONE

    @property
    def keys(self) -> ConnectionKeys:
        """Return the keys of this connection, once it is authenticated."""
        assert self._keys is not None and self.done
        return self._keys

    @property
    def expected_bytes(self) -> int:
        """Return the number of bytes that must come next; 0 when it is done."""
        if self.done:
            return 0
        return self._needed() - len(self._received)

    def receive(self, data: bytes, now: float) -> bytes:
        """Accept at most `expected_bytes` bytes and return the answer. Raise AuthenticationError, which ends it."""
        self.check(now)
        if len(data) > self.expected_bytes:
            raise LocalProtocolError("a handshake got more bytes than it needs")
        self._received += data
        if self.expected_bytes:
            return b""
        message, self._received = self._received, b""
        if self._state is _HandshakeState.FIRST:
            self._state = _HandshakeState.SECOND
            return self._take_first(message)
        self._take_second(message)
        self._state = _HandshakeState.DONE
        return self._last_word()

    def check(self, now: float) -> None:
        """Raise AuthenticationError if the time is over."""
        if now > self.deadline:
            raise AuthenticationError("no proof came in time")

    def _needed(self) -> int:
        return self._first if self._state is _HandshakeState.FIRST else self._second

    @abstractmethod
    def _take_first(self, message: bytes) -> bytes: ...

    @abstractmethod
    def _take_second(self, message: bytes) -> None: ...

    def _last_word(self) -> bytes:
        return b""


class AgentHandshake(_Handshake):
    """The side of the agent, which listens first."""

    _first = len(MAGIC) + NONCE_BYTES
    _second = PROOF_BYTES

    def _take_first(self, message: bytes) -> bytes:
        if not message.startswith(MAGIC):
            raise AuthenticationError("this agent requires a proof of its secret first")
        self._keys = ConnectionKeys(self._secret, message[len(MAGIC) :], self._nonce)
        return MAGIC + self._nonce

    def _take_second(self, message: bytes) -> None:
        assert self._keys is not None
        if not hmac.compare_digest(message, self._keys.client_proof):
            raise AuthenticationError("the secret is not this agent's")

    def _last_word(self) -> bytes:
        return MAGIC + self.keys.agent_proof


class ClientHandshake(_Handshake):
    """The side that connects. `opening` is to be sent first."""

    _first = len(MAGIC) + NONCE_BYTES
    _second = len(MAGIC) + PROOF_BYTES

    @property
    def opening(self) -> bytes:
        """Return the first message."""
        return MAGIC + self._nonce

    def _needed(self) -> int:
        # A refusal may stand in the place of any message, and is shorter or longer than that.
        is_welcome = self._received.startswith(MAGIC)
        return super()._needed() if is_welcome else answer_length(self._received)

    def _take_first(self, message: bytes) -> bytes:
        nonce = self._checked(message)
        if nonce == self._nonce:
            raise AuthenticationError("the agent returned the client's own nonce")
        self._keys = ConnectionKeys(self._secret, self._nonce, nonce)
        return self._keys.client_proof

    def _take_second(self, message: bytes) -> None:
        assert self._keys is not None
        if not hmac.compare_digest(self._checked(message), self._keys.agent_proof):
            raise AuthenticationError("the agent does not know the secret")

    def _checked(self, message: bytes) -> bytes:
        if not message.startswith(MAGIC):
            raise AuthenticationError(refusal_read(message))
        return message[len(MAGIC) :]

"""Tokens: secrets that identify a tenant and a role. The controller keeps only their digests.

The digest is plain SHA-256, which suffices because tokens are random: slow hashes protect secrets that can be guessed,
and would let any peer that tries a login consume the controller's time.
"""

from __future__ import annotations

import hashlib
import re
import secrets

from blast_controller.rpc.clients.identity import Identity, Role

ROLES = {role.name.lower(): role for role in Role}
SHORTEST_TOKEN = 32
"""Characters; of a generated token, more than 190 bits."""

_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")


class InvalidTokenError(Exception):
    """The operator's fault: a token, or a line of a token file, that cannot be used. One sentence."""


def new_token() -> str:
    """Generate a token with 256 random bits."""
    return secrets.token_urlsafe(32)


def digest_of(token: str) -> bytes:
    """Return the digest that is kept of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def token_line(token: str, meaning: Identity) -> str:
    """Return the line of a token file for this token. Raises InvalidTokenError."""
    if len(token) < SHORTEST_TOKEN or len(set(token)) < SHORTEST_TOKEN // 4:
        raise InvalidTokenError(
            f"a token must have at least {SHORTEST_TOKEN} random characters: create one with --new FILE."
        )
    line = f"sha256:{digest_of(token).hex()} {meaning.tenant} {meaning.role.name.lower()}"
    parse_tokens(line)
    return line


def parse_tokens(text: str) -> dict[bytes, Identity]:
    """Return the tokens of a file: on each line a digest, a tenant and a role; # begins a comment.

    Raises InvalidTokenError.
    """
    found: dict[bytes, Identity] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        digest, identity = _entry(words, number)
        if digest in found:
            raise InvalidTokenError(f"line {number} has the same token as an earlier line.")
        found[digest] = identity
    return found


def _entry(words: list[str], number: int) -> tuple[bytes, Identity]:
    if len(words) != 3:
        raise InvalidTokenError(f"line {number} must be: sha256:DIGEST TENANT ROLE.")
    digest = _DIGEST.fullmatch(words[0])
    if digest is None:
        raise InvalidTokenError(f"line {number} must begin with sha256: and 64 hexadecimal digits.")
    if not _NAME.fullmatch(words[1]):
        raise InvalidTokenError(f"line {number}: a tenant name has 1 to 64 letters, digits and . _ -.")
    if words[2] not in ROLES:
        raise InvalidTokenError(f"line {number}: the role must be one of {', '.join(ROLES)}.")
    return bytes.fromhex(digest[1]), Identity(words[1], ROLES[words[2]])

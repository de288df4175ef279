"""Encryption of blocks for the optical path, whose datagrams anyone near the splitter could read.

AES-256-GCM (NIST SP 800-38D) of a whole block: the nonce is the number of the block under a key that is created for one
session and sent over the control connection, so that no nonce is used twice. Sending a block again produces the same
bytes; therefore a source must not change while it is sent.
"""

from __future__ import annotations

import secrets

from blast_base.extras import how_to_install
from blast_transport.base.errors import SealError, WrongInputError

KEY_BYTES = 32
TAG_BYTES = 16
_NONCE_BYTES = 12


def new_key() -> bytes:
    """Return a new key for one session."""
    return secrets.token_bytes(KEY_BYTES)


class Sealer:
    """Encryption of one session's blocks. Raises WrongInputError if `cryptography` is not installed."""

    def __init__(self, key: bytes) -> None:
        try:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError:
            raise WrongInputError(
                f"sealed light needs the Python package cryptography: {how_to_install('sealed')}"
            ) from None
        self._cipher = AESGCM(key)

    def seal(self, block: int, plain: bytes | bytearray | memoryview) -> bytes:
        """Encrypt a block; its tag follows it."""
        return bytes(self._cipher.encrypt(block.to_bytes(_NONCE_BYTES, "big"), plain, None))

    def open(self, block: int, sealed: bytes | bytearray | memoryview) -> bytes:
        """Decrypt a block. Raise SealError if it was changed."""
        from cryptography.exceptions import InvalidTag

        try:
            return bytes(self._cipher.decrypt(block.to_bytes(_NONCE_BYTES, "big"), sealed, None))
        except InvalidTag:
            raise SealError(f"block {block} is not what the sender sealed") from None

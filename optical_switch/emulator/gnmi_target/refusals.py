"""The error with which an RPC is refused: a canonical code of gRPC and a text for the operator."""

from __future__ import annotations

import grpc


class RpcRefusalError(Exception):
    """A refused RPC.

    Parameters
    ----------
    code : grpc.StatusCode
        Canonical code.
    text : str
        Explanation; text of the client in it must be limited (`printable`), since gRPC sends it in a header.
    """

    def __init__(self, code: grpc.StatusCode, text: str) -> None:
        self.code = code
        self.text = text
        super().__init__(text)


class UnknownNodeError(RpcRefusalError):
    """A path with a node that the model does not have."""

    def __init__(self, text: str) -> None:
        super().__init__(grpc.StatusCode.INVALID_ARGUMENT, text)


def invalid(text: str) -> RpcRefusalError:
    """Return the refusal of a request that violates gNMI or the model."""
    return RpcRefusalError(grpc.StatusCode.INVALID_ARGUMENT, text)


def unsupported(text: str) -> RpcRefusalError:
    """Return the refusal of what gNMI defines and this target does not implement."""
    return RpcRefusalError(grpc.StatusCode.UNIMPLEMENTED, text)


def not_found(text: str) -> RpcRefusalError:
    """Return the refusal of a path that does not exist."""
    return RpcRefusalError(grpc.StatusCode.NOT_FOUND, text)


def exhausted(text: str) -> RpcRefusalError:
    """Return the refusal of a request beyond a limit."""
    return RpcRefusalError(grpc.StatusCode.RESOURCE_EXHAUSTED, text)

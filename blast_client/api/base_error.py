"""Base classes of exceptions, in a module that does not import Thrift."""


class BlastError(Exception):
    """Base class of all exceptions of a client; the text states the failure, its reason and the next step."""


class InvalidArgumentError(BlastError, ValueError):
    """An argument is invalid; no call was made."""

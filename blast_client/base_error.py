"""The root of what a client raises, apart from the rest, so that an address is read without loading Thrift."""


class BlastError(Exception):
    """Whatever a client raises; its text is a sentence that says what is wrong and what to do about it."""


class WrongArgument(BlastError, ValueError):
    """What the caller gave cannot be sent: the caller's mistake, and nothing was asked of the controller."""

"""Clients of the controller for applications, and the `blast` command.

Names are imported on first access, so that `blast --version` does not import Thrift.
"""

TYPE_CHECKING = False
"""True for type checkers. Importing `typing` takes as long as the rest of `blast --version`."""

if TYPE_CHECKING:
    from blast_client.public import *  # noqa: F403 - the same names


_FUNCTIONS = (
    "agent_certificates",
    "agent_secret",
    "async_broadcast",
    "async_receive",
    "broadcast",
    "receive",
    "settings_of_environment",
)


def __getattr__(name: str) -> object:
    # Other lower-case names are submodules.
    if name == "__all__" or name[:1].isupper() or name in _FUNCTIONS:
        from blast_client import public

        return getattr(public, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    from blast_client import public

    return sorted({*globals(), *public.__all__})

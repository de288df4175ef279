"""What an application imports: clients of the controller, and the `blast` command.

Names are loaded when they are first asked for: `blast --version` needs none of them, and must not wait for Thrift.
"""

TYPE_CHECKING = False
"""True for type checkers. The module `typing` takes as long to load as the rest of `blast --version`."""

if TYPE_CHECKING:
    from blast_client.public import *  # noqa: F403 - these very names


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
    # Other names in lower case are those of modules, which are imported as such.
    if name == "__all__" or name[:1].isupper() or name in _FUNCTIONS:
        from blast_client import public

        return getattr(public, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    from blast_client import public

    return sorted({*globals(), *public.__all__})

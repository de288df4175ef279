"""Entry point of `blast`: Ctrl-C ends the process silently even during its imports. It imports no heavy module."""

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sys import UnraisableHookArgs

INTERRUPTED = 130


def main() -> int:
    """Run `blast` and return the exit status."""
    sys.unraisablehook = _interrupt_again
    # Garbage collection during imports takes a sixth of the start time of a controller.
    gc.disable()
    try:
        from blast_client.cli.command import main as run

        return run(loaded=_keep_loaded)
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        # Python would search all loaded objects for garbage before it exits, which takes a fifth of a short command.
        gc.freeze()


def _keep_loaded() -> None:
    """Exclude the loaded objects, which stay until the end, from garbage collection."""
    gc.freeze()
    gc.enable()


def _interrupt_again(lost: "UnraisableHookArgs") -> None:
    """Raise an interrupt again that Python dropped, since it was raised in a finalizer."""
    if issubclass(lost.exc_type, KeyboardInterrupt):
        from _thread import start_new_thread

        # An immediate signal would be raised in this hook and dropped as well.
        start_new_thread(_interrupt_soon, ())
    else:
        sys.__unraisablehook__(lost)


def _interrupt_soon() -> None:
    from signal import SIGINT
    from time import sleep

    sleep(0.01)
    os.kill(os.getpid(), SIGINT)


if __name__ == "__main__":
    sys.exit(main())

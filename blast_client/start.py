"""Where `blast` starts: Ctrl-C ends it without a word from its first import on. It loads nothing by itself."""

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
    # To look for garbage among what is loaded takes a sixth of the time in which a controller starts.
    gc.disable()
    try:
        from blast_client.command import main as run

        return run(loaded=_keep_loaded)
    except KeyboardInterrupt:
        return INTERRUPTED


def _keep_loaded() -> None:
    """What there is now stays to the end: garbage is looked for among what comes."""
    gc.freeze()
    gc.enable()


def _interrupt_again(lost: "UnraisableHookArgs") -> None:
    """Python prints and drops what is raised while it tidies up; an interrupt must be heard all the same."""
    if issubclass(lost.exc_type, KeyboardInterrupt):
        from _thread import start_new_thread

        # At once, it would strike in here, and be dropped as well.
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

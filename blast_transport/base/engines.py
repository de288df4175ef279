"""Choice of the engine that verifies, stores and forwards data: Python, or the compiled one if it is installed.

Both have identical results; the compiled one, a distribution of its own (blast_engine/), needs less time. An engine
requested by name is used or rejected; `auto` uses the compiled one if it is installed and fits.
"""

from __future__ import annotations

import functools
import importlib
from types import ModuleType

from blast_transport.base.errors import EngineError, WrongInputError

AUTO, PYTHON, COMPILED = "auto", "python", "compiled"
ENGINES = (AUTO, PYTHON, COMPILED)

_MODULE = "blast_engine_native"
_INTERFACE = 8
"""Version of the compiled interface that this code uses, as in blast_engine/src/lib.rs."""
_BUILD = "install the package blast-engine, or the wheel that scripts/build-engine makes in a checkout of Blast"


def check_engine(name: str) -> str:
    """Return the engine of this name. Raise WrongInputError if it does not exist, or cannot be used here."""
    if name not in ENGINES:
        raise WrongInputError(f"there is no engine {name!r}; choose one of {', '.join(ENGINES)}")
    if name == COMPILED and (reason := lacking()):
        raise WrongInputError(f"{reason}, or choose the engine {PYTHON}")
    return name


def compiled(name: str) -> ModuleType | None:
    """Return the compiled module if this engine is or may be compiled. Raise WrongInputError as `check_engine` does."""
    if check_engine(name) == PYTHON or lacking():
        return None
    found = _found()
    assert isinstance(found, ModuleType)
    return found


def lacking() -> str:
    """Return why the compiled engine cannot be used here, and the remedy, as a sentence; empty if it can."""
    found = _found()
    return found if isinstance(found, str) else ""


def engines_here() -> str:
    """Return the engines of this installation, for messages.

    >>> engines_here().startswith("python")
    True
    """
    found = _found()
    if isinstance(found, ModuleType):
        return f"{PYTHON}, {COMPILED} {found.VERSION}"
    return f"{PYTHON}; {found}"


def engine_error(fault: Exception) -> EngineError:
    """Return the error that reports an internal fault of the compiled engine."""
    return EngineError(f"the compiled engine failed ({fault}); choose the engine {PYTHON}, and report this")


@functools.cache
def _found() -> ModuleType | str:
    return examined(_MODULE)


def examined(module: str) -> ModuleType | str:
    """Return the compiled engine in this module, or why it cannot be used."""
    try:
        native = importlib.import_module(module)
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name == module:
            return f"the compiled engine is not installed: {_BUILD}"
        return f"the compiled engine cannot be loaded ({error}): {_BUILD}"
    interface = getattr(native, "INTERFACE", None)
    if interface != _INTERFACE:
        return (
            f"the compiled engine has interface {interface}, where this version of Blast needs {_INTERFACE}: {_BUILD}"
        )
    return native

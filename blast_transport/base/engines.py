"""Which engine proves, stores and passes on data: Python, which runs everywhere, or what is compiled, if that is there.

Both do the same to the last byte; the compiled one, a distribution of its own (blast_engine/), costs less. Who asks
for it by name gets it or a refusal; `auto` takes it where it is there and fits.
"""

from __future__ import annotations

import functools
import importlib
from types import ModuleType

from blast_transport.base.errors import EngineError, WrongInputError

AUTO, PYTHON, COMPILED = "auto", "python", "compiled"
ENGINES = (AUTO, PYTHON, COMPILED)

_MODULE = "blast_engine_native"
_INTERFACE = 5
"""The calls that we know, as blast_engine/src/lib.rs numbers them."""
_BUILD = "install the package blast-engine, or the wheel that scripts/build-engine makes in a checkout of Blast"


def check_engine(name: str) -> str:
    """The engine of this name. Raises WrongInputError if there is none, or it cannot be used here."""
    if name not in ENGINES:
        raise WrongInputError(f"there is no engine {name!r}; choose one of {', '.join(ENGINES)}")
    if name == COMPILED and (reason := lacking()):
        raise WrongInputError(f"{reason}, or choose the engine {PYTHON}")
    return name


def compiled(name: str) -> ModuleType | None:
    """What is compiled, if this engine is that or may be. Raises WrongInputError as `check_engine`."""
    if check_engine(name) == PYTHON or lacking():
        return None
    found = _found()
    assert isinstance(found, ModuleType)
    return found


def lacking() -> str:
    """Why the compiled engine cannot be used here, and what to do, as a sentence; empty if it can."""
    found = _found()
    return found if isinstance(found, str) else ""


def engines_here() -> str:
    """The engines of this installation, for people.

    >>> engines_here().startswith("python")
    True
    """
    found = _found()
    if isinstance(found, ModuleType):
        return f"{PYTHON}, {COMPILED} {found.VERSION}"
    return f"{PYTHON}; {found}"


def engine_error(fault: Exception) -> EngineError:
    """What to tell of a fault of the compiled engine's own."""
    return EngineError(f"the compiled engine failed ({fault}); choose the engine {PYTHON}, and report this")


@functools.cache
def _found() -> ModuleType | str:
    return examined(_MODULE)


def examined(module: str) -> ModuleType | str:
    """The compiled engine in this module, or why it cannot be used."""
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

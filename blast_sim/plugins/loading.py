"""Finds plug-ins by name, checks them, and records them in the provenance of results."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Literal

from algorithms.scheduling import POLICIES
from algorithms.scheduling.policy import Policy
from blast_sim.base.plugin_source import NoSourceError, object_digest, source_digest
from blast_sim.base.provenance import Plugin
from blast_sim.base.wrong_input import InputError, PluginFailedError, shown
from blast_sim.methods import METHODS
from blast_sim.methods.method import Method, Phased, World
from blast_sim.plugins.checking import CheckedPhases, CheckedPolicy
from blast_sim.plugins.interface import INTERFACE_VERSION, MethodClass, MethodFunction

Kind = Literal["policy", "method"]
GROUPS: dict[Kind, str] = {"policy": "blast.policies", "method": "blast.methods"}


class PluginError(InputError):
    """The plug-in cannot be used."""


class PluginMissingError(PluginError):
    """There is no such module or entry point, or a module that the plug-in imports is not installed."""


class PluginAttributeError(PluginError):
    """The module has no such attribute."""


class PluginTypeError(PluginError):
    """The attribute is not of the requested kind: a policy or a method."""


class PluginVersionError(PluginError):
    """The plug-in was written for another version of the interface, or declares none."""


class PluginChangedError(PluginError):
    """The plug-in differs from the one that the command loaded, or that a result records."""


@dataclass(frozen=True, slots=True)
class _Loaded:
    attribute: object
    module: str
    sha256: str


def is_plugin(kind: Kind, name: str) -> bool:
    """Return whether this is the name of a plug-in, and not of a built-in policy or method."""
    return name not in (POLICIES if kind == "policy" else METHODS) and (":" in name or bool(_declared(kind, name)))


def require_plugin(kind: Kind, name: str) -> None:
    """Load a plug-in, and check that it can be used.

    Parameters
    ----------
    kind : {"policy", "method"}
        Kind of the plug-in.
    name : str
        `module:attribute`, or the name of an entry point.

    Raises
    ------
    PluginError
        If there is no such plug-in, or it cannot be used.
    NoSourceError
        If the plug-in's source is in no file, as a notebook's cells are.
    PluginFailedError
        If the plug-in's own code raises an exception.
    """
    if kind == "policy":
        policy_named(name)
    else:
        _checked_method(name)


def policy_named(name: str) -> Policy:
    """Return the policy of a name; add a plug-in to `POLICIES`.

    Parameters
    ----------
    name : str
        Key of `POLICIES`, `module:attribute`, or the name of an entry point.

    Returns
    -------
    Policy
        A plug-in is checked at every call.

    Raises
    ------
    PluginTypeError
        If the plug-in is not a policy.
    PluginError
        If there is no such plug-in, or it cannot be used for another reason.
    NoSourceError
        If the plug-in's source is in no file, as a notebook's cells are.
    PluginFailedError
        If the plug-in's own code raises an exception.
    """
    if name not in POLICIES:
        found = _found("policy", name)
        if not (isinstance(found.attribute, type) and issubclass(found.attribute, Policy)):
            raise PluginTypeError(f"{shown(name)} is not a policy: it must be a subclass of blast_sim.plugins.Policy")
        with blamed([Plugin("policy", name, found.sha256)]):
            POLICIES[name] = CheckedPolicy(name, found.attribute())
    return POLICIES[name]


def method_named(name: str, world: World) -> Method:
    """Return the method of a plug-in's name for a world.

    Parameters
    ----------
    name : str
        `module:attribute`, or the name of an entry point.
    world : World
        The world of the run.

    Returns
    -------
    Method
        The phases of a `MethodFunction` are checked at every call.

    Raises
    ------
    PluginError
        If there is no such plug-in, or it cannot be used.
    NoSourceError
        If the plug-in's source is in no file, as a notebook's cells are.
    PluginFailedError
        If the plug-in's module raises an exception when it is imported.
    """
    attribute = _checked_method(name)
    if isinstance(attribute, type):
        made: Method = attribute(world)
        return made
    return Phased(world, CheckedPhases(name, attribute))


def plugins_of(policy: str = "", method: str = "") -> tuple[Plugin, ...]:
    """Return the loaded plug-ins among a policy and a method, with the digests of their sources.

    A policy that a program added to `POLICIES` itself counts as a plug-in if its class is not Blast's own; its digest
    is empty if its source is not in a file.

    Parameters
    ----------
    policy, method : str, optional
        Names, empty for none.

    Returns
    -------
    tuple of Plugin
        The method first; built-in ones are left out.

    Raises
    ------
    PluginError
        If there is no such plug-in, or it cannot be used.
    NoSourceError
        If the source of a named plug-in is in no file, as a notebook's cells are.
    PluginFailedError
        If the plug-in's own code raises an exception.
    """
    found: list[Plugin] = []
    if is_plugin("method", method):
        require_plugin("method", method)
        found.append(Plugin("method", method, _found("method", method).sha256))
    if policy:
        # From now on the policy is in POLICIES.
        known = policy_named(policy)
        if isinstance(known, CheckedPolicy):
            found.append(Plugin("policy", policy, _found("policy", policy).sha256))
        else:
            digest = _digest_of(known)
            found += [] if digest is None else [Plugin("policy", policy, digest)]
    return tuple(found)


def require_plugins_here(plugins: Sequence[Plugin]) -> None:
    """Load the command's plug-ins on a worker.

    Parameters
    ----------
    plugins : sequence of Plugin
        The plug-ins as the command loaded them.

    Raises
    ------
    PluginMissingError
        If the worker lacks a plug-in.
    PluginChangedError
        If a plug-in of the worker has another source.
    PluginError
        If a plug-in cannot be used for another reason.
    NoSourceError
        If the source of a named plug-in is in no file, as a notebook's cells are.
    PluginFailedError
        If a plug-in's own code raises an exception.
    """
    for one in plugins:
        kind: Kind = "policy" if one.kind == "policy" else "method"
        try:
            here = plugins_of(**{kind: one.name})
        except PluginMissingError as error:
            raise PluginMissingError(f"a worker lacks a plug-in of the command: {error}") from None
        if one not in here:
            raise PluginChangedError(
                f"the {kind} {shown(one.name)} of this worker differs from that of the command: "
                "install the same version and restart the worker"
            )


@contextmanager
def blamed(plugins: Sequence[Plugin]) -> Iterator[None]:
    """Turn an exception from a plug-in's own code into PluginFailedError, which names the plug-in.

    Parameters
    ----------
    plugins : sequence of Plugin
        The plug-ins whose code may run in the context.

    Yields
    ------
    None

    Raises
    ------
    PluginFailedError
        If a frame of the exception lies in the source of a plug-in. InputError and other exceptions pass unchanged.
    """
    try:
        yield
    except (PluginFailedError, InputError):
        raise
    except Exception as error:
        for one in plugins:
            folder = _folder_of(one)
            frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_in(frame.filename, folder)]
            if frames:
                raise _failure(one.kind, one.name, frames[-1], error) from error
        raise


def _failure(kind: str, name: str, frame: traceback.FrameSummary, error: Exception) -> PluginFailedError:
    place = f"{Path(frame.filename).name}, line {frame.lineno}, in {frame.name}"
    return PluginFailedError(
        f"the {kind} {name} raised {type(error).__name__} ({place}): {error}. This is an error of the plug-in, "
        "not of Blast: correct it there"
    )


def _folder_of(plugin: Plugin) -> Path | None:
    """Return the file of a single-file plug-in, or the folder of a package."""
    if ":" not in plugin.name and not _declared("policy" if plugin.kind == "policy" else "method", plugin.name):
        module = type(POLICIES[plugin.name]).__module__ if plugin.name in POLICIES else ""
    else:
        module = _place("policy" if plugin.kind == "policy" else "method", plugin.name)[0]
    file = getattr(sys.modules.get(module.partition(".")[0]), "__file__", None)
    if file is None:
        file = getattr(sys.modules.get(module), "__file__", None)
    if file is None:
        return None
    return Path(file).parent if Path(file).name == "__init__.py" else Path(file)


def _is_in(file: str, folder: Path | None) -> bool:
    return folder is not None and (Path(file) == folder or folder in Path(file).parents)


def _digest_of(policy: Policy) -> str | None:
    try:
        return object_digest(policy)
    except NoSourceError:
        return ""


# ------------------------------------------------------------------------------------------------------- finding


def _checked_method(name: str) -> MethodFunction | type[MethodClass]:
    attribute: Any = _found("method", name).attribute
    fits = callable(getattr(attribute, "send", None)) if isinstance(attribute, type) else callable(attribute)
    if not fits:
        raise PluginTypeError(
            f"{shown(name)} is not a method: it must be a function (world, multicast) that returns phases, or a class "
            "with send(multicast, done), as blast_sim/plugins/interface.py describes them"
        )
    found: MethodFunction | type[MethodClass] = attribute
    return found


@cache
def _found(kind: Kind, name: str) -> _Loaded:
    """Import the plug-in of this name; return it with the digest of its source at import time.

    Raises
    ------
    PluginMissingError
        If there is no such module or entry point, or a module that the plug-in imports is not installed.
    PluginAttributeError
        If the module has no such attribute.
    PluginVersionError
        If the plug-in is written for another interface, or states none.
    PluginFailedError
        If the module raises another exception.
    NoSourceError
        If the module is in no file, as a notebook's cells are.
    """
    module_name, path = _place(kind, name)
    module = _imported(kind, name, module_name)
    attribute: object = module
    for step in path.split("."):
        if not hasattr(attribute, step):
            raise PluginAttributeError(f"the module {module_name} of the {kind} {shown(name)} has no {shown(path)}")
        attribute = getattr(attribute, step)
    stated = getattr(attribute, "interface", getattr(module, "interface", None))
    if stated != INTERFACE_VERSION:
        states = "states no interface" if stated is None else f"is written for the interface {shown(stated)}"
        raise PluginVersionError(
            f"the {kind} {shown(name)} {states}, and this version of Blast has {INTERFACE_VERSION}: adapt it "
            f"to blast_sim/plugins/interface.py, then set `interface = {INTERFACE_VERSION}` in it"
        )
    return _Loaded(attribute, module_name, source_digest(module_name))


def _place(kind: Kind, name: str) -> tuple[str, str]:
    """Return the module and the attribute of a name.

    Raises
    ------
    PluginMissingError
        If the name is neither `module:attribute` nor an entry point.
    """
    declared = _declared(kind, name)
    if declared:
        return declared[0].module, declared[0].attr
    module, colon, path = name.partition(":")
    if not colon or not module or not path:
        raise PluginMissingError(
            f"there is no {kind} {shown(name)}: use a built-in one, module:attribute, or an entry point of the "
            f"group {GROUPS[kind]} of an installed package"
        )
    return module, path


def _declared(kind: Kind, name: str) -> tuple[EntryPoint, ...]:
    return () if not name or ":" in name else tuple(entry_points(group=GROUPS[kind], name=name))


def _imported(kind: Kind, name: str, module: str) -> object:
    here = str(Path.cwd())
    if here not in sys.path:
        # Last, so that no file there shadows a library.
        sys.path.append(here)
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and (module == error.name or module.startswith(f"{error.name}.")):
            raise PluginMissingError(
                f"the module {module} of the {kind} {shown(name)} is not installed here: install it, or name its "
                "folder in PYTHONPATH"
            ) from None
        raise PluginMissingError(f"the {kind} {shown(name)} needs the module {error.name}: install it") from None
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        raise _failure(kind, name, frame, error) from error

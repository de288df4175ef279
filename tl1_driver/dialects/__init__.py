"""The vendor dialects of optical switches: one module per dialect, found here by name.

Start with `base.py`, what every dialect provides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from optical_switch.errors import InvalidDriverSettingError
from tl1_driver.dialects.base import Dialect
from tl1_driver.dialects.calient import Calient
from tl1_driver.dialects.glimmerglass import Glimmerglass
from tl1_driver.dialects.polatis import Polatis

DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect
    for dialect in (
        Glimmerglass(),
        Calient(),
        Polatis(),
        Polatis(name="polatis-output-first", output_first=True, quoted_tid=True),
    )
}
"""All dialects of this package, by the name used in configurations."""

__all__ = ["DIALECTS", "Calient", "Dialect", "Glimmerglass", "Polatis", "configured"]


def configured(name: str, settings: Mapping[str, object]) -> Dialect:
    """Return a dialect with the settings of a configuration.

    Parameters
    ----------
    name : str
        Name of the dialect, a key of `DIALECTS`.
    settings : Mapping[str, object]
        Settings by name, such as Calient's `names` and `group`. A list is accepted for a tuple.

    Returns
    -------
    Dialect
        A copy of the dialect with these settings.

    Raises
    ------
    InvalidDriverSettingError
        If there is no such dialect or setting, or if a value has the wrong type.
    """
    if name not in DIALECTS:
        raise InvalidDriverSettingError(f"there is no dialect {name}: use one of {', '.join(DIALECTS)}")
    dialect = DIALECTS[name]
    known = {field.name: getattr(dialect, field.name) for field in fields(dialect) if field.name not in _FIXED}
    changes: dict[str, Any] = {}
    for setting, value in settings.items():
        value = tuple(value) if isinstance(value, list) else value  # noqa: PLW2901
        if setting not in known:
            raise InvalidDriverSettingError(
                f"dialect {name} has no setting {setting}: use one of {', '.join(sorted(known))}"
            )
        if not _fits(value, known[setting]):
            raise InvalidDriverSettingError(f"{setting} of dialect {name} is not {value!r}")
        changes[setting] = value
    return replace(dialect, **changes)


_FIXED = ("name", "port", "wire", "deadlines", "light_check", "confirms")
"""Fields of a dialect that are not settings: the configuration has them elsewhere, or not at all."""


def _fits(value: object, default: object) -> bool:
    if isinstance(default, tuple):
        return isinstance(value, tuple) and all(isinstance(item, str) for item in value)
    if isinstance(default, float):
        return type(value) in (int, float)
    return type(value) is type(default)

"""Immutable records of named fields, whose classes are fast to define.

Python compiles the methods of each frozen dataclass when a program starts, which takes 0.2 ms or more for a class: a
third of the time in which a command with a hundred of them sends a small file. Classes of `FrozenRecord` share their
methods. A named tuple is as fast, but equals every tuple with the same values, and is false without fields.
"""

from __future__ import annotations

from collections.abc import Set
from typing import NoReturn, Self, dataclass_transform


class _RecordType(type):
    """Class of record classes: turns annotations into slots, which have to exist when a class is made."""

    __match_args__: tuple[str, ...]
    _defaults: dict[str, object]

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, object]) -> _RecordType:
        annotations = namespace.get("__annotations__")
        fields = tuple(annotations) if isinstance(annotations, dict) else ()
        defaults = {field: namespace.pop(field) for field in fields if field in namespace}
        namespace |= {"__slots__": fields, "__match_args__": fields, "_defaults": defaults}
        return super().__new__(cls, name, bases, namespace)


@dataclass_transform(frozen_default=True)
class FrozenRecord(metaclass=_RecordType):
    """Record with the annotated fields of its class, as a dataclass that is frozen and has slots.

    It is equal to records of the same class with the same values. A class has no subclasses.
    """

    def __init__(self, *values: object, **named: object) -> None:
        kind, fields = type(self), type(self).__match_args__
        given = {**kind._defaults, **dict(zip(fields, values, strict=False)), **named}
        twice = not named.keys().isdisjoint(fields[: len(values)])
        if len(values) > len(fields) or twice or given.keys() != {*fields}:
            raise TypeError(f"{kind.__name__} has the fields {fields}, but got {values} and {named}")
        for field, value in given.items():
            object.__setattr__(self, field, value)
        self.__post_init__()

    def __post_init__(self) -> None:
        """Check the values."""

    def as_dict(self) -> dict[str, object]:
        """Return the values by field."""
        return dict(zip(type(self).__match_args__, self._values(), strict=True))

    def replace(self, **changes: object) -> Self:
        """Return a record with these values, and the others of this one."""
        return type(self)(**{**self.as_dict(), **changes})

    @classmethod
    def optional(cls) -> Set[str]:
        """Return the fields with a default."""
        return cls._defaults.keys()

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash((type(self), self._values()))

    def __repr__(self) -> str:
        fields = zip(type(self).__match_args__, self._values(), strict=True)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in fields)})"

    def _values(self) -> tuple[object, ...]:
        return tuple(getattr(self, field) for field in type(self).__match_args__)

"""A disk under SQLite that fails on order and remembers what was written and what was synced.

A VFS (SQLite's layer of files) in front of the default one, made with ctypes from the library that Python's own
sqlite3 uses; while it is installed every new connection goes through it.
"""

from __future__ import annotations

import _sqlite3
import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

SECTOR = 512

_OPEN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
_DELETE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int)
_WRITE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int64)
_TRUNCATE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int64)
_SYNC = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)


class _Vfs(ctypes.Structure):
    _fields_ = (
        [("version", ctypes.c_int), ("file_size", ctypes.c_int), ("longest_path", ctypes.c_int)]
        + [("next", ctypes.c_void_p), ("name", ctypes.c_char_p), ("data", ctypes.c_void_p)]
        + [("open", ctypes.c_void_p), ("delete", ctypes.c_void_p)]
        + [(f"other{n}", ctypes.c_void_p) for n in range(14)]
    )


class _Methods(ctypes.Structure):
    _fields_ = (
        [("version", ctypes.c_int), ("close", ctypes.c_void_p), ("read", ctypes.c_void_p)]
        + [("write", ctypes.c_void_p), ("truncate", ctypes.c_void_p), ("sync", ctypes.c_void_p)]
        + [(f"other{n}", ctypes.c_void_p) for n in range(13)]
    )


@dataclass(frozen=True)
class Operation:
    """Something that reached a file: "write", "truncate", "sync", "delete"; "mark" is the test's own."""

    kind: str
    file: str
    offset: int = 0
    data: bytes = b""


class Disk:
    """Install with `with`. `fault` is asked before each operation; what it returns but 0 is SQLite's error code."""

    def __init__(self, fault: Callable[[str, str], int] = lambda kind, file: 0) -> None:
        self.fault = fault
        self.operations: list[Operation] = []
        self._paths: dict[int, str] = {}
        self._patched: dict[int, _Methods] = {}
        self._original: dict[int, _Methods] = {}
        self._keep: list[object] = []
        self._library = ctypes.CDLL(_sqlite3.__file__)
        self._library.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
        self._default = self._library.sqlite3_vfs_find(None).contents
        self._vfs = _Vfs.from_buffer_copy(self._default)
        self._vfs.name, self._vfs.next = f"disk-{id(self)}".encode(), None
        self._vfs.open, self._vfs.delete = self._pointer(_OPEN(self._open)), self._pointer(_DELETE(self._delete))

    def __enter__(self) -> Disk:
        assert self._library.sqlite3_vfs_register(ctypes.byref(self._vfs), 1) == 0
        return self

    def __exit__(self, *_: object) -> None:
        assert self._library.sqlite3_vfs_unregister(ctypes.byref(self._vfs)) == 0

    def mark(self, text: str) -> None:
        self.operations.append(Operation("mark", text))

    def _pointer(self, function: object) -> int:
        self._keep.append(function)
        return ctypes.cast(function, ctypes.c_void_p).value

    def _open(self, vfs: int, name: int, file: int, flags: int, out: int) -> int:
        code = _OPEN(self._default.open)(vfs, name, file, flags, out)
        methods = ctypes.c_void_p.from_address(file)
        if code == 0 and methods.value:
            self._paths[file] = Path(ctypes.string_at(name).decode()).name if name else "temporary"
            methods.value = ctypes.addressof(self._patch(methods.value))
        return code

    def _patch(self, methods: int) -> _Methods:
        if methods not in self._patched:
            original = _Methods.from_address(methods)
            patched = _Methods.from_buffer_copy(original)
            patched.write = self._pointer(_WRITE(self._write(_WRITE(original.write))))
            patched.truncate = self._pointer(_TRUNCATE(self._truncate(_TRUNCATE(original.truncate))))
            patched.sync = self._pointer(_SYNC(self._sync(_SYNC(original.sync))))
            self._patched[methods] = patched
        return self._patched[methods]

    def _write(self, original: Callable[..., int]) -> Callable[..., int]:
        def write(file: int, data: int, size: int, offset: int) -> int:
            operation = Operation("write", self._paths[file], offset, ctypes.string_at(data, size))
            return self._do(operation, lambda: original(file, data, size, offset))

        return write

    def _truncate(self, original: Callable[..., int]) -> Callable[..., int]:
        return lambda file, size: self._do(Operation("truncate", self._paths[file], size), lambda: original(file, size))

    def _sync(self, original: Callable[..., int]) -> Callable[..., int]:
        return lambda file, flags: self._do(Operation("sync", self._paths[file]), lambda: original(file, flags))

    def _delete(self, vfs: int, name: bytes, sync: int) -> int:
        operation = Operation("delete", Path(name.decode()).name)
        return self._do(operation, lambda: _DELETE(self._default.delete)(vfs, name, sync))

    def _do(self, operation: Operation, act: Callable[[], int]) -> int:
        code = self.fault(operation.kind, operation.file) or act()
        if code == 0:
            self.operations.append(operation)
        return code


def after_power_cut(files: dict[str, bytes], operations: list[Operation], random: Random) -> dict[str, bytes]:
    """The files after these operations and a power cut: of what was not synced, any part may be there, torn too."""
    durable = {name: bytearray(content) for name, content in files.items()}
    pending: dict[str, list[Operation]] = {}
    for operation in operations:
        match operation.kind:
            case "write" | "truncate":
                pending.setdefault(operation.file, []).append(operation)
            case "sync":
                for waiting in pending.pop(operation.file, ()):
                    _apply(durable, waiting)
            case "delete":
                durable.pop(operation.file, None)
                pending.pop(operation.file, None)
    for waiting in pending.values():
        for operation in waiting:
            if operation.kind == "truncate" and random.random() < 0.5:
                _apply(durable, operation)
            elif operation.kind == "write":
                _apply_torn(durable, operation, random)
    return {name: bytes(content) for name, content in durable.items()}


def _apply(durable: dict[str, bytearray], operation: Operation) -> None:
    content = durable.setdefault(operation.file, bytearray())
    end = operation.offset + len(operation.data)
    content.extend(bytes(max(0, end - len(content))))
    if operation.kind == "truncate":
        del content[operation.offset :]
    else:
        content[operation.offset : end] = operation.data


def _apply_torn(durable: dict[str, bytearray], operation: Operation, random: Random) -> None:
    fate = random.choice(("all", "nothing", "torn"))
    for start in range(0, len(operation.data), SECTOR):
        if fate == "all" or (fate == "torn" and random.random() < 0.5):
            piece = operation.data[start : start + SECTOR]
            _apply(durable, Operation("write", operation.file, operation.offset + start, piece))

"""NumPy arrays as .npy files (NumPy's format, NEP 1): a header, and the bytes of the array in memory order."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from tokenize import TokenError
from typing import TYPE_CHECKING

from blast_base.extras import require
from blast_client.api.base_error import InvalidArgumentError
from blast_client.objects.not_readable import UnreadableObjectError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LENGTH = struct.Struct("<I")
_ALIGNMENT = 64
_MAGIC = b"\x93NUMPY"
_LONGEST_HEADER = 1 << 20
_BROKEN = (
    ArithmeticError,
    EOFError,
    LookupError,
    MemoryError,
    RecursionError,
    SyntaxError,
    TokenError,
    TypeError,
    ValueError,
)
"""Exceptions of NumPy for an invalid header: it evaluates the header as a Python literal, and retries on failure."""


def array_pieces(array: NDArray[np.generic]) -> list[memoryview]:
    """Return the file of an array in pieces. Raises InvalidArgumentError for Python objects and masked arrays."""
    import numpy as np

    if array.dtype.hasobject:
        raise InvalidArgumentError(
            f"an array of {array.dtype} holds Python objects: send a numeric array, or pickle it"
        )
    if isinstance(array, np.ma.MaskedArray):
        raise InvalidArgumentError("a masked array is two arrays: send {'data': a.data, 'mask': a.mask}")
    # A numpy.matrix cannot become one-dimensional.
    array = np.asarray(array)
    array = array if array.flags.c_contiguous or array.flags.f_contiguous else np.ascontiguousarray(array)
    header = _header(array)
    if len(header) > _LONGEST_HEADER:
        raise InvalidArgumentError(
            f"the names of {array.dtype.names and len(array.dtype.names)} fields exceed {_LONGEST_HEADER} bytes: "
            "shorten them"
        )
    return [memoryview(header), bytes_of(array)]


def bytes_of(array: NDArray[np.generic]) -> memoryview:
    """Return the bytes of a contiguous array in memory order."""
    import numpy as np

    if not array.nbytes:
        return memoryview(b"")
    # Some types, such as dates, do not support the buffer protocol.
    return memoryview(array.ravel(order="K").view(np.uint8))  # type: ignore[arg-type]


def mapped_array(path: Path) -> NDArray[np.generic]:
    """Map the array of a file, copy-on-write. Raises UnreadableObjectError, NotInstalledError."""
    require("arrays", "numpy")
    import numpy as np

    try:
        array: NDArray[np.generic]
        with path.open("rb") as file:
            # numpy.load accepts other formats, too.
            if file.read(len(_MAGIC)) != _MAGIC:
                raise ValueError("it has no .npy header")
        try:
            array = np.load(path, mmap_mode="c", allow_pickle=False, max_header_size=_LONGEST_HEADER)
        except ValueError:
            # mmap rejects an empty array.
            array = np.load(path, allow_pickle=False, max_header_size=_LONGEST_HEADER)
    except _BROKEN as error:
        raise UnreadableObjectError(path, "NumPy array", str(error)) from error
    return array


def _header(array: NDArray[np.generic]) -> bytes:
    from numpy.lib import format as npy

    file, described = io.BytesIO(), npy.header_data_from_array_1_0(array)
    try:
        npy.write_array_header_1_0(file, described)
        return file.getvalue()
    except ValueError:
        # Only version 3 of the format has room for many fields, or supports names outside of Latin-1.
        text = repr(described).encode()
        start = npy.magic(3, 0)
        text += b" " * (-(len(start) + _LENGTH.size + len(text) + 1) % _ALIGNMENT) + b"\n"
        return start + _LENGTH.pack(len(text)) + text

"""NumPy arrays as .npy files (NumPy's own format, NEP 1): a header, and the bytes as they lie in memory."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from tokenize import TokenError
from typing import TYPE_CHECKING

from blast_client.base_error import WrongArgument
from blast_client.objects.not_readable import NotReadable
from blast_transport.base.extras import require

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
"""What NumPy raises for a header that is none: it reads it as Python does, and looks again where that fails."""


def array_pieces(array: NDArray[np.generic]) -> list[memoryview]:
    """Its file, in pieces. Raises WrongArgument for an array that is more than its bytes."""
    import numpy as np

    if array.dtype.hasobject:
        raise WrongArgument(f"an array of {array.dtype} holds Python objects, which only pickle can write")
    if isinstance(array, np.ma.MaskedArray):
        raise WrongArgument("a masked array is two arrays: send {'data': a.data, 'mask': a.mask}")
    # A matrix stays of two dimensions, whatever it is asked for.
    array = np.asarray(array)
    array = array if array.flags.c_contiguous or array.flags.f_contiguous else np.ascontiguousarray(array)
    header = _header(array)
    if len(header) > _LONGEST_HEADER:
        raise WrongArgument(
            f"the names of {array.dtype.names and len(array.dtype.names)} fields are too long to be read"
        )
    return [memoryview(header), bytes_of(array)]


def bytes_of(array: NDArray[np.generic]) -> memoryview:
    """The bytes of a contiguous array, as they lie in memory."""
    import numpy as np

    if not array.nbytes:
        return memoryview(b"")
    # Not every type has a buffer of its own: dates have none.
    return memoryview(array.ravel(order="K").view(np.uint8))  # type: ignore[arg-type]


def mapped_array(path: Path) -> NDArray[np.generic]:
    """The array of a file, mapped; what is changed is this process's own. Raises NotReadable, NotInstalled."""
    require("arrays", "numpy")
    import numpy as np

    try:
        array: NDArray[np.generic]
        with path.open("rb") as file:
            # NumPy would open other kinds of files by this name as well.
            if file.read(len(_MAGIC)) != _MAGIC:
                raise ValueError("it does not begin as an array does")
        try:
            array = np.load(path, mmap_mode="c", allow_pickle=False, max_header_size=_LONGEST_HEADER)
        except ValueError:
            # An array without bytes cannot be mapped.
            array = np.load(path, allow_pickle=False, max_header_size=_LONGEST_HEADER)
    except _BROKEN as error:
        raise NotReadable(path, "NumPy array", str(error)) from error
    return array


def _header(array: NDArray[np.generic]) -> bytes:
    from numpy.lib import format as npy

    file, described = io.BytesIO(), npy.header_data_from_array_1_0(array)
    try:
        npy.write_array_header_1_0(file, described)
        return file.getvalue()
    except ValueError:
        # Many named fields, or names in other scripts: only the latest version has room for them.
        text = repr(described).encode()
        start = npy.magic(3, 0)
        text += b" " * (-(len(start) + _LENGTH.size + len(text) + 1) % _ALIGNMENT) + b"\n"
        return start + _LENGTH.pack(len(text)) + text

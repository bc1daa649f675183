"""`@print` in compiled kernels: a function that compiled code calls back with one part at a time.

Parts of one `@print` are gathered per thread and written together, so that those of work-items on other threads do not
come between. Numbers look as Julia prints them. For looking into kernels, not for speed.
"""

from __future__ import annotations

import ctypes
import struct
import sys
import threading
from functools import cache

import numpy as np

END = -1
"""The kind of part that ends a `@print`."""

_KINDS = ("text", "bool", "int64", "uint64", "float32", "float64")
_texts: list[str] = []
_numbers: dict[str, int] = {}
_lock = threading.Lock()
_gathered: dict[
    int, list[str]
] = {}  # by thread; a `threading.local` of a thread that is not Python's ends with each call


def kind(ty: str) -> int:
    """Return the number of the kind in which a primitive type is handed over."""
    wide = {"i": "int64", "u": "uint64"}.get(ty[0], ty)
    return _KINDS.index(wide)


def text_number(text: str) -> int:
    """Return the number under which compiled code names a text; the same for equal texts."""
    with _lock:
        if text not in _numbers:
            _numbers[text] = len(_texts)
            _texts.append(text)
        return _numbers[text]


def julia_float(value: float, single: bool) -> str:
    """Return a float as Julia prints it.

    >>> julia_float(0.1, False), julia_float(1e20, False), julia_float(2e-5, True), julia_float(1e5, False)
    ('0.1', '1.0e20', '2.0e-5', '100000.0')
    """
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Inf" if value > 0 else "-Inf"
    number = np.float32(value) if single else np.float64(value)
    if value == 0 or 1e-4 <= abs(value) < 1e6:
        return np.format_float_positional(number, unique=True, trim="0")
    mantissa, exponent = np.format_float_scientific(number, unique=True, trim="0").split("e")
    return f"{mantissa}e{int(exponent)}"


def _shown(number: int, bits: int) -> str:
    name = _KINDS[number]
    if name == "text":
        return _texts[bits]
    if name == "bool":
        return "true" if bits else "false"
    if name == "int64":
        return str(bits)
    if name == "uint64":
        return str(bits & 0xFFFFFFFFFFFFFFFF)
    if name == "float32":
        return julia_float(struct.unpack("<f", struct.pack("<I", bits & 0xFFFFFFFF))[0], True)
    return julia_float(struct.unpack("<d", struct.pack("<q", bits))[0], False)


def _part(number: int, bits: int) -> None:
    thread = threading.get_ident()
    if number == END:
        sys.stdout.write("".join(_gathered.pop(thread, ())))
    else:
        _gathered.setdefault(thread, []).append(_shown(number, bits))


@cache
def callback() -> tuple[int, object]:
    """Return the address that compiled code calls, and what keeps it alive."""
    function = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)(_part)
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return address, function

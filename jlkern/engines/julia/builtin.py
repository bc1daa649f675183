"""Python builtins whose code is a Julia function: the shortest way into Julia.

A builtin of the fast calling convention gets its arguments as a C array of object pointers, which the Julia side reads
without any Python code in between. Its `self` is an int: the number of what to run.
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from collections.abc import Callable
from typing import Any, Final

METH_FASTCALL: Final = 0x0080


class _Definition(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_definitions: dict[int, _Definition] = {}
"""By address; a definition has to outlive its builtins."""


def possible() -> bool:
    """Tell whether objects lie in memory as the Julia side reads them: CPython with the GIL, 64 bits."""
    free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    return (
        sys.implementation.name == "cpython"
        and not free_threaded
        and ctypes.sizeof(ctypes.c_void_p) == 8
        and sys.byteorder == "little"
        and not hasattr(sys, "gettotalrefcount")  # a debug build has longer headers
    )


def make(address: int, number: int) -> Callable[..., Any]:
    """Return a builtin that calls the C function at an address with `self`, the arguments, and how many there are."""
    definition = _definitions.get(address)
    if definition is None:
        definition = _definitions[address] = _Definition(b"julia", address, METH_FASTCALL, None)
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    made: Callable[..., Any] = new(ctypes.addressof(definition), number, None)
    return made

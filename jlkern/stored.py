"""Uses of a kernel that the memo knows: argument types and shapes, read back from its records."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from jlkern.choice import the_store
from jlkern.signature import DTYPES, Array, Val, julia

if TYPE_CHECKING:
    from jlkern.memo.key import MemoKey
    from jlkern.ndrange import Sizes
    from jlkern.options import Declaration

_ARRAY = re.compile(r"(\w+)\[((?::(?:, :)*)?)(?:, )?(order='F'|order='C'|strided)?\]")
_ORDERS = {"order='F'": "F", "order='C'": "C", "strided": "S", None: "C"}


def uses(declaration: Declaration) -> Iterator[tuple[tuple[Any, ...], Sizes]]:
    """Yield each remembered use of a kernel: descriptions of its arguments, and the ndrange.

    Of numbers only the types are remembered; a record that cannot be read back is left out.
    """
    seen: set[str] = set()
    for key, _ in the_store().entries():
        if key.source != declaration.source.digest or key.options or key.id in seen:
            continue
        seen.add(key.id)
        use = _use(key, declaration.names)
        if use is not None:
            yield use


def _use(key: MemoKey, names: tuple[str, ...]) -> tuple[tuple[Any, ...], Sizes] | None:
    shapes = dict(key.shapes)
    ndrange = shapes.get("ndrange")
    if len(key.signature) != len(names) or not _sizes(ndrange):
        return None
    items = [parse(text, shapes.get(name)) for name, text in zip(names, key.signature, strict=True)]
    if any(item is None for item in items):
        return None
    return tuple(items), ndrange  # type: ignore[return-value]


def parse(text: str, shape: object = None) -> Any:
    """Read an argument type's text back as a description, or return None.

    >>> parse("float32[:, :, order='C']", (3, 4))
    Array(dtype='float32', shape=(3, 4), order='C')
    >>> parse("int64")
    <class 'numpy.int64'>
    """
    if text in DTYPES:
        return np.dtype(text).type
    array = _ARRAY.fullmatch(text)
    if array and array[1] in DTYPES:
        if not _sizes(shape) or len(shape) != array[2].count(":"):  # type: ignore[arg-type]
            return None
        return Array(array[1], shape, _ORDERS[array[3]])  # type: ignore[arg-type]
    for head, tail, make in (("Type[", "]", _type), ("julia(", ")", _julia), ("Val(", ")", _val)):
        if text.startswith(head) and text.endswith(tail):
            return make(text[len(head) : -len(tail)])
    return None


def _sizes(value: object) -> bool:
    return isinstance(value, tuple) and all(type(n) is int and n >= 0 for n in value)


def _type(text: str) -> Any:
    return np.dtype(text) if text in DTYPES else None


def _julia(text: str) -> Any:
    try:
        return julia(ast.literal_eval(text))
    except Exception:  # what is on the disk may be anything
        return None


def _val(text: str) -> Any:
    try:
        return Val(ast.literal_eval(text))
    except Exception:  # what is on the disk may be anything
        return None

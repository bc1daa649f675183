"""Emitted text for an ndrange: work-groups that are full have loops of known length, and need no other.

Where work-items share memory or variables are kept for each of them, the compiler unrolls loops of known length, keeps
their variables in registers and leaves out the code for remainders: tiled products run several times as fast. So a
launch over whole work-groups compiles the text for those only; a launch that cuts the last ones compiles two functions
and calls the one that fits each work-group.
"""

from __future__ import annotations

import math
import re

_HEADER = "def chunk(_block, _errors, _first, _last):"
_EXTENT = re.compile(r"( _h\d = )least\((\d+), .*\)$", re.M)


def text_for(text: str, workgroup: tuple[int, ...], ndrange: tuple[int, ...]) -> str:
    """Return the text to compile for launches over an ndrange."""
    if " = stack_" not in text or not _EXTENT.search(text):
        return text
    if all(n % w == 0 for n, w in zip(ndrange, workgroup, strict=True)):
        return _whole(text)
    if math.prod(workgroup) == 1 or any(n < w for n, w in zip(ndrange, workgroup, strict=True)):
        return text  # no work-group is full
    return _mixed(text, workgroup)


def _whole(text: str) -> str:
    return _EXTENT.sub(r"\1\2", text)


def _mixed(text: str, workgroup: tuple[int, ...]) -> str:
    whole, cut = (_HEADER.replace("chunk", name) for name in ("whole", "cut"))
    parts = [_whole(text).replace(_HEADER, whole), text.replace(_HEADER, cut)]
    lines = [_HEADER, "    _args = pointer_int64(_block)"]
    for d, width in enumerate(workgroup):
        lines.append(f"    _n{d} = load(_args, {d})")
        lines.append(f"    _m{d} = udiv(_n{d} + {width - 1}, {width})")
    lines += ["    _g = _first", "    while _g < _last:"]
    rest = "_g"
    for d in range(len(workgroup)):
        lines.append(f"        _g{d} = urem({rest}, _m{d})")
        lines.append(f"        _q{d} = udiv({rest}, _m{d})")
        rest = f"_q{d}"
    full = " & ".join(f"((_g{d} + 1) * {width} <= _n{d})" for d, width in enumerate(workgroup))
    lines += [
        f"        if {full}:",
        f"            _end = least(_last, _g + (udiv(_n0, {workgroup[0]}) - _g0))",
        "            _status = whole(_block, _errors, _g, _end)",
        "        else:",
        "            _end = _g + 1",
        "            _status = cut(_block, _errors, _g, _end)",
        "        if _status != 0:",
        "            return _status",
        "        _g = _end",
        "    return 0",
    ]
    return "\n".join([*parts, *lines]) + "\n"

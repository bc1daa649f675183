"""Numbers, characters, strings and symbols of the source, with the types that Julia gives them."""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

from jlkern.syntax.building import finished
from jlkern.syntax.cst import Source, convert, converts, fold, unsupported
from jlkern.syntax.nodes import Interpolated, Literal, MacroCall, Name, Node, Pos

if TYPE_CHECKING:
    from tree_sitter import Node as Tree

_UNSIGNED = ((8, "UInt8"), (16, "UInt16"), (32, "UInt32"), (64, "UInt64"), (128, "UInt128"))
_BITS_PER_DIGIT = {"0x": 4, "0o": 3, "0b": 1}


def integer(source: Source, node: Tree) -> Literal:
    """Return an integer literal: Int64, or the unsigned type that its digits fill; Int128 and wider as they are."""
    text = source.text(node).replace("_", "")
    pos = source.pos(node)
    per_digit = _BITS_PER_DIGIT.get(text[:2])
    if per_digit is None:
        value = int(text) if len(text) < 40 else 2**127
        kind = "Int64" if value < 2**63 else "Int128" if value < 2**127 else "BigInt"
        return Literal(value, kind, pos=pos)
    value = int(text, 0)
    # Octal digits do not fill bytes: only leading zeros make such a literal wider than its value.
    bits = value.bit_length() if per_digit == 3 and text[2] != "0" else per_digit * (len(text) - 2)
    for width, kind in _UNSIGNED:
        if bits <= width:
            return Literal(value, kind, pos=pos)
    return source.problem(node, "the literal is too large for UInt128")


@converts("integer_literal")
def _integer(source: Source, node: Tree) -> Node:
    return finished(integer(source, node))


@converts("float_literal")
def floating(source: Source, node: Tree) -> Literal:
    """Return a Float64 or Float32 literal."""
    text = source.text(node).replace("_", "")
    pos = source.pos(node)
    try:
        if text[:2] in ("0x", "0X"):
            return Literal(float.fromhex(text), "Float64", pos=pos)
        if "f" in text:
            number = float(text.replace("f", "e"))
            return Literal(struct.unpack("<f", struct.pack("<f", number))[0], "Float32", pos=pos)
        number = float(text)
    except (OverflowError, ValueError):
        source.problem(node, f"invalid number `{text[:40]}`")
    if number in (float("inf"), float("-inf")):
        source.problem(node, f"overflow in the number `{text[:40]}`")
    return Literal(number, "Float64", pos=pos)


@converts("boolean_literal")
def _boolean(source: Source, node: Tree) -> Node:
    return Literal(source.text(node) == "true", "Bool", pos=source.pos(node))


# --- strings ---------------------------------------------------------------------------------------------------------

_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|[0-7]{1,3}|\n[ \t]*|.)", re.DOTALL)
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "e": "\x1b", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


def unescape(text: str) -> str:
    """Return a text with Julia's escapes read.

    Examples
    --------
    >>> unescape(r"a\\tb\\u3c0")
    'a\\tbπ'
    """
    return _ESCAPE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] in "xuU" and len(code) > 1:
        value = int(code[1:], 16)
        return chr(value) if value < 0x110000 else "�"
    if code[0] in "01234567":
        return chr(int(code, 8))
    if code[0] == "\n":
        return ""
    return _SIMPLE.get(code, code)


@converts("character_literal")
def _character(source: Source, node: Tree) -> Node:
    value = unescape(source.text(node)[1:-1])
    if len(value) != 1:
        source.problem(node, "a character literal holds one character")
    return Literal(value, "Char", pos=source.pos(node))


@converts("string_literal")
def _string(source: Source, node: Tree) -> Node:
    pos = source.pos(node)
    parts: list[str | Node] = []
    raw: list[bool] = []
    for kid in node.children:
        if kid.type == "string_interpolation":
            inner = [k for k in source.kids(kid) if k.is_named]
            if len(inner) != 1:
                source.problem(kid, "invalid interpolation")
            parts.append(convert(source, inner[0]))
            raw.append(False)
        elif kid.is_named:
            parts.append(source.text(kid))
            raw.append(kid.type == "content")
    if node.children and node.children[0].type == '"""':
        parts = _dedent(parts, raw)
    pieces: list[Node] = []
    text = ""
    for part, plain in zip(parts, raw, strict=True):
        if isinstance(part, str):
            text += part if plain else unescape(part)
        else:
            pieces += [Literal(text, "String", pos=pos)] if text else []
            pieces.append(part)
            text = ""
    if not pieces:
        return Literal(text, "String", pos=pos)
    pieces += [Literal(text, "String", pos=pos)] if text else []
    return Interpolated(tuple(pieces), pos=pos)


def _dedent(parts: list[str | Node], raw: list[bool]) -> list[str | Node]:
    """Return the parts of a triple-quoted string without its first line break and the indentation of its lines."""
    joined = "".join(p if plain and isinstance(p, str) else "\0" for p, plain in zip(parts, raw, strict=True))
    lines = joined.split("\n")[1:]
    counted = [line for i, line in enumerate(lines) if line.strip(" \t") or i == len(lines) - 1]
    indents = [len(line) - len(line.lstrip(" \t")) for line in counted]
    strip = f"\n[ \t]{{0,{min(indents, default=0)}}}"
    result: list[str | Node] = []
    for at, (part, plain) in enumerate(zip(parts, raw, strict=True)):
        if plain and isinstance(part, str):
            part = re.sub(strip, "\n", part)
            if at == 0:
                part = part.removeprefix("\n")
        result.append(part)
    return result


@converts("prefixed_string_literal")
def _prefixed(source: Source, node: Tree) -> Node:
    kids = [kid for kid in node.children if kid.is_named]
    prefix = source.name(kids[0])
    text = "".join(source.text(kid) for kid in kids[1:] if kid.type in ("content", "escape_sequence"))
    pos = source.pos(node)
    literal = Literal(re.sub(r'\\(\\*)"', r'\1"', text), "String", pos=pos)
    if prefix == "raw":
        return literal
    if prefix == "var":
        return Name(text, pos=pos)
    return MacroCall(prefix + "_str", (literal,), pos=pos)


@converts("command_literal", "prefixed_command_literal")
def _command(source: Source, node: Tree) -> Node:
    return unsupported(source, node, "command literal")


# --- symbols ---------------------------------------------------------------------------------------------------------


@converts("quote_expression")
def _quoted(source: Source, node: Tree) -> Node:
    pos: Pos = source.pos(node)
    kids = source.kids(node)
    if kids[1].start_byte != kids[0].end_byte:
        source.problem(node, "space after `:`; write a range without it, as `a:b`")
    inner = kids[1]
    if inner.type == "operator" and source.data[inner.end_byte : inner.end_byte + 1].isalnum():
        source.problem(node, f"unexpected `{source.text(node)}`")
    if inner.type in ("identifier", "operator"):
        return Literal(fold(source.text(inner)), "Symbol", pos=pos)
    if inner.type in ("integer_literal", "float_literal", "string_literal"):
        return convert(source, inner)
    if len(kids) == 4 and kids[2].type == "operator":
        return Literal(fold(source.text(kids[2])), "Symbol", pos=pos)
    return unsupported(source, node, "quoted expression")

"""The one place that knows tree-sitter: text to its tree, nodes to text and places, and what is wrong in the tree."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NoReturn, TypeVar

from jlkern.syntax.nodes import Literal, Name, Node, Pos, Unsupported
from jlkern.syntax.problem import SyntaxProblem

if TYPE_CHECKING:
    from tree_sitter import Node as Tree
    from tree_sitter import Parser

_parser: Parser | None = None

# `ƀegn` has the bytes of `begin`; it stands for it where the grammar takes the word for the start of a block.
_BEGIN_INDEX = "ƀegn"
_COMPOUND = re.compile(r"(?:[-+*/\\^÷%|&⊻]|//|<<|>>>?)=(?!=)".encode())
_BEGIN_IN_BRACKETS = re.compile(rb"\bbegin(?=[ \t]*(?:[-+*/%:,^<>&|\]]|\xc3\xb7|==))")

# Stands for the multiplication of `(a)b`, which the grammar does not know; no source has it otherwise.
FACTOR_MARK = "⨳".encode()
_STRINGS = (
    r'"""(?:[^"\\]|\\.|"(?!""))*"""|"(?:[^"\\]|\\.)*"|#=.*?=#|#[^\n]*'
    r"|(?<![\w)\]}'.!])'(?:\\[^\n]{1,9}?|[^'\\\n])'"
)
_WORDS = "end|for|if|do|where|in|isa|else|elseif|catch|finally|begin|while|function|let|return|local|const|using|import"
_FACTORS = re.compile(_STRINGS + rf"|(?<=[)\]])(?=[^\W\d])(?!(?:{_WORDS})\b)", re.DOTALL)

# What `_tight_colons` looks at: strings, comments and characters to pass over, brackets, `?` and spaced colons.
_MARKS = re.compile(_STRINGS + r"|[][(){}?]|(?<=\s):(?=\s)", re.DOTALL)
_SPACED_COLON = re.compile(r"\s:\s")


class Source:
    """A source text with its tree: turns the tree's nodes into text, places and (through `convert`) our nodes.

    Parameters
    ----------
    text
        The Julia source.

    Raises
    ------
    SyntaxProblem
        When the text does not parse.
    """

    __slots__ = ("ascii", "comments", "data", "given", "indexing", "inserted", "lines", "original", "replaced", "root")

    def __init__(self, text: str) -> None:
        if "\r" in text:
            text = text.replace("\r\n", "\n")
        self.given = self.data = _encode(_tight_colons(text))
        self.ascii = text.isascii()
        self.comments = "#" in text
        self.indexing = 0  # how many `[...]` of an index we are in: there `end` is a value
        self.replaced: dict[int, Node] = {}  # see `chains.unary_head`
        self.original: bytes | None = None  # the text before the last repair, see `_parse`
        self.inserted: list[int] = []  # where marks were inserted
        self.lines = [0]
        find = self.data.find
        at = find(b"\n")
        while at >= 0:
            self.lines.append(at + 1)
            at = find(b"\n", at + 1)
        self.root = self._parse()

    def _parse(self) -> Tree:
        """Return the tree of the text, repaired where the grammar is known to be wrong and Julia's meaning is plain.

        `begin` in an index becomes another name; a mark comes between the factors of `(a)b`; and the operators of
        compound assignments become `=`, for the grammar wants a simple target and no `=` behind (`x += y = 3`).
        """
        parse = get_parser().parse
        root = parse(self.data).root_node
        if not root.has_error or all(_harmless(node, self.data) for node in errors_in(root)):
            return root
        data = _BEGIN_IN_BRACKETS.sub(_BEGIN_INDEX.encode(), self.data)
        marked, marks = _mark_factors(data)
        for repaired, inserted in ((data, []), (marked, marks), (_plain(data), []), (_plain(marked), marks)):
            again = parse(repaired).root_node
            if not again.has_error or all(_harmless(node, repaired) for node in errors_in(again)):
                self.original = marked if inserted else data
                self.data = repaired
                self.inserted = inserted
                self.ascii = False
                return again
        for node in errors_in(root):
            if not _harmless(node, self.data):
                self.fail(node)
        raise AssertionError("a tree with an error has a faulty node")

    def place(self, offset: int) -> Pos:
        """Return the place of a byte offset."""
        if self.inserted:
            offset -= len(FACTOR_MARK) * bisect_right(self.inserted, offset)
        row = bisect_right(self.lines, offset) - 1
        start = self.lines[row]
        if self.ascii:
            return Pos(row + 1, offset - start + 1)
        return Pos(row + 1, len(self.given[start:offset].decode(errors="replace")) + 1)

    def pos(self, node: Tree) -> Pos:
        """Return the place where a node starts."""
        return self.place(node.start_byte)

    def text(self, node: Tree) -> str:
        """Return the text of a node."""
        return self.data[node.start_byte : node.end_byte].decode(errors="replace")

    def name(self, node: Tree) -> str:
        """Return the text of an identifier as Julia reads it: NFC, with a few look-alikes folded."""
        text = self.data[node.start_byte : node.end_byte].decode(errors="replace")
        return text if text.isascii() else fold(text)

    def kids(self, node: Tree) -> list[Tree]:
        """Return the children of a node without comments."""
        if self.comments:
            return [kid for kid in node.children if not kid.is_extra or kid.is_error]
        return node.children

    def tokens(self) -> str:
        """Return the tokens without comments, indentation and places: two texts with the same ones mean the same.

        Where Julia reads line breaks and spaces, they are kept: between the statements of a block and the rows of a
        matrix, and around an operator that a space may turn into a prefix (`[a -b]`).
        """
        found: list[str] = []
        self._collect_tokens(self.root, "", found)
        return "\x1f".join(found)

    def _collect_tokens(self, node: Tree, mark: str, found: list[str]) -> None:
        """Append the tokens under a node, each with a mark before it."""
        kids = node.children
        if kids:
            kind = node.type
            if kind not in _WHOLE:
                if mark:
                    found.append(mark)
                inner = " " if kind in _ROWS else ""
                blocks = kind in _BLOCKS
                end = node.start_byte
                for kid in kids:
                    if not (self.comments and kid.is_extra) or kid.is_error:
                        if blocks:
                            between = self.data[end : kid.start_byte]
                            inner = "\n" if b"\n" in between or b";" in between else ""
                            end = kid.end_byte
                        self._collect_tokens(kid, inner, found)
                return
        start, end, data = node.start_byte, node.end_byte, self.data
        text = data[start:end].decode(errors="replace")
        if text in _SPACE_MATTERS and data[start - 1 : start].isspace() and not data[end : end + 1].isspace():
            text = " " + text
        found.append(mark + text)

    def problem(self, node: Tree, message: str) -> NoReturn:
        """Raise a `SyntaxProblem` at a node."""
        pos = self.pos(node)
        raise SyntaxProblem(pos.line, pos.column, message)

    def fail(self, node: Tree) -> NoReturn:
        """Raise the problem that an ERROR or MISSING node stands for."""
        if node.is_missing or node.start_byte == node.end_byte:
            kind = node.type
            self.problem(node, "an expression is missing" if node.is_named else f"`{kind}` is missing")
        first = node.children[0] if node.children else node
        word = self.text(first).split("\n", 1)[0].strip()[:40]
        if node.children and word in _OPENERS:
            self.problem(first, f"`{word}` has no `end`, or something inside it is wrong")
        if node.children and word in ("(", "[", "{"):
            self.problem(first, f"`{word}` is not closed")
        if word == "?":
            self.problem(first, "unexpected `?`; put spaces around the marks of `a ? b : c`")
        self.problem(first, f"unexpected `{word}`" if word else "the source ends in the middle of something")


_SPACE_MATTERS = frozenset("+ - ~ & : ± ∓".split())
_ROWS = frozenset(("matrix_row", "macro_argument_list"))
_WHOLE = frozenset(("string_literal", "prefixed_string_literal", "command_literal", "float_literal"))
_BLOCKS = frozenset(
    """source_file matrix_expression parenthesized_expression compound_statement quote_statement let_statement
    if_statement elseif_clause else_clause try_statement catch_clause finally_clause for_statement while_statement
    function_definition struct_definition module_definition macro_definition do_clause""".split()
)
_OPENERS = frozenset("begin do for function if let macro module quote struct try while mutable @".split())


def get_parser() -> Parser:
    """Return tree-sitter's parser, made at first need."""
    global _parser
    if _parser is None:
        import tree_sitter
        import tree_sitter_julia

        _parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_julia.language()))
    return _parser


def fold(text: str) -> str:
    """Return an identifier or operator as Julia normalises it."""
    return unicodedata.normalize("NFC", text).translate(_FOLDED)


_FOLDED = {0x025B: 0x03B5, 0x00B5: 0x03BC, 0x00B7: 0x22C5, 0x0387: 0x22C5, 0x2212: 0x002D, 0x210F: 0x0127}


def errors_in(root: Tree) -> Iterator[Tree]:
    """Yield the outermost ERROR and MISSING nodes in the order of the text."""
    stack = [root]
    while stack:
        node = stack.pop()
        if node.is_error or node.is_missing:
            yield node
        elif node.has_error:
            inner = [kid for kid in node.children if kid.has_error]
            if not inner:
                yield node  # an identifier of nothing: its token is missing
            stack.extend(reversed(inner))


def _harmless(node: Tree, data: bytes) -> bool:
    """Whether a fault of the tree is one that flattening the chain around it heals: `i, = t` and `x += y = 3`."""
    parent = node.parent
    if parent is None:
        return False
    if node.is_missing:
        outer = parent.parent
        return node.type == "..." and outer is not None and outer.type == "assignment"
    if parent.type == "assignment" and data[node.start_byte : node.end_byte] == b",":
        after = node.next_sibling
        return after is not None and after.type == "operator" and data[after.start_byte : after.end_byte] == b"="
    if parent.type != "open_tuple" or data[node.start_byte : node.end_byte] != b"=":
        return False
    before = node.prev_sibling
    return before is not None and before.type == ","


def _plain(data: bytes) -> bytes:
    """Return the text with `=` for every compound assignment, in as many bytes."""
    return _COMPOUND.sub(lambda match: b" " * (len(match[0]) - 1) + b"=", data)


def _mark_factors(data: bytes) -> tuple[bytes, list[int]]:
    """Return the text with marks between the factors of `(a)b`, and the offsets behind the marks."""
    parts: list[bytes] = []
    marks: list[int] = []
    last = 0
    for match in _FACTORS.finditer(data.decode(errors="replace")):
        if not match.group():
            at = len(match.string[: match.start()].encode())
            parts += [data[last:at], FACTOR_MARK]
            last = at
            marks.append(at + len(FACTOR_MARK) * (len(marks) + 1))
    return b"".join([*parts, data[last:]]), marks


def _encode(text: str) -> bytes:
    """Return the text in UTF-8."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise SyntaxProblem(line, 1, "the source holds a character that is no Unicode") from None


def _tight_colons(text: str) -> str:
    """Return the text with `a : b` written `a:  b` where it is a range: the grammar does not know the other form."""
    if not _SPACED_COLON.search(text):
        return text
    pending = [0]  # open `?` per bracket
    ranges = []
    for mark in _MARKS.finditer(text):
        token = mark.group()
        if token == "?":
            pending[-1] += 1
        elif token == ":":
            if pending[-1]:
                pending[-1] -= 1
            elif text[mark.start() - 1] in " \t" and text[mark.end()] in " \t":
                ranges.append(mark.start())
        elif token in "([{":
            pending.append(0)
        elif token in ")]}" and len(pending) > 1:
            pending.pop()
    if not ranges:
        return text
    chars = list(text)
    for at in ranges:
        first = at
        while chars[first - 1] in " \t":
            first -= 1
        chars[first], chars[at] = ":", " "
    return "".join(chars)


# --- conversion to our nodes: every module of the parser registers what it converts ----------------------------------

Converter = Callable[[Source, "Tree"], Node]
_F = TypeVar("_F", bound=Callable[..., Node])
CONVERTERS: dict[str, Converter] = {}


def converts(*types: str) -> Callable[[_F], _F]:
    """Register a function as the converter of CST node types."""

    def register(function: _F) -> _F:
        for kind in types:
            CONVERTERS[kind] = function
        return function

    return register


def convert(source: Source, node: Tree) -> Node:
    """Return our node for a CST node."""
    converter = CONVERTERS.get(node.type)
    if converter is None:
        source.problem(node, f"unexpected `{source.text(node)[:40]}`")
    return converter(source, node)


@converts("identifier")
def _identifier(source: Source, node: Tree) -> Node:
    text = source.name(node)
    if text == "nothing":
        return Literal(None, "Nothing", pos=source.pos(node))
    if "?" in text:
        source.problem(node, "unexpected `?`; put spaces around the marks of `a ? b : c`")
    if text in _RESERVED:
        if text == _BEGIN_INDEX:
            text = "begin"
        if not source.indexing:
            source.problem(node, f"unexpected `{text}`")
    return Name(text, pos=source.pos(node))


_RESERVED = frozenset(("end", "begin", _BEGIN_INDEX))


def unsupported(source: Source, node: Tree, what: str) -> Unsupported:
    """Return the node of a construct that we have no node for, with the names in it."""
    names = []
    stack = [node]
    while stack:
        this = stack.pop()
        if this.type == "identifier":
            names.append(source.name(this))
        stack.extend(this.children)
    return Unsupported(what, tuple(dict.fromkeys(names)), pos=source.pos(node))

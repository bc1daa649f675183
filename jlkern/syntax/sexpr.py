"""The tree as an s-expression after Julia's own `Expr`: how the parser is compared with Julia's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from jlkern.syntax import nodes as n

_ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


def to_sexpr(node: n.Node) -> str:
    """Return a node as `(head child child ...)`.

    Heads and children are those of Julia's `Expr` without line numbers. Chains of `+` and `*` are flat, dotted
    operators are `dotcall`s, keywords come last, numbers other than Int64 and Float64 name their type.

    Examples
    --------
    >>> from jlkern.syntax.parser import parse_expression
    >>> to_sexpr(parse_expression("y[i] += 2x^2"))
    '(+= (ref y i) (call * 2 (call ^ x 2)))'
    """
    return _SHOWN[type(node)](node)


def _join(*parts: str) -> str:
    return "(" + " ".join(parts) + ")"


def _all(nodes: Iterable[n.Node]) -> list[str]:
    return [to_sexpr(node) for node in nodes]


def _literal(node: n.Literal) -> str:
    value, kind = node.value, node.type
    if kind == "Bool":
        return "true" if value else "false"
    if kind == "Nothing":
        return "nothing"
    if isinstance(value, str):
        if kind == "Char":
            return f"Char({ord(value)})"
        return f"(quote {value})" if kind == "Symbol" else '"' + value.translate(_ESCAPED) + '"'
    return repr(value) if kind in ("Int64", "Float64") else f"{kind}({value!r})"


def _call(node: n.Call) -> str:
    args = _all(node.args)
    words = [_join("..." if k == "..." else "kw", *(() if k == "..." else (k,)), to_sexpr(v)) for k, v in node.kwargs]
    name = node.func.id if isinstance(node.func, n.Name) else None
    if name in ("<:", ">:", "'"):
        return _join(name, *args)
    return _join("call", to_sexpr(node.func), *args, *words)


def _compare(node: n.Compare) -> str:
    parts = [to_sexpr(node.operands[0])]
    for op, operand in zip(node.ops, node.operands[1:], strict=True):
        parts += [op, to_sexpr(operand)]
    return _join("comparison", *parts)


def _tuple(node: n.TupleExpr) -> str:
    if node.names is None:
        return _join("tuple", *_all(node.items))
    return _join("tuple", *(_join("=", k, to_sexpr(v)) for k, v in zip(node.names, node.items, strict=True)))


def _matrix(node: n.MatrixExpr) -> str:
    if len(node.rows) == 1:
        return _join("hcat", *_all(node.rows[0]))
    rows = (_all(row)[0] if len(row) == 1 else _join("row", *_all(row)) for row in node.rows)
    return _join("vcat", *rows)


def _if(node: n.If) -> str:
    parts = [to_sexpr(node.cond), to_sexpr(node.then)]
    return _join("if", *parts, *([to_sexpr(node.orelse)] if node.orelse is not None else []))


def _bindings(pairs: Iterable[tuple[str, str | None]], always: bool) -> str:
    shown = [name if value is None else _join("=", name, value) for name, value in pairs]
    return shown[0] if len(shown) == 1 and not always else _join("block", *shown)


def _for(node: n.For) -> str:
    pairs = [(to_sexpr(target), to_sexpr(values)) for target, values in node.bindings]
    return _join("for", _bindings(pairs, False), to_sexpr(node.body))


def _let(node: n.Let) -> str:
    pairs = [(name, None if value is None else to_sexpr(value)) for name, value in node.bindings]
    return _join("let", _bindings(pairs, True), to_sexpr(node.body))


def _param(node: n.Param) -> str:
    shown = node.name or ""
    if node.type is not None:
        shown = _join("::", *([shown] if shown else []), to_sexpr(node.type))
    if node.const:
        shown = _join("macrocall", "@Const", shown)
    if node.vararg:
        shown = _join("...", shown)
    return shown if node.default is None else _join("kw", shown, to_sexpr(node.default))


def _lambda(node: n.Lambda) -> str:
    body: n.Node = node.body
    if isinstance(body, n.Block) and len(body.body) == 1:
        body = body.body[0]
    return _join("->", _join("tuple", *map(_param, node.params)), to_sexpr(body))


def _function(node: n.FunctionDef) -> str:
    words = [_join("parameters", *map(_param, node.kwparams))] if node.kwparams else []
    head = _join("call", node.name, *map(_param, node.params), *words)
    if node.returns is not None:
        head = _join("::", head, to_sexpr(node.returns))
    if node.where:
        head = _join("where", head, *_all(node.where))
    return _join("function", head, to_sexpr(node.body))


def _kernel(node: n.KernelDef) -> str:
    return _join("macrocall", "@kernel", to_sexpr(node.function))


def _struct(node: n.StructDef) -> str:
    head = _join("curly", node.name, *_all(node.params)) if node.params else node.name
    if node.supertype is not None:
        head = _join("<:", head, to_sexpr(node.supertype))
    fields = [name if kind is None else _join("::", name, to_sexpr(kind)) for name, kind in node.fields]
    return _join("mutable" if node.mutable else "struct", head, _join("block", *fields, *_all(node.methods)))


def _macro(node: n.MacroCall) -> str:
    name = f"{node.module}.@{node.name}" if node.module else f"@{node.name}"
    return _join("macrocall", name, *_all(node.args))


def _assign(node: n.Assign) -> str:
    op = "." * node.dotted + (node.op or "") + "="
    return _join(op, to_sexpr(node.target), to_sexpr(node.value))


_SHOWN: dict[type[n.Node], Callable[[Any], str]] = {
    n.Literal: _literal,
    n.Name: lambda node: node.id,
    n.Call: _call,
    n.DotCall: lambda node: _join("dotcall", to_sexpr(node.func), *_all(node.args)),
    n.Compare: _compare,
    n.ShortCircuit: lambda node: _join(node.op, to_sexpr(node.left), to_sexpr(node.right)),
    n.Index: lambda node: _join("ref", to_sexpr(node.obj), *_all(node.args)),
    n.Field: lambda node: _join(".", to_sexpr(node.obj), node.name),
    n.TupleExpr: _tuple,
    n.VectorExpr: lambda node: _join("vect", *_all(node.items)),
    n.MatrixExpr: _matrix,
    n.Curly: lambda node: _join("curly", to_sexpr(node.base), *_all(node.args)),
    n.Typed: lambda node: _join("::", *_all([node.value] if node.value else []), to_sexpr(node.type)),
    n.Splat: lambda node: _join("...", to_sexpr(node.value)),
    n.Where: lambda node: _join("where", to_sexpr(node.value), *_all(node.params)),
    n.Interpolated: lambda node: _join("string", *_all(node.parts)),
    n.Block: lambda node: _join("block", *_all(node.body)),
    n.If: _if,
    n.Assign: _assign,
    n.For: _for,
    n.While: lambda node: _join("while", to_sexpr(node.cond), to_sexpr(node.body)),
    n.Break: lambda node: "(break)",
    n.Continue: lambda node: "(continue)",
    n.Return: lambda node: _join("return", "nothing" if node.value is None else to_sexpr(node.value)),
    n.Let: _let,
    n.Local: lambda node: _join("local", *_all(node.items)),
    n.Const: lambda node: _join("const", to_sexpr(node.assign)),
    n.MacroCall: _macro,
    n.Param: _param,
    n.Lambda: _lambda,
    n.FunctionDef: _function,
    n.StructDef: _struct,
    n.AbstractDef: lambda node: _join(
        "abstract", _join("<:", node.name, node.supertype) if node.supertype else node.name
    ),
    n.Using: lambda node: _join("using", *node.names),
    n.Unsupported: lambda node: _join("unsupported", f'"{node.what}"'),
    n.KernelDef: _kernel,
    n.Module: lambda node: _join("toplevel", *_all(node.items)),
}

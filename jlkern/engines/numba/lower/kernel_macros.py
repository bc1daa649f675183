"""The macros of KernelAbstractions, Atomix, StaticArrays and Base that kernels use."""

from __future__ import annotations

from collections.abc import Callable

from jlkern.engines.numba.lower import simt
from jlkern.engines.numba.lower.arrays import address, flat_indices, load_element, new_array, view
from jlkern.engines.numba.lower.context import Context, as_scalar
from jlkern.engines.numba.lower.conversion import convert
from jlkern.engines.numba.lower.registry import BUILTINS
from jlkern.engines.numba.lower.simt import Expr, Lit, Special
from jlkern.engines.numba.lower.types import BY_NUMPY, INT64, ComplexT, Prim
from jlkern.engines.numba.lower.values import (
    Array,
    Cartesian,
    Function,
    Nothing,
    Pair,
    Scalar,
    Text,
    Tuple,
    TypeValue,
    Value,
    canonical,
    int64,
    type_of,
)
from jlkern.syntax import nodes as n

Macro = Callable[[Context, n.MacroCall], Value]
MACROS: dict[str, Macro] = {}


def macro(*names: str) -> Callable[[Macro], Macro]:
    """Register the meaning of a macro."""

    def register(function: Macro) -> Macro:
        for name in names:
            MACROS[name] = function
        return function

    return register


def _lower(cx: Context, node: n.Node) -> Value:
    from jlkern.engines.numba.lower.core import lower

    return lower(cx, node)


def _in_kernel(cx: Context, node: n.MacroCall) -> None:
    if cx.depth:
        cx.unsupported(f"`@{node.name}` in a helper function", "use it in the kernel and pass the result on")


# --- indices ---


def _special(kind: str, dim: int) -> Expr:
    return Special(kind, dim)


def _linear(cx: Context, indices: list[Expr], sizes: list[Expr]) -> Scalar:
    """Return the column-major position, from 1, of zero-based indices in a box."""
    result = indices[-1]
    for index, size in zip(reversed(indices[:-1]), reversed(sizes[:-1]), strict=True):
        result = cx.op("add", "int64", index, cx.op("mul", "int64", result, size))
    return as_scalar(INT64, cx.op("add", "int64", result, Lit(1, "int64")))


@macro("index")
def _index(cx: Context, node: n.MacroCall) -> Value:
    _in_kernel(cx, node)
    words = [a.id if isinstance(a, n.Name) else "?" for a in node.args]
    kind, how = words[0] if words else "?", words[1] if len(words) > 1 else "Linear"
    if kind not in ("Global", "Local", "Group") or how not in ("Linear", "NTuple", "Cartesian") or len(words) > 2:
        cx.unsupported(f"@index({', '.join(words)})",
                       "write @index(Global|Local|Group, Linear|NTuple|Cartesian)")  # fmt: skip
    dims = range(len(cx.workgroup))
    indices = [_special(kind.lower(), d) for d in dims]
    if how != "Linear":
        items = tuple(as_scalar(INT64, cx.op("add", "int64", i, Lit(1, "int64"))) for i in indices)
        return Tuple(items) if how == "NTuple" else Cartesian(items)
    sizes: dict[str, list[Expr]] = {
        "Global": [_special("ndrange", d) for d in dims],
        "Group": [_special("groups", d) for d in dims],
        "Local": [Lit(w, "int64") for w in cx.workgroup],
    }
    return _linear(cx, indices, sizes[kind])


@macro("groupsize")
def _groupsize(cx: Context, node: n.MacroCall) -> Value:
    _in_kernel(cx, node)
    return Tuple(tuple(int64(w) for w in cx.workgroup))


@macro("ndrange")
def _ndrange(cx: Context, node: n.MacroCall) -> Value:
    _in_kernel(cx, node)
    return Tuple(tuple(Scalar(INT64, _special("ndrange", d)) for d in range(len(cx.workgroup))))


@macro("synchronize")
def _synchronize(cx: Context, node: n.MacroCall) -> Value:
    _in_kernel(cx, node)
    for arg in node.args:
        _lower(cx, arg)
    cx.emit(simt.Barrier(node.pos.line))
    return Nothing()


# --- memory ---


def _memory(cx: Context, node: n.MacroCall, kind: str) -> Value:
    hint = cx.hint or kind
    ty = _lower(cx, node.args[0])
    if not isinstance(ty, TypeValue) or not isinstance(ty.type, (Prim, ComplexT)):
        cx.unsupported(f"`@{node.name}` with an element type that is no number type", "use a type, as in eltype(A)")
    dims = canonical(_lower(cx, node.args[1])) if len(node.args) == 2 else None
    dims = (dims,) if isinstance(dims, int) else dims
    if not isinstance(dims, tuple) or not all(isinstance(d, int) and d >= 0 for d in dims):
        cx.unsupported(f"the size of `@{node.name}` is not known at compile time",
                       "make it a literal, a tunable, or a Val parameter")  # fmt: skip
    return new_array(cx, kind, hint, ty.type, dims)


@macro("localmem")
def _localmem(cx: Context, node: n.MacroCall) -> Value:
    _in_kernel(cx, node)
    return _memory(cx, node, "local")


@macro("private")
def _private(cx: Context, node: n.MacroCall) -> Value:
    _in_kernel(cx, node)
    if len(node.args) == 1:
        return _lower(cx, node.args[0])
    return _memory(cx, node, "private")


@macro("uniform")
def _uniform(cx: Context, node: n.MacroCall) -> Value:
    _in_kernel(cx, node)
    return _lower(cx, node.args[0])


# --- hints ---


def _with_bounds(cx: Context, node: n.Node, inbounds: bool) -> Value:
    outer, cx.inbounds = cx.inbounds, inbounds
    try:
        return _lower(cx, node)
    finally:
        cx.inbounds = outer


@macro("inbounds")
def _inbounds(cx: Context, node: n.MacroCall) -> Value:
    return _with_bounds(cx, node.args[0], True)


@macro("%outbounds")
def _outbounds(cx: Context, node: n.MacroCall) -> Value:
    return _with_bounds(cx, node.args[0], False)


@macro("simd", "inline", "noinline", "fastmath", "unroll", "propagate_inbounds", "nospecialize")
def _pass(cx: Context, node: n.MacroCall) -> Value:
    return _lower(cx, node.args[-1])


@macro("boundscheck")
def _boundscheck(cx: Context, node: n.MacroCall) -> Value:
    return Nothing() if cx.inbounds and not cx.check_bounds else _lower(cx, node.args[0])


@macro("print")
def _print(cx: Context, node: n.MacroCall) -> Value:
    parts: list[str | Expr] = []
    for arg in node.args:
        _printed(cx, cx.hold_all(_lower(cx, arg)), parts)
    cx.emit(simt.Print(tuple(parts)))
    return Nothing()


def _printed(cx: Context, value: Value, parts: list[str | Expr]) -> None:
    """Add what `@print` shows of a value: texts, numbers, and tuples of them."""
    if isinstance(value, Scalar):
        parts.append(value.expr)
    elif isinstance(value, Text):
        for part in value.parts:
            if isinstance(part, str):
                parts.append(part)
            else:
                _printed(cx, part, parts)
    elif isinstance(value, Tuple) and value.names is None:
        parts.append("(")
        for at, item in enumerate(value.items):
            parts.extend([", "] if at else [])
            _printed(cx, item, parts)
        parts.append(",)" if len(value.items) == 1 else ")")
    else:
        cx.unsupported(f"@print of a {type_of(value)}", "print its parts, which are numbers")


@macro("assert")
def _assert(cx: Context, node: n.MacroCall) -> Value:
    from jlkern.engines.numba.lower.core import condition

    holds = condition(cx, node.args[0])
    text = "AssertionError"
    if len(node.args) > 1:
        message = _lower(cx, node.args[1])
        if isinstance(message, Text):
            text += ": " + "".join(p for p in message.parts if isinstance(p, str))
    cx.check(cx.op("not", "bool", holds.expr), "KernelThrownError", text.replace("{", "{{").replace("}", "}}"))
    return Nothing()


@macro(".", "__dot__")
def _dotted(cx: Context, node: n.MacroCall) -> Value:
    return _lower(cx, _with_dots(node.args[0]))


def _with_dots(node: n.Node) -> n.Node:
    """Return an expression with a dot at every call and operator, as `@.` makes it."""
    if isinstance(node, n.Call) and not node.kwargs:
        return n.DotCall(node.func, tuple(_with_dots(a) for a in node.args), pos=node.pos)
    if isinstance(node, n.DotCall):
        return n.DotCall(node.func, tuple(_with_dots(a) for a in node.args), pos=node.pos)
    if isinstance(node, n.Compare) and len(node.ops) == 1:
        return n.DotCall(n.Name(node.ops[0]), tuple(_with_dots(a) for a in node.operands), pos=node.pos)
    if isinstance(node, n.Assign) and node.op is None:
        return n.Assign(node.target, _with_dots(node.value), None, True, pos=node.pos)
    return node


# --- atomics ---

_NATIVE = {"+": "add", "-": "sub", "&": "and", "|": "or", "⊻": "xor", "xor": "xor", "min": "min", "max": "max"}


def _target(cx: Context, node: n.Node) -> tuple[Array, Expr]:
    if not isinstance(node, n.Index):
        cx.unsupported("the target of @atomic is no element of an array", "write @atomic A[i] += x")
    array = _lower(cx, node.obj)
    if not isinstance(array, Array):
        cx.unsupported(f"@atomic on a {type_of(array)}")
    if not array.writable:
        cx.unsupported(f"`{array.name}` is @Const and is written", "remove @Const")
    if isinstance(array.elem, ComplexT):
        cx.unsupported("@atomic on complex elements", "update real and imaginary parts apart")
    from jlkern.engines.numba.lower.expressions import index_args

    offset = address(cx, array, flat_indices(cx, index_args(cx, array, node.args)))
    return array, cx.hold(as_scalar(INT64, offset)).expr


def _modify(cx: Context, target: n.Node, op: n.Node, operand: n.Node) -> tuple[Scalar, Scalar]:
    """Emit one atomic update; return the old and the new value."""
    array, offset = _target(cx, target)
    assert isinstance(array.elem, Prim)
    value = convert(cx, _lower(cx, operand), array.elem)
    assert isinstance(value, Scalar)
    value = cx.hold(value)
    old = cx.fresh("old", array.memory.ty)
    func = _lower(cx, op)
    name = func.name if isinstance(func, Function) and func.builtin else ""
    native = _NATIVE.get(name)
    if array.elem.kind == "float" and native not in ("add", "sub"):
        native = None
    if array.elem.kind == "bool":
        native = None
    if native is not None:
        cx.emit(simt.Atomic(native, array.memory, offset, value.expr, old))
        new = as_scalar(array.elem, cx.op(native, array.elem.numpy, old, value.expr))
        return Scalar(array.elem, old), new
    from jlkern.engines.numba.lower.calls import call

    with cx.block() as body:
        result = convert(cx, call(cx, func, (Scalar(array.elem, old), value)), array.elem)
        assert isinstance(result, Scalar)
        result = cx.hold(result)
    cx.emit(simt.Atomic("cas", array.memory, offset, result.expr, old, tuple(body)))
    return Scalar(array.elem, old), result


@macro("atomic")
def _atomic(cx: Context, node: n.MacroCall) -> Value:
    args = node.args
    if len(args) > 1 and isinstance(args[0], n.Literal) and args[0].type == "Symbol":
        args = args[1:]
    if len(args) == 3 and isinstance(args[1], n.Name):  # @atomic A[i] op x, read as three arguments
        old, new = _modify(cx, args[0], args[1], args[2])
        return Pair(old, new)
    expr = args[-1]
    if isinstance(expr, n.Assign):
        if expr.op is not None:
            return _modify(cx, expr.target, n.Name(expr.op, pos=node.pos), expr.value)[1]
        value = expr.value
        if isinstance(value, n.Call) and len(value.args) == 2 and value.args[0] == expr.target:
            return _modify(cx, expr.target, value.func, value.args[1])[1]
        return _exchange(cx, expr)[1]
    if isinstance(expr, n.Index):
        array, offset = _target(cx, expr)
        return load_element(cx, array, offset)
    if isinstance(expr, n.Call) and len(expr.args) == 2 and isinstance(expr.args[0], n.Index):
        old, new = _modify(cx, expr.args[0], expr.func, expr.args[1])
        return Pair(old, new)
    cx.unsupported("this form of @atomic", "write @atomic A[i] += x or @atomic max(A[i], x)")


def _exchange(cx: Context, expr: n.Assign) -> tuple[Scalar, Scalar]:
    array, offset = _target(cx, expr.target)
    assert isinstance(array.elem, Prim)
    value = convert(cx, _lower(cx, expr.value), array.elem)
    assert isinstance(value, Scalar)
    old = cx.fresh("old", array.memory.ty)
    cx.emit(simt.Atomic("xchg", array.memory, offset, value.expr, old))
    return Scalar(array.elem, old), value


@macro("atomicswap")
def _atomicswap(cx: Context, node: n.MacroCall) -> Value:
    expr = node.args[-1]
    if not isinstance(expr, n.Assign):
        cx.unsupported("this form of @atomicswap", "write @atomicswap A[i] = x")
    return _exchange(cx, expr)[0]


@macro("atomicreplace")
def _atomicreplace(cx: Context, node: n.MacroCall) -> Value:
    args = [a for a in node.args if not (isinstance(a, n.Literal) and a.type == "Symbol")]
    if len(args) != 2:
        cx.unsupported("this form of @atomicreplace", "write @atomicreplace A[i] old => new")
    array, offset = _target(cx, args[0])
    assert isinstance(array.elem, Prim)
    pair = _lower(cx, args[1])
    if not isinstance(pair, Pair):
        cx.unsupported("@atomicreplace without `old => new`")
    expected, desired = convert(cx, pair.first, array.elem), convert(cx, pair.second, array.elem)
    assert isinstance(expected, Scalar) and isinstance(desired, Scalar)
    expected, desired = cx.hold(expected), cx.hold(desired)
    old = cx.fresh("old", array.memory.ty)
    same = cx.op("egal", "bool", old, expected.expr)
    new = cx.op("select", array.memory.ty, same, desired.expr, old)
    cx.emit(simt.Atomic("cas", array.memory, offset, new, old))
    return Tuple((Scalar(array.elem, old), cx.hold(as_scalar(BY_NUMPY["bool"], same))), ("old", "success"))


# --- views and static arrays ---


@macro("view")
def _view(cx: Context, node: n.MacroCall) -> Value:
    from jlkern.engines.numba.lower.expressions import index_args

    expr = node.args[0]
    if not isinstance(expr, n.Index):
        cx.unsupported("@view of something that is not indexed")
    array = _lower(cx, expr.obj)
    return view(cx, array, index_args(cx, array, expr.args))


@macro("views")
def _views(cx: Context, node: n.MacroCall) -> Value:
    outer, cx.views = cx.views, True
    try:
        return _lower(cx, node.args[0])
    finally:
        cx.views = outer


def _static_literal(name: str, mutable: bool) -> None:
    @macro(name)
    def function(cx: Context, node: n.MacroCall) -> Value:
        from jlkern.engines.numba.lower.calls import lower_args
        from jlkern.engines.numba.lower.construct import made

        expr = node.args[-1]
        if isinstance(expr, n.VectorExpr):
            items = lower_args(cx, expr.items)
            return made(cx, (len(items),), None, items, mutable)
        if isinstance(expr, n.MatrixExpr):
            rows = [lower_args(cx, row) for row in expr.rows]
            if len({len(r) for r in rows}) != 1:
                cx.unsupported("a matrix literal whose rows differ in length")
            items = tuple(rows[i][j] for j in range(len(rows[0])) for i in range(len(rows)))
            return made(cx, (len(rows), len(rows[0])), None, items, mutable)
        if isinstance(expr, n.Call) and isinstance(expr.func, n.Name) and expr.func.id in ("zeros", "ones", "fill"):
            return _filled(cx, expr, mutable)
        cx.unsupported(f"this form of @{name}", "write the elements in brackets, or zeros(T, n)")


def _filled(cx: Context, expr: n.Call, mutable: bool) -> Value:
    from jlkern.engines.numba.lower.calls import lower_args
    from jlkern.engines.numba.lower.construct import made

    assert isinstance(expr.func, n.Name)
    args = list(lower_args(cx, expr.args))
    if expr.func.id == "fill":
        item = args.pop(0)
    else:
        ty = args.pop(0) if isinstance(args[0], TypeValue) else TypeValue(BY_NUMPY["float64"])
        item = BUILTINS["zero" if expr.func.id == "zeros" else "one"](cx, (ty,))
    dims = tuple(canonical(a) for a in args)
    if not all(isinstance(d, int) for d in dims):
        cx.unsupported("the size of a static array is not known at compile time")
    count = 1
    for d in dims:
        count *= d
    return made(cx, dims, None, (item,) * count, mutable)


for _name in ("SVector", "SMatrix", "SArray", "MVector", "MMatrix", "MArray"):
    _static_literal(_name, _name.startswith("M"))

"""Lower one kernel of a source for a signature and a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jlkern.engines.numba.lower import collections as _collections
from jlkern.engines.numba.lower import numbers as _numbers
from jlkern.engines.numba.lower import simt
from jlkern.engines.numba.lower.context import Context, Scope
from jlkern.engines.numba.lower.lower import lower, lower_block
from jlkern.engines.numba.lower.methods import named_type, static_parameter, type_of_node, type_vars
from jlkern.engines.numba.lower.prune import prune, used_names
from jlkern.engines.numba.lower.registry import no_method
from jlkern.engines.numba.lower.scan import (
    any_return,
    assigned,
    children,
    has_barrier,
    has_return,
    returned_names,
    tail,
    target_names,
)
from jlkern.engines.numba.lower.types import ANY, BY_NUMPY, FLOAT16, FLOAT32, FLOAT64, INT64, ComplexT, Prim, match
from jlkern.engines.numba.lower.values import (
    Array,
    Complex,
    Scalar,
    Tuple,
    TypeValue,
    Value,
    ValValue,
    from_canonical,
    type_of,
)
from jlkern.errors import CompileError, JlkernError
from jlkern.signature import ArgType, ArrayArg, FunctionArg, ScalarArg, Signature, TupleArg, TypeArg, ValArg
from jlkern.source import KernelSource
from jlkern.syntax import nodes as n

assert _collections and _numbers  # they register built-ins

_COMPLEX = {"complex64": ComplexT(FLOAT32), "complex128": ComplexT(FLOAT64)}


def element(dtype: str) -> Prim | ComplexT:
    """Return the Julia type of a NumPy dtype's name."""
    return _COMPLEX.get(dtype) or BY_NUMPY[dtype]


def lower_kernel(
    source: KernelSource,
    signature: Signature,
    params: Mapping[str, Any],
    workgroup: tuple[int, ...],
    written: frozenset[str],
    check_bounds: bool,
) -> simt.Kernel:
    """Return the SIMT form of `source`'s kernel.

    Parameters
    ----------
    source: the analysed source string.
    signature: one argument type for each data parameter.
    params: the tunables' values.
    workgroup: the work-group size, one entry for each dimension of the ndrange.
    written: the parameters that the kernel may write; the others are refused as targets.
    check_bounds: check indices under `@inbounds` too.

    Raises
    ------
    UnsupportedError: the source uses a construct that this engine does not have, with its line.
    CompileError: the arguments do not fit the kernel's declared types.
    """
    cx = Context(source, _globals(source, params), workgroup, params, check_bounds, written)
    try:
        return _lowered(cx, signature)
    except (
        ArithmeticError,
        AssertionError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        if isinstance(error, JlkernError):
            raise
        raise CompileError(
            f"{source.origin.where(cx.line)}: the numba engine stumbles here ({type(error).__name__}: {error}); "
            "please report this kernel"
        ) from error


def _lowered(cx: Context, signature: Signature) -> simt.Kernel:
    source, workgroup = cx.source, cx.workgroup
    definition = source.kernel
    function = definition.function
    cx.inbounds = definition.inbounds
    cx.line = function.pos.line
    body = function.body.body
    _refuse_hoisting(cx, definition)
    leaving = any_return(function.body)
    if leaving is not None and definition.cpu:
        cx.unsupported("`return` in a kernel", "KernelAbstractions allows it with `@kernel cpu=false` only",
                       leaving.pos.line)  # fmt: skip
    if has_return(function.body):
        body = tail(body)
    made = _bind_params(cx, source, signature)
    planes = [p.layout for p in made if isinstance(p, simt.ParamArray) and p.ndim > 1]
    cx.row_major = planes.count("C") > len(planes) / 2
    for name in returned_names():
        cx.scope.declare(name)
    _bind_keywords(cx, function)
    own = {p.name for p in (*source.parameters, *function.kwparams) if p.name is not None}
    for name in assigned(n.Block(body), deep=False):
        if name not in own and name not in cx.scope.names:
            cx.scope.declare(name)
    for name in own & set(assigned(n.Block(body), deep=True)):
        slot = cx.scope.find(name)
        if slot is not None:
            cx.assign(slot, cx.bindings[slot])
    lower_block(cx, body)
    pruned = prune(tuple(cx.body))
    return simt.Kernel(
        name=source.name,
        params=made,
        workgroup=workgroup,
        body=pruned,
        memories=tuple(cx.memories),
        sites=tuple(cx.sites),
        masked=not definition.unsafe_indices,
        comments=cx.comments,
        undefined=_still_used(tuple(cx.undefined.values()), pruned),
    )


def _still_used(undefined: tuple[simt.Var, ...], body: tuple[simt.Stmt, ...]) -> tuple[simt.Var, ...]:
    names = used_names(body)
    return tuple(var for var in undefined if var.name in names)


def _globals(source: KernelSource, params: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    structs = {i.name for i in source.module.items if isinstance(i, n.StructDef)}
    for item in source.module.items:
        while isinstance(item, n.MacroCall) and item.args:
            item = item.args[-1]
        if isinstance(item, n.FunctionDef):
            own = _own_name(item.name)
            key = f"%constructors {own}" if own in structs or named_type(own) is not None else own
            found[key] = (*found.get(key, ()), item)
        elif isinstance(item, n.Const) and isinstance(item.assign.target, n.Name):
            found[item.assign.target.id] = item.assign.value
        elif isinstance(item, n.Const) and isinstance(item.assign.target, n.TupleExpr):
            for at, target in enumerate(item.assign.target.items):
                if isinstance(target, n.Name):
                    found[target.id] = n.Index(item.assign.value, (n.Literal(at + 1, "Int64"),), pos=item.pos)
        elif isinstance(item, n.Assign) and isinstance(item.target, n.Name):
            found[item.target.id] = item.value
        elif isinstance(item, (n.StructDef, n.AbstractDef)):
            found[item.name] = item
    for name, value in params.items():
        found[name] = from_canonical(value)
    return found


def _own_name(name: str) -> str:
    """Return the name of a function without the module that it extends: `Base.+` is `+`."""
    module, dot, own = name.partition(".")
    return own if dot and own and module.isidentifier() else name


def _bind_params(
    cx: Context, source: KernelSource, signature: Signature
) -> tuple[simt.ParamArray | simt.ParamScalar | None, ...]:
    function = source.kernel.function
    free = type_vars(cx, function.where, {})
    types: dict[str, Any] = {}
    made: list[simt.ParamArray | simt.ParamScalar | None] = []
    values: list[tuple[n.Param, Value]] = []
    for param, arg in zip(source.parameters, signature, strict=True):
        cx.at(param)
        value, entry = _argument(cx, param, arg)
        pattern = ANY if param.type is None else type_of_node(cx, param.type, free)
        if not match(type_of(value), pattern, types):
            where = source.origin.where(param.pos.line or cx.line)
            raise CompileError(
                f"{where}: the argument `{param.name}` is {type_of(value)}, and the kernel declares {pattern}; "
                "pass another type or change the declaration"
            )
        made.append(entry)
        values.append((param, value))
    trailing = function.params[len(source.parameters) :]
    for param, tunable in zip(trailing, source.vals, strict=False):
        cx.at(param)
        value = _val(cx, param, tunable)
        pattern = ANY if param.type is None else type_of_node(cx, param.type, free)
        if not match(type_of(value), pattern, types):
            no_method(cx, source.name, (value,))
        values.append((param, value))
    for name, known in types.items():
        if not name.startswith("%"):
            cx.bindings[cx.scope.declare(name)] = static_parameter(cx, known)
    for param, value in values:
        if param.name is not None:
            cx.bindings[cx.scope.declare(param.name)] = value
    return tuple(made)


def _bind_keywords(cx: Context, function: n.FunctionDef) -> None:
    """Bind keyword parameters to their defaults: a launch cannot pass others."""
    for param in function.kwparams:
        cx.at(param)
        if param.default is None:
            cx.unsupported(f"the keyword parameter `{param.name}` without a default", "a launch cannot pass it")
        if param.name is not None:
            value = lower(cx, param.default)
            cx.assign(cx.scope.declare(param.name), value)


def _val(cx: Context, param: n.Param, tunable: str | None) -> Value:
    if tunable is not None:
        return ValValue(_val_payload(cx.params[tunable]))
    assert param.default is not None
    outer, cx.scope = cx.scope, Scope(None, function=True)
    try:
        return lower(cx, param.default)
    finally:
        cx.scope = outer


def _val_payload(value: Any) -> Any:
    from jlkern.engines.numba.lower.values import Symbol

    return Symbol(value) if isinstance(value, str) else value


def _argument(cx: Context, param: n.Param, arg: ArgType) -> tuple[Value, simt.ParamArray | simt.ParamScalar | None]:
    name = param.name or "argument"
    if isinstance(arg, ArrayArg):
        return _array(cx, param, arg)
    if isinstance(arg, (ScalarArg, TupleArg)):
        var = cx.fresh(name, "int64").name
        leaves: list[str] = []
        value = _scalars(arg, var, leaves)
        return value, simt.ParamScalar(var, tuple(leaves))
    if isinstance(arg, TypeArg):
        return TypeValue(element(arg.dtype)), None
    if isinstance(arg, ValArg):
        return ValValue(_val_payload(arg.value)), None
    if isinstance(arg, FunctionArg):
        return _function(cx, arg.name), None
    raise CompileError(f"the argument `{name}` is of a kind that the numba engine does not take")


def _function(cx: Context, text: str) -> Value:
    from jlkern.syntax.parser import parse_expression

    return lower(cx, parse_expression(text))


def _scalars(arg: ArgType, var: str, leaves: list[str]) -> Value:
    if isinstance(arg, TupleArg):
        return Tuple(tuple(_scalars(item, var, leaves) for item in arg.items))
    assert isinstance(arg, ScalarArg)
    ty = element(arg.dtype)

    def leaf(prim: Prim) -> Scalar:
        leaves.append(prim.numpy)
        return Scalar(prim, simt.Special("arg", len(leaves) - 1, var, prim.numpy))

    return Complex(leaf(ty.elem), leaf(ty.elem)) if isinstance(ty, ComplexT) else leaf(ty)


def _array(cx: Context, param: n.Param, arg: ArrayArg) -> tuple[Value, simt.ParamArray]:
    elem = element(arg.dtype)
    if elem == FLOAT16:
        cx.unsupported(f"the Float16 array `{param.name}`", "the numba engine has Float32 and Float64")
    inner = elem.elem if isinstance(elem, ComplexT) else elem
    name = param.name or "array"
    memory = simt.Memory("param", cx.fresh(name, "int64").name, inner.numpy, 0, name)
    unit = {"F": 0, "C": arg.ndim - 1}.get(arg.layout, -1)
    strides: tuple[simt.Expr, ...] = tuple(
        simt.Lit(1, "int64") if d == unit else simt.Special("stride", d, memory.name) for d in range(arg.ndim)
    )
    shape = tuple(Scalar(INT64, simt.Special("size", d, memory.name)) for d in range(arg.ndim))
    writable = not param.const and (name in cx.written)
    value = Array(name, elem, memory, shape, strides, simt.Lit(0, "int64"), arg.layout == "F", writable)
    return value, simt.ParamArray(memory, arg.ndim, arg.layout, 2 if isinstance(elem, ComplexT) else 1)


# --- what KernelAbstractions 0.9 and 0.10 read differently ---

_MARKED = frozenset({"uniform", "private", "localmem"})


def _refuse_hoisting(cx: Context, definition: n.KernelDef) -> None:
    """Refuse sources that KernelAbstractions 0.9, which moves code, and 0.10, which does not, read differently."""
    if definition.unsafe_indices:
        return
    _check_block(cx, definition.function.body)
    if not has_barrier(definition.function.body):
        return
    indexed: set[str] = set()
    plain: dict[str, int] = {}
    _collect(definition.function.body, indexed, plain)
    for name in indexed & set(plain):
        cx.unsupported(
            f"`{name}` is set by @index and assigned again in a kernel with @synchronize",
            "KernelAbstractions versions disagree on its value afterwards; use another variable",
            plain[name],
        )


def _collect(node: n.Node, indexed: set[str], plain: dict[str, int]) -> None:
    if isinstance(node, n.Assign):
        is_index = isinstance(node.value, n.MacroCall) and node.value.name == "index" and node.op is None
        for name in target_names(node.target):
            if is_index:
                indexed.add(name)
            else:
                plain[name] = node.pos.line
    if isinstance(node, n.Lambda):
        return
    for child in children(node):
        _collect(child, indexed, plain)


def _marked(stmt: n.Node) -> n.Node | None:
    """Return what a statement that is moved to the start of its segment computes; None for other statements."""
    if isinstance(stmt, n.MacroCall) and stmt.name in _MARKED:
        return stmt
    if isinstance(stmt, n.Assign) and isinstance(stmt.value, n.MacroCall) and stmt.value.name in _MARKED:
        return stmt.value
    return None


def _check_block(cx: Context, block: n.Node) -> None:
    fresh: set[str] = set()
    read: set[str] = set()
    for stmt in block.body if isinstance(block, n.Block) else (block,):
        moved = _marked(stmt)
        if moved is not None:
            used = _names(moved) & fresh
            if used:
                name = sorted(used)[0]
                what = moved.name if isinstance(moved, n.MacroCall) else "uniform"
                cx.unsupported(
                    f"@{what} reads `{name}`, which an ordinary statement before it sets",
                    f"KernelAbstractions moves @{what} before it; set `{name}` with @uniform, or make it a constant",
                    stmt.pos.line,
                )
            inner = stmt.args[0] if isinstance(stmt, n.MacroCall) and stmt.args else stmt
            if isinstance(inner, n.Assign):
                _refuse_moved_before(cx, inner, read)
            continue
        if has_barrier(stmt):
            fresh.clear()
            read.clear()
            for child in children(stmt):
                if isinstance(child, n.Block):
                    _check_block(cx, child)
            continue
        fresh.update(assigned(stmt, deep=False))
        read.update(_names(stmt))


def _refuse_moved_before(cx: Context, stmt: n.Assign, read: set[str]) -> None:
    """Refuse a marked assignment that is moved before statements which read what it assigns."""
    used = set(target_names(stmt.target)) & read
    if used:
        name = sorted(used)[0]
        cx.unsupported(
            f"`{name}` is set by a marked statement that KernelAbstractions moves before a statement which reads it",
            "write @synchronize between them",
            stmt.pos.line,
        )


def _names(node: n.Node) -> set[str]:
    if isinstance(node, n.Name):
        return {node.id}
    if isinstance(node, n.Assign):
        return _names(node.value)
    found: set[str] = set()
    for child in children(node):
        found |= _names(child)
    return found

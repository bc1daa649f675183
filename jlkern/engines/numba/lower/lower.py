"""From the syntax tree to the SIMT form: expressions, statements, scopes, and calls, which are inlined.

This is an abstract interpreter: it runs the kernel once with types and known values in place of numbers, and writes down what
is left to do for each work-item. Julia's scoping and dispatch are followed; what cannot be followed is refused with its line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jlkern.engines.numba.lower import fold, simt
from jlkern.engines.numba.lower.arrays import load_index, store_index, view
from jlkern.engines.numba.lower.broadcast import broadcast
from jlkern.engines.numba.lower.construct import construct
from jlkern.engines.numba.lower.context import MAX_UNION, Context, Scope, truth
from jlkern.engines.numba.lower.conversion import convert, zero_of
from jlkern.engines.numba.lower.iterate import lower_for
from jlkern.engines.numba.lower.kernel_macros import MACROS
from jlkern.engines.numba.lower.methods import (
    apply_type,
    choose,
    fit,
    named_type,
    parents_of,
    static_parameter,
    type_of_node,
)
from jlkern.engines.numba.lower.powers import power
from jlkern.engines.numba.lower.registry import BUILTINS, no_method
from jlkern.engines.numba.lower.scan import assigned, has_return, returned_names, tail
from jlkern.engines.numba.lower.types import BOOL, FLOAT32, FLOAT64, PRIMS, Abstract, ComplexT, JType, Prim, StructT
from jlkern.engines.numba.lower.values import (
    Array,
    Cartesian,
    Closure,
    Complex,
    Composed,
    Function,
    Irrational,
    Namespace,
    Nothing,
    Pair,
    Range,
    Scalar,
    Static,
    Struct,
    Symbol,
    Text,
    Tuple,
    TypeValue,
    Union,
    Unstable,
    Value,
    ValValue,
    constant,
    leaves,
    rebuild,
    same_shape,
    type_of,
)
from jlkern.errors import UnsupportedError
from jlkern.syntax import nodes as n

MODULES = frozenset({"Base", "Core", "KernelAbstractions", "KA", "Atomix", "StaticArrays", "LinearAlgebra", "Math", "Extras",
                     "UnsafeAtomics", "FastMath", "Iterators", "SpecialFunctions"})  # fmt: skip
CONSTANTS: dict[str, Value] = {
    "π": Irrational("π", 3.141592653589793), "pi": Irrational("π", 3.141592653589793),
    "ℯ": Irrational("ℯ", 2.718281828459045),
    "Inf": constant(float("inf"), FLOAT64), "NaN": constant(float("nan"), FLOAT64),
    "Inf32": constant(float("inf"), FLOAT32), "NaN32": constant(float("nan"), FLOAT32),
    "Inf64": constant(float("inf"), FLOAT64), "NaN64": constant(float("nan"), FLOAT64),
    "nothing": Nothing(),
    "im": Complex(constant(False, BOOL), constant(True, BOOL)),
    "undef": Symbol("undef"),
}  # fmt: skip
_MAX_DEPTH = 60


def lower(cx: Context, node: n.Node) -> Value:
    """Lower an expression: emit what it does, return what it is."""
    cx.at(node)
    handler = _HANDLERS.get(type(node))
    if handler is None:
        cx.unsupported(f"{type(node).__name__} here")
    return handler(cx, node)


def scalar(cx: Context, node: n.Node, what: str) -> Scalar:
    """Lower an expression that must be a real number."""
    value = lower(cx, node)
    if not isinstance(value, Scalar):
        cx.unsupported(f"{what} must be a number, and is {type_of(value)}")
    return value


def condition(cx: Context, node: n.Node) -> Scalar:
    """Lower a condition, which must be a Bool."""
    value = lower(cx, node)
    if not isinstance(value, Scalar) or value.type != BOOL:
        cx.unsupported(f"a condition must be Bool, and is {type_of(value)}", "compare, as in `x != 0`")
    return value


# --- leaves ---


def _literal(cx: Context, node: n.Literal) -> Value:
    if node.type in PRIMS:
        assert isinstance(node.value, (int, float, bool))
        return constant(node.value, PRIMS[node.type])
    if node.type == "Symbol":
        return Symbol(str(node.value))
    if node.type == "String":
        return Text((str(node.value),))
    if node.type == "Nothing":
        return Nothing()
    cx.unsupported(f"a literal of type {node.type}")


def _name(cx: Context, node: n.Name) -> Value:
    slot = cx.scope.find(node.id)
    if slot is not None:
        value = cx.bindings.get(slot)
        if value is None:
            cx.unsupported(f"the variable `{node.id}` is used before it is assigned")
        if isinstance(value, Unstable):
            cx.unsupported(value.reason, "give it one type on all paths, as in `zero(eltype(x))`")
        return value
    return lookup_global(cx, node.id)


def lookup_global(cx: Context, name: str) -> Value:
    """Return what a global name means: the source's own definitions, then tunables and type parameters, then Julia's."""
    if name in cx.globals:
        found = cx.globals[name]
        if isinstance(found, Value):
            return found
        if isinstance(found, n.StructDef):
            return TypeValue(StructT(found.name, (), parents_of(cx, found)))
        if isinstance(found, n.AbstractDef):
            return TypeValue(Abstract(found.name, (), parents_of(cx, found)))
        if isinstance(found, tuple):
            return Function(name, found)
        outer_scope, outer_bounds, line = cx.scope, cx.inbounds, cx.line
        cx.scope, cx.inbounds = Scope(None, function=True), False
        try:
            return lower(cx, found)
        finally:
            cx.scope, cx.inbounds, cx.line = outer_scope, outer_bounds, line
    if name in CONSTANTS:
        return CONSTANTS[name]
    ty = None if name in BUILTINS else named_type(name)
    if ty is not None:
        return TypeValue(ty)
    if name in BUILTINS or name in ("^", ":"):
        return Function(name, (), True)
    if name in MODULES:
        return Namespace(name)
    if name in ("end", "begin"):
        cx.unsupported(f"`{name}` outside of an index")
    cx.unsupported(f"`{name}` is not defined", "define it in the source, or make it a parameter or a tunable")


# --- operators and calls ---


def _call(cx: Context, node: n.Call) -> Value:
    literal = node.func.id if isinstance(node.func, n.Name) else ""
    if literal == "^" and len(node.args) == 2 and cx.scope.find("^") is None and "^" not in cx.globals:
        base, exponent = (lower(cx, a) for a in node.args)
        if isinstance(base, Union) and not isinstance(exponent, Union):
            return by_option(cx, base, lambda v: power(cx, v, exponent, _is_literal_int(node.args[1])))
        return power(cx, base, exponent, _is_literal_int(node.args[1]))
    made = cx.globals.get("%new")
    if made is not None and (literal == "new" or (isinstance(node.func, n.Curly) and node.func.base == n.Name("new"))):
        given = [type_of_node(cx, a, {}) for a in node.func.args] if isinstance(node.func, n.Curly) else ()
        return new_struct(cx, made, StructT(made.name, tuple(given), parents_of(cx, made)), lower_args(cx, node.args))
    func = lower(cx, node.func)
    args = lower_args(cx, node.args)
    kwargs = {name: lower(cx, value) for name, value in node.kwargs}
    cx.at(node)
    return call(cx, func, args, kwargs)


def _is_literal_int(node: n.Node) -> bool:
    if isinstance(node, n.Literal):
        return node.type == "Int64"
    if isinstance(node, n.Call) and isinstance(node.func, n.Name) and node.func.id == "-" and len(node.args) == 1:
        return _is_literal_int(node.args[0])
    return False


def lower_args(cx: Context, args: tuple[n.Node, ...]) -> tuple[Value, ...]:
    """Lower the arguments of a call, with splats spread out."""
    values: list[Value] = []
    for arg in args:
        if isinstance(arg, n.Splat):
            values.extend(spread(cx, lower(cx, arg.value)))
        else:
            value = lower(cx, arg)
            if isinstance(value, Unstable):
                cx.unsupported(value.reason, "convert one of them, as in `zero(eltype(x))`")
            values.append(value)
    return tuple(values)


def spread(cx: Context, value: Value) -> tuple[Value, ...]:
    """Return the items of a value that can be splatted."""
    if isinstance(value, (Tuple, Static, Cartesian)):
        return value.items
    if isinstance(value, Scalar):
        return (value,)
    if isinstance(value, Array) and value.static is not None:
        count = 1
        for d in value.static:
            count *= d
        return tuple(load_index(cx, value, (constant(k + 1, PRIMS["Int64"]),)) for k in range(count))
    cx.unsupported(f"splatting a {type_of(value)}", "its length is not known at compile time")


def call(cx: Context, func: Value, args: tuple[Value, ...], kwargs: dict[str, Value] | None = None) -> Value:
    """Call a function value: a method of the source, a built-in, a closure, or a type as a constructor."""
    kwargs = kwargs or {}
    for at, arg in enumerate((func, *args)):
        if isinstance(arg, Union):
            parts = (func, *args)
            return by_option(cx, arg, lambda v, at=at, parts=parts: _call_with(cx, parts, at, v, kwargs))  # type: ignore[misc]
    if isinstance(func, Function) and not func.builtin:
        bound = choose(cx, func.name, func.methods, args)
        if bound is not None:
            return inline(cx, bound.method, bound.values, bound.types, Scope(None, function=True), kwargs)
        if func.name not in BUILTINS:
            no_method(cx, func.name, args)
        func = Function(func.name, (), True)
    if isinstance(func, Closure):
        bound = fit(cx, func.definition, args)
        if bound is None:
            no_method(cx, "#anonymous", args)
        scope = Scope(func.scope, function=True)
        return inline(cx, func.definition, bound.values, bound.types, scope, kwargs, func.inbounds)
    if isinstance(func, Composed):
        return func.call(cx, args)
    if kwargs:
        cx.unsupported(f"keyword arguments for `{getattr(func, 'name', type_of(func))}`")
    if isinstance(func, Function):
        if func.name == "^" and len(args) == 2:
            return power(cx, args[0], args[1], False)
        return BUILTINS[func.name](cx, args)
    if isinstance(func, TypeValue):
        return _construct(cx, func.type, args)
    cx.unsupported(f"a {type_of(func)} is called like a function")


def _call_with(cx: Context, parts: tuple[Value, ...], at: int, value: Value, kwargs: dict[str, Value]) -> Value:
    func, *args = (*parts[:at], value, *parts[at + 1 :])
    return call(cx, func, tuple(args), kwargs)


def by_option(cx: Context, value: Union, use: Callable[[Value], Value]) -> Value:
    """Do something with a value of several types: each of them in its own branch, as Julia splits unions."""

    def choose_from(options: tuple[tuple[int, Value], ...]) -> Value:
        (kind, option), rest = options[0], options[1:]
        if not rest:
            return use_option(option)
        here = cx.op("eq", "bool", value.tag.expr, simt.Lit(kind, "int64"))
        return branch(cx, truth(here), lambda: use_option(option), lambda: choose_from(rest))

    def use_option(option: Value) -> Value:
        if not isinstance(option, Nothing):
            return use(option)
        try:
            return use(option)
        except UnsupportedError:  # Julia too finds out at run time that there is no method for `nothing`
            cx.check(fold.TRUE, "KernelThrownError", "MethodError: `nothing` is used as a value")
            cx.dead = True
            return Nothing()

    return choose_from(value.options)


def _construct(cx: Context, ty: Any, args: tuple[Value, ...]) -> Value:
    if isinstance(ty, StructT):
        definition = cx.globals[ty.name]
        assert isinstance(definition, n.StructDef)
        inner = tuple(m for m in definition.methods if isinstance(m, n.FunctionDef))
        own = (*inner, *cx.globals.get(f"%constructors {ty.name}", ()))
        bound = choose(cx, ty.name, own, args)
        if bound is not None:
            types = {**dict(zip((p.id for p in bound.method.where if isinstance(p, n.Name)), ty.params, strict=False)),
                     **bound.types} if isinstance(bound.method, n.FunctionDef) else bound.types  # fmt: skip
            outer = cx.globals.get("%new")
            cx.globals["%new"] = definition
            try:
                return inline(cx, bound.method, bound.values, types, Scope(None, function=True), {})
            finally:
                cx.globals["%new"] = outer
        if inner:
            no_method(cx, ty.name, args)
        return new_struct(cx, definition, ty, args)
    name = str(ty.name) if isinstance(ty, Abstract) else str(ty)
    own = cx.globals.get(f"%constructors {name}")
    if isinstance(own, tuple):
        bound = choose(cx, name, own, args)
        if bound is not None:
            return inline(cx, bound.method, bound.values, bound.types, Scope(None, function=True), {})
    return construct(cx, ty, args)


def new_struct(cx: Context, definition: n.StructDef, ty: StructT, args: tuple[Value, ...]) -> Value:
    """Make an instance of a struct: fields are converted where their type is fixed, type parameters found by matching."""
    from jlkern.engines.numba.lower.methods import type_vars
    from jlkern.engines.numba.lower.types import match

    if definition.mutable:
        cx.unsupported(f"the mutable struct `{definition.name}`", "kernels take immutable ones")
    if len(args) != len(definition.fields):
        no_method(cx, definition.name, args)
    free = type_vars(cx, definition.params, {})
    types: dict[str, Any] = dict(zip(free, ty.params, strict=False))
    fields: list[Value] = []
    for (_, annotation), arg in zip(definition.fields, args, strict=True):
        if annotation is None:
            fields.append(arg)
            continue
        pattern = type_of_node(cx, annotation, free)
        if isinstance(pattern, (Prim, ComplexT)):
            arg = convert(cx, arg, pattern)
        elif (
            getattr(pattern, "name", None) in types and isinstance(types[pattern.name], (Prim, ComplexT)) and ty.params
        ):
            arg = convert(cx, arg, types[pattern.name])
        elif not match(type_of(arg), pattern, types):
            no_method(cx, definition.name, args)
        fields.append(arg)
    params = tuple(types.get(name) for name in free)
    return Struct(definition, StructT(definition.name, params, ty.parents), tuple(fields))


def inline(
    cx: Context,
    method: n.FunctionDef | n.Lambda,
    values: tuple[tuple[n.Param, Value | None], ...],
    types: dict[str, Any],
    scope: Scope,
    kwargs: dict[str, Value],
    inbounds: bool = False,
) -> Value:
    """Lower the body of a method in place of its call."""
    name = method.name if isinstance(method, n.FunctionDef) else "an anonymous function"
    if cx.depth >= _MAX_DEPTH:
        cx.unsupported(f"`{name}` calls itself too deeply", "write it as a loop")
    outer_scope, outer_inbounds, outer_line, outer_dead = cx.scope, cx.inbounds, cx.line, cx.dead
    outer_loops, cx.loops = cx.loops, []
    body = method.body.body if isinstance(method.body, n.Block) else (method.body,)
    cx.scope, cx.depth = scope, cx.depth + 1
    cx.inbounds = inbounds
    try:
        for variable, known in types.items():
            if not variable.startswith("%"):
                cx.bindings[scope.declare(variable)] = static_parameter(cx, known)
        own = set(assigned(n.Block(body), deep=True))
        for param, value in values:
            _bind_param(cx, param, value, own)
        if isinstance(method, n.FunctionDef):
            _bind_keywords(cx, method, kwargs, own)
        elif kwargs:
            cx.unsupported("keyword arguments for an anonymous function")
        params = {p.name for p, _ in values}
        if has_return(n.Block(body)):
            body = tail(body)
            for special in returned_names():
                scope.declare(special)
        for variable in assigned(n.Block(body), deep=False):
            if variable not in params and variable not in scope.names and (
                isinstance(method, n.FunctionDef) or scope.find(variable) is None
            ):  # fmt: skip
                scope.declare(variable)
        result = lower_block(cx, body)
        if isinstance(method, n.FunctionDef) and method.returns is not None:
            result = ascribe(cx, result, type_of_node(cx, method.returns, {}), conversion=True)
        return result
    finally:
        cx.scope, cx.inbounds, cx.line = outer_scope, outer_inbounds, outer_line
        cx.depth -= 1
        cx.loops = outer_loops
        if not cx.dead:
            cx.dead = outer_dead


def _bind_param(cx: Context, param: n.Param, value: Value | None, own: set[str]) -> None:
    if value is None:
        assert param.default is not None
        value = lower(cx, param.default)
    if param.name is None:
        return
    slot = cx.scope.declare(param.name)
    if param.name in own:
        cx.assign(slot, value)
    else:
        cx.bindings[slot] = cx.hold_all(value)


def _bind_keywords(cx: Context, method: n.FunctionDef, kwargs: dict[str, Value], own: set[str]) -> None:
    for param in method.kwparams:
        value = kwargs.get(param.name or "")
        if value is None and param.default is None:
            cx.unsupported(f"`{method.name}` needs the keyword argument `{param.name}`")
        _bind_param(cx, param, value, own)
    unknown = set(kwargs) - {p.name for p in method.kwparams}
    if unknown:
        cx.unsupported(f"`{method.name}` has no keyword argument `{sorted(unknown)[0]}`")


# --- compound expressions ---


def _compare(cx: Context, node: n.Compare) -> Value:
    """`a < b < c` is `a < b && b < c` with `b` evaluated once."""
    operands = [cx.hold_all(lower(cx, operand)) for operand in node.operands]
    result: simt.Expr = fold.TRUE
    for at, op in enumerate(node.ops):
        part = call(cx, lookup_global(cx, op), (operands[at], operands[at + 1]))
        if not isinstance(part, Scalar):
            cx.unsupported(f"the comparison `{op}` gives a {type_of(part)}")
        result = cx.op("and", "bool", result, part.expr)
    return truth(result)


def _short_circuit(cx: Context, node: n.ShortCircuit) -> Value:
    left = condition(cx, node.left)
    stop = node.op == "||"
    if left.is_const:
        return left if bool(left.const) == stop else lower(cx, node.right)
    before = dict(cx.bindings)
    with cx.block() as body:
        right = lower(cx, node.right)
        dead = cx.dead
    if not body and not dead and isinstance(right, Scalar) and right.type == BOOL and cx.bindings == before:
        return truth(cx.op("or" if stop else "and", "bool", left.expr, right.expr))
    after, cx.bindings = cx.bindings, before
    cond = cx.op("not", "bool", left.expr) if stop else left.expr
    if isinstance(right, Scalar) and right.type == BOOL and not dead:
        result = cx.fresh("t", "bool")
        cx.emit(simt.Assign(result, fold.TRUE if stop else fold.FALSE))
        body.append(simt.Assign(result, right.expr))
        value: Value = Scalar(BOOL, result)
    else:
        value = Nothing()  # used as a statement: `i > n && return`
    empty: list[simt.Stmt] = []
    cx.bindings = before if dead else cx.merge(after, before, body, empty)
    cx.emit(simt.If(cond, tuple(body), () if dead else tuple(empty)))
    return value


def _if(cx: Context, node: n.If) -> Value:
    cond = condition(cx, node.cond)
    orelse = node.orelse
    return branch(cx, cond, lambda: lower(cx, node.then), Nothing if orelse is None else lambda: lower(cx, orelse))


def branch(cx: Context, cond: Scalar, then: Callable[[], Value], orelse: Callable[[], Value]) -> Value:
    """Lower two branches and join what they bind and are."""
    if cond.is_const:
        return then() if cond.const else orelse()
    cond = cx.hold(cond)
    line = cx.line
    before = dict(cx.bindings)
    with cx.block() as then_body:
        a = then()
        a_dead = cx.dead
    a_bindings, cx.bindings = cx.bindings, dict(before)
    with cx.block() as else_body:
        b = orelse()
        b_dead = cx.dead
    b_bindings = cx.bindings
    cx.line = line
    if a_dead or b_dead:
        cx.bindings = a_bindings if b_dead else b_bindings
        value = Nothing() if a_dead and b_dead else b if a_dead else a
        cx.emit(simt.If(cond.expr, tuple(then_body), tuple(else_body)))
        cx.dead = cx.dead or (a_dead and b_dead)
        return value
    value = _join_values(cx, cond, a, b, then_body, else_body)
    cx.bindings = cx.merge(a_bindings, b_bindings, then_body, else_body)
    if then_body or else_body:
        cx.emit(simt.If(cond.expr, tuple(then_body), tuple(else_body)))
    return value


def _join_values(
    cx: Context, cond: Scalar, a: Value, b: Value, a_body: list[simt.Stmt], b_body: list[simt.Stmt]
) -> Value:
    if isinstance(a, Unstable) or isinstance(b, Unstable):
        return a if isinstance(a, Unstable) else b
    if not same_shape(a, b):
        return _unite_values(cx, cond, a, b, a_body, b_body)
    joined = []
    for x, y in zip(leaves(a), leaves(b), strict=True):
        if x.expr == y.expr:
            joined.append(x)
        elif not a_body and not b_body:
            joined.append(cx.scalar("select", x.type, cond.expr, x.expr, y.expr))
        else:
            var = cx.fresh("t", x.type.numpy)
            a_body.append(simt.Assign(var, x.expr))
            b_body.append(simt.Assign(var, y.expr))
            joined.append(Scalar(x.type, var))
    return rebuild(a, iter(joined))


def _unite_values(
    cx: Context, cond: Scalar, a: Value, b: Value, a_body: list[simt.Stmt], b_body: list[simt.Stmt]
) -> Value:
    """Make a union of what two branches give; each side sets what is its own, the rest is zero there."""
    left, right = dict(cx.options(a)), dict(cx.options(b))
    if len({**left, **right}) > MAX_UNION:
        return Unstable(f"the value is {type_of(a)} in one branch and {type_of(b)} in the other")

    def tag(value: Value) -> simt.Expr:
        return value.tag.expr if isinstance(value, Union) else simt.Lit(cx.kind(value), "int64")

    def pick(ty: Prim, x: simt.Expr, y: simt.Expr) -> Scalar:
        if not a_body and not b_body:
            return cx.scalar("select", ty, cond.expr, x, y)
        var = cx.fresh("t", ty.numpy)
        a_body.append(simt.Assign(var, x))
        b_body.append(simt.Assign(var, y))
        return Scalar(ty, var)

    options = []
    for kind, shape in sorted({**left, **right}.items()):
        xs = [x.expr for x in leaves(left[kind])] if kind in left else None
        ys = [y.expr for y in leaves(right[kind])] if kind in right else None
        made = []
        for at, leaf in enumerate(leaves(shape)):
            zero = zero_of(leaf.type).expr
            made.append(pick(leaf.type, xs[at] if xs else zero, ys[at] if ys else zero))
        options.append((kind, rebuild(shape, iter(made))))
    return Union(pick(PRIMS["Int64"], tag(a), tag(b)), tuple(options))


def _tuple(cx: Context, node: n.TupleExpr) -> Value:
    return Tuple(lower_args(cx, node.items), node.names)


def _index(cx: Context, node: n.Index) -> Value:
    obj = lower(cx, node.obj)
    if isinstance(obj, TypeValue):
        cx.unsupported("a typed array literal", "kernels do not allocate; use a tuple or SVector")
    args = index_args(cx, obj, node.args)
    cx.at(node)
    if cx.views and any(isinstance(a, (Range, Symbol)) for a in args) and isinstance(obj, Array):
        return view(cx, obj, args)
    return load_index(cx, obj, args)


def index_args(cx: Context, obj: Value, args: tuple[n.Node, ...]) -> tuple[Value, ...]:
    """Lower the arguments of an index; `end` and `begin` mean the object's own."""
    values: list[Value] = []
    for at, arg in enumerate(args):
        if isinstance(arg, n.Name) and arg.id == ":":
            values.append(Symbol(":"))
            continue
        saved = cx.globals.get("end"), cx.globals.get("begin")
        uses_end = _mentions_end(arg)
        if uses_end:
            last = (obj,) if len(args) == 1 else (obj, constant(at + 1, PRIMS["Int64"]))
            cx.globals["end"] = BUILTINS["lastindex"](cx, last)
            cx.globals["begin"] = constant(1, PRIMS["Int64"])
        try:
            if isinstance(arg, n.Splat):
                values.extend(spread(cx, lower(cx, arg.value)))
            else:
                values.append(lower(cx, arg))
        finally:
            if uses_end:
                for key, old in zip(("end", "begin"), saved, strict=True):
                    cx.globals.pop(key)
                    if old is not None:
                        cx.globals[key] = old
    return tuple(values)


def _mentions_end(node: n.Node) -> bool:
    from jlkern.engines.numba.lower.scan import children

    if isinstance(node, n.Name):
        return node.id in ("end", "begin")
    return any(_mentions_end(c) for c in children(node))


def _field(cx: Context, node: n.Field) -> Value:
    obj = lower(cx, node.obj)
    return get_field(cx, obj, node.name)


def get_field(cx: Context, obj: Value, name: str) -> Value:
    """`obj.name`."""
    if isinstance(obj, Namespace):
        return Namespace(name) if name in MODULES else lookup_global(cx, name)
    if isinstance(obj, Struct):
        for (field, _), value in zip(obj.definition.fields, obj.fields, strict=True):
            if field == name:
                return value
    if isinstance(obj, Tuple) and obj.names is not None and name in obj.names:
        return obj.items[obj.names.index(name)]
    if isinstance(obj, Complex) and name in ("re", "im"):
        return obj.re if name == "re" else obj.im
    if isinstance(obj, Static) and len(obj.dims) == 1 and name in ("x", "y", "z", "w"):
        return obj.items["xyzw".index(name)]
    if isinstance(obj, Cartesian) and name == "I":
        return Tuple(obj.items)
    if isinstance(obj, Pair) and name in ("first", "second"):
        return obj.first if name == "first" else obj.second
    if name in ("start", "stop") and hasattr(obj, name):
        found = getattr(obj, name)
        assert isinstance(found, Value)
        return found
    cx.unsupported(f"the field `{name}` of a {type_of(obj)}")


def _curly(cx: Context, node: n.Curly) -> Value:
    return TypeValue(apply_type(cx, node, {}))


def _typed(cx: Context, node: n.Typed) -> Value:
    if node.value is None:
        cx.unsupported("`::T` without a value here")
    return ascribe(cx, lower(cx, node.value), type_of_node(cx, node.type, {}), conversion=False)


def ascribe(cx: Context, value: Value, ty: Any, *, conversion: bool) -> Value:
    """`value::T`: check the type, or convert to it where Julia converts (declared variables and results)."""
    from jlkern.engines.numba.lower.types import match

    if match(type_of(value), ty, {}):
        return value
    if conversion and isinstance(ty, (Prim, ComplexT)):
        return convert(cx, value, ty)
    cx.unsupported(f"a value of type {type_of(value)} is asserted to be {ty}")


def _dot_call(cx: Context, node: n.DotCall) -> Value:
    if isinstance(node.func, n.Name) and node.func.id == "^" and len(node.args) == 2 and _is_literal_int(node.args[1]):
        return broadcast(cx, lambda xs: power(cx, xs[0], xs[1], True), lower_args(cx, node.args))
    func = lower(cx, node.func)
    args = lower_args(cx, node.args)
    cx.at(node)
    return broadcast(cx, lambda xs: call(cx, func, xs), args)


def _lambda(cx: Context, node: n.Lambda) -> Value:
    return Closure(node, cx.scope, cx.key(), cx.inbounds)


def _function(cx: Context, node: n.FunctionDef) -> Value:
    closure = Closure(node, cx.scope, cx.key(), False)
    slot = cx.scope.find(node.name) or cx.scope.declare(node.name)
    cx.bindings[slot] = closure
    return closure


def _vector(cx: Context, node: n.VectorExpr) -> Value:
    cx.unsupported("an array literal `[...]`", "kernels do not allocate; use a tuple, `SVector` or `@SVector`")


def _interpolated(cx: Context, node: n.Interpolated) -> Value:
    parts: list[str | Value] = []
    for part in node.parts:
        value = lower(cx, part)
        parts.extend(value.parts if isinstance(value, Text) else (value,))
    return Text(tuple(parts))


# --- statements ---


def lower_block(cx: Context, body: tuple[n.Node, ...]) -> Value:
    """Lower statements in order; the value is the last one's."""
    value: Value = Nothing()
    for stmt in body:
        if cx.dead:
            break
        value = lower(cx, stmt)
    return value


def _block(cx: Context, node: n.Block) -> Value:
    return lower_block(cx, node.body)


def _assign(cx: Context, node: n.Assign) -> Value:
    if node.dotted:
        cx.unsupported("a broadcast assignment `.=`", "write a loop over the elements")
    if node.op is not None:
        return _update(cx, node)
    cx.hint = node.target.id if isinstance(node.target, n.Name) else ""
    value = lower(cx, node.value)
    cx.hint = ""
    if isinstance(value, Unstable):
        cx.unsupported(value.reason, "convert one of them, as in `zero(eltype(x))`")
    store(cx, node.target, value)
    return value


def _update(cx: Context, node: n.Assign) -> Value:
    """`target op= value`: the target's parts are evaluated once."""
    assert node.op is not None
    target = node.target
    operator = _operator(cx, node.op)
    if isinstance(target, n.Index):
        obj = lower(cx, target.obj)
        args = tuple(cx.hold_all(a) for a in index_args(cx, obj, target.args))
        old = load_index(cx, obj, args)
        new = operator(old, lower(cx, node.value))
        cx.at(node)
        store_index(cx, obj, args, new)
        return new
    old = lower(cx, target)
    new = operator(old, lower(cx, node.value))
    cx.at(node)
    store(cx, target, new)
    return new


def _operator(cx: Context, op: str) -> Callable[[Value, Value], Value]:
    if op == "^":
        return lambda a, b: power(cx, a, b, False)
    func = lookup_global(cx, op)
    return lambda a, b: call(cx, func, (a, b))


def store(cx: Context, target: n.Node, value: Value) -> None:
    """Store a value into the target of an assignment."""
    if isinstance(target, n.Name):
        if target.id == "_":
            return
        slot = cx.scope.find(target.id)
        if slot is None:
            slot = cx.scope.declare(target.id)
        declared = cx.globals.get(f"%declared {id(slot)}")
        if declared is not None:
            value = ascribe(cx, value, declared, conversion=True)
        cx.assign(slot, value)
    elif isinstance(target, n.Index):
        obj = lower(cx, target.obj)
        store_index(cx, obj, index_args(cx, obj, target.args), value)
    elif isinstance(target, n.TupleExpr):
        _destructure(cx, target, value)
    elif isinstance(target, n.Typed) and isinstance(target.value, n.Name):
        ty = type_of_node(cx, target.type, {})
        slot = cx.scope.find(target.value.id) or cx.scope.declare(target.value.id)
        cx.globals[f"%declared {id(slot)}"] = ty
        store(cx, target.value, value)
    elif isinstance(target, n.Field):
        cx.unsupported("assignment to a field", "structs in kernels are immutable; make a new one")
    else:
        cx.unsupported("this target of an assignment")


def _destructure(cx: Context, target: n.TupleExpr, value: Value) -> None:
    items = list(spread(cx, value)) if not isinstance(value, Pair) else [value.first, value.second]
    if isinstance(value, Scalar) and len(target.items) > 1:
        cx.unsupported(f"{len(target.items)} variables assigned from one number")
    if target.names is not None:  # (; a, b) = nt
        items = [get_field(cx, value, name) for name in target.names]
    if len(target.items) > 1:
        items = [cx.snapshot(v) if not isinstance(v, Array) else v for v in items]
    for at, part in enumerate(target.items):
        if isinstance(part, n.Splat):
            after = len(target.items) - at - 1
            store(cx, part.value, Tuple(tuple(items[at : len(items) - after])))
            items = [*items[:at], Nothing(), *items[len(items) - after :]]
            continue
        if at >= len(items):
            cx.unsupported(f"{len(target.items)} variables are assigned from a {type_of(value)}")
        store(cx, part, items[at])


def _local(cx: Context, node: n.Local) -> Value:
    value: Value = Nothing()
    for item in node.items:
        name = item if isinstance(item, n.Name) else item.target if isinstance(item, n.Assign) else item
        while isinstance(name, n.Typed) and name.value is not None:
            name = name.value
        if isinstance(name, n.Name) and name.id not in cx.scope.names:
            cx.scope.declare(name.id)
        if isinstance(item, n.Assign):
            value = lower(cx, item)
        elif isinstance(item, n.Typed) and isinstance(name, n.Name):
            slot = cx.scope.find(name.id)
            cx.globals[f"%declared {id(slot)}"] = type_of_node(cx, item.type, {})
    return value


def _let(cx: Context, node: n.Let) -> Value:
    if has_return(node):
        cx.unsupported("`return` inside `let`")
    outer = cx.scope
    try:
        for name, init in node.bindings:
            value = None if init is None else lower(cx, init)
            cx.scope = Scope(cx.scope)
            slot = cx.scope.declare(name)
            if value is not None:
                cx.assign(slot, value)
        cx.scope = Scope(cx.scope)
        for name in assigned(node.body, deep=False):
            if cx.scope.find(name) is None:
                cx.scope.declare(name)
        return lower_block(cx, node.body.body)
    finally:
        cx.scope = outer


def _while(cx: Context, node: n.While) -> Value:
    from jlkern.engines.numba.lower.iterate import loop

    header: list[simt.Stmt] = []
    cond: list[Scalar] = []

    def body() -> None:
        with cx.block() as stmts:
            cond.append(condition(cx, node.cond))
        header.extend(stmts)
        if cond[0].is_const and not cond[0].const:
            cx.dead = True
        scope = cx.scope
        cx.scope = Scope(scope)
        for name in assigned(node.body, deep=False):
            if cx.scope.find(name) is None:
                cx.scope.declare(name)
        try:
            lower_block(cx, node.body.body)
        finally:
            cx.scope = scope

    stmts = loop(cx, (node.cond, node.body), body)
    if not (cond[0].is_const and not cond[0].const):
        cx.emit(simt.While(tuple(header), cond[0].expr, tuple(stmts)))
    return Nothing()


def _for(cx: Context, node: n.For) -> Value:
    lower_for(cx, node)
    return Nothing()


def _break(cx: Context, node: n.Break) -> Value:
    if not cx.loops:
        cx.unsupported("`break` outside of a loop of this function")
    cx.emit(simt.Break())
    cx.loops[-1].append(dict(cx.bindings))
    cx.dead = True
    return Nothing()


def _continue(cx: Context, node: n.Continue) -> Value:
    if not cx.loops:
        cx.unsupported("`continue` outside of a loop of this function")
    cx.emit(simt.Continue())
    cx.loops[-1].append(dict(cx.bindings))
    cx.dead = True
    return Nothing()


def _return(cx: Context, node: n.Return) -> Value:
    cx.unsupported("`return` in this place", "return from a branch or a loop of the function's own body")


def _macro(cx: Context, node: n.MacroCall) -> Value:
    handler = MACROS.get(node.name)
    if handler is None:
        cx.unsupported(f"the macro `@{node.name}`")
    return handler(cx, node)


def _unsupported(cx: Context, node: n.Unsupported) -> Value:
    cx.unsupported(node.what)


def _using(cx: Context, node: n.Node) -> Value:
    return Nothing()


_HANDLERS: dict[type[n.Node], Callable[[Context, Any], Value]] = {
    n.Literal: _literal,
    n.Name: _name,
    n.Call: _call,
    n.DotCall: _dot_call,
    n.Compare: _compare,
    n.ShortCircuit: _short_circuit,
    n.Index: _index,
    n.Field: _field,
    n.TupleExpr: _tuple,
    n.VectorExpr: _vector,
    n.MatrixExpr: _vector,
    n.Curly: _curly,
    n.Typed: _typed,
    n.Interpolated: _interpolated,
    n.Block: _block,
    n.If: _if,
    n.Assign: _assign,
    n.For: _for,
    n.While: _while,
    n.Break: _break,
    n.Continue: _continue,
    n.Return: _return,
    n.Let: _let,
    n.Local: _local,
    n.MacroCall: _macro,
    n.Lambda: _lambda,
    n.FunctionDef: _function,
    n.Unsupported: _unsupported,
    n.Using: _using,
}

__all__ = ["JType", "ValValue", "branch", "call", "condition", "lower", "lower_args", "lower_block", "scalar", "spread"]

"""Branches, and the values of several types that they make: unions, split again where they are used."""

from __future__ import annotations

from collections.abc import Callable

from jlkern.engines.numba.lower import fold, simt
from jlkern.engines.numba.lower.context import MAX_UNION, Context, truth
from jlkern.engines.numba.lower.conversion import zero_of
from jlkern.engines.numba.lower.core import condition, handles, lower
from jlkern.engines.numba.lower.types import PRIMS, Prim
from jlkern.engines.numba.lower.values import (
    Nothing,
    Scalar,
    Union,
    Unstable,
    Value,
    leaves,
    rebuild,
    same_shape,
    type_of,
)
from jlkern.errors import UnsupportedError
from jlkern.syntax import nodes as n


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


@handles(n.If)
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

"""Structs of the source: constructors and fields; fields of everything else."""

from __future__ import annotations

from typing import Any

from jlkern.engines.numba.lower.branches import by_option
from jlkern.engines.numba.lower.construct import construct
from jlkern.engines.numba.lower.context import Context, Scope
from jlkern.engines.numba.lower.conversion import convert
from jlkern.engines.numba.lower.core import handles, lower
from jlkern.engines.numba.lower.inlining import inline
from jlkern.engines.numba.lower.methods import choose, type_of_node
from jlkern.engines.numba.lower.names import MODULES, lookup_global
from jlkern.engines.numba.lower.registry import no_method
from jlkern.engines.numba.lower.types import Abstract, ComplexT, Prim, StructT
from jlkern.engines.numba.lower.values import (
    Cartesian,
    Complex,
    Namespace,
    Pair,
    Static,
    Struct,
    Tuple,
    Union,
    Value,
    type_of,
)
from jlkern.syntax import nodes as n


def construct_type(cx: Context, ty: Any, args: tuple[Value, ...]) -> Value:
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
    outer = cx.globals.get(f"%constructors {name}")
    if isinstance(outer, tuple):
        bound = choose(cx, name, outer, args)
        if bound is not None:
            return inline(cx, bound.method, bound.values, bound.types, Scope(None, function=True), {})
    return construct(cx, ty, args)


def new_struct(cx: Context, definition: n.StructDef, ty: StructT, args: tuple[Value, ...]) -> Value:
    """Make a struct: fields are converted where their type is fixed, type parameters found by matching."""
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


@handles(n.Field)
def _field(cx: Context, node: n.Field) -> Value:
    obj = lower(cx, node.obj)
    return get_field(cx, obj, node.name)


def get_field(cx: Context, obj: Value, name: str) -> Value:
    """`obj.name`."""
    if isinstance(obj, Union):
        return by_option(cx, obj, lambda option: get_field(cx, option, name))
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

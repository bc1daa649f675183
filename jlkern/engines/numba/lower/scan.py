"""Questions about the syntax tree that lowering asks before it goes in: what is assigned, where control can leave."""

from __future__ import annotations

from collections.abc import Iterator

from jlkern.syntax import nodes as n


def children(node: n.Node) -> Iterator[n.Node]:
    """Yield the nodes directly below a node."""
    for name in getattr(node, "__dataclass_fields__", ()):
        if name != "pos":
            yield from _nodes(getattr(node, name))


def _nodes(value: object) -> Iterator[n.Node]:
    if isinstance(value, n.Node):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _nodes(item)


def assigned(node: n.Node, *, deep: bool) -> Iterator[str]:
    """Yield the names that a node assigns in its own scope; with `deep`, in loops, closures and blocks below it too."""
    if isinstance(node, n.Assign):
        yield from target_names(node.target)
        yield from assigned(node.value, deep=deep)
        if isinstance(node.target, n.Index):
            for arg in node.target.args:
                yield from assigned(arg, deep=deep)
    elif isinstance(node, n.FunctionDef):
        yield node.name
        if deep:
            yield from assigned(node.body, deep=True)
    elif isinstance(node, n.Local):
        for item in node.items:
            if isinstance(item, n.Name):
                yield item.id
            else:
                yield from assigned(item, deep=deep)
    elif isinstance(node, n.For):
        for target, values in node.bindings:
            if deep:
                yield from target_names(target)
            yield from assigned(values, deep=deep)
        if deep:
            yield from assigned(node.body, deep=True)
    elif isinstance(node, (n.While, n.Let, n.Lambda)):
        if deep:
            for child in children(node):
                yield from assigned(child, deep=True)
    elif isinstance(node, (n.Call, n.DotCall, n.TupleExpr)):
        for child in children(node):
            yield from assigned(child, deep=deep)
    else:
        for child in children(node):
            yield from assigned(child, deep=deep)


def target_names(target: n.Node) -> Iterator[str]:
    """Yield the names that an assignment's target binds."""
    if isinstance(target, n.Name):
        yield target.id
    elif isinstance(target, n.TupleExpr):
        for item in target.items:
            yield from target_names(item)
    elif isinstance(target, n.Typed) and target.value is not None:
        yield from target_names(target.value)
    elif isinstance(target, n.Splat):
        yield from target_names(target.value)


def has_return(node: n.Node) -> bool:
    """Tell whether a node holds a `return` of the function that it is in."""
    if isinstance(node, n.Return):
        return True
    if isinstance(node, (n.Lambda, n.FunctionDef)):
        return False
    return any(has_return(child) for child in children(node))


def any_return(node: n.Node) -> n.Node | None:
    """Return the first `return` at or below a node, in functions inside it too."""
    return find(node, n.Return)


def find(node: n.Node, kind: type[n.Node]) -> n.Node | None:
    """Return the first node of a kind at or below a node."""
    if isinstance(node, kind):
        return node
    for child in children(node):
        found = find(child, kind)
        if found is not None:
            return found
    return None


def has_barrier(node: n.Node) -> bool:
    """Tell whether a node holds `@synchronize`."""
    if isinstance(node, n.MacroCall) and node.name == "synchronize":
        return True
    return any(has_barrier(child) for child in children(node))


_RETURNED, _RESULT = "%returned", "%result"


def tail(body: tuple[n.Node, ...]) -> tuple[n.Node, ...]:
    """Return statements that mean the same without `return`: each result is the value of the last statement instead.

    What follows a branch that may return moves into the other branch; a `return` in a loop sets a flag and breaks.
    """
    for at, stmt in enumerate(body):
        rest = body[at + 1 :]
        if isinstance(stmt, n.Return):
            value = stmt.value if stmt.value is not None else n.Name("nothing", pos=stmt.pos)
            return (*body[:at], value)
        if not has_return(stmt):
            continue
        if isinstance(stmt, n.ShortCircuit):
            then = n.Block((stmt.right,), pos=stmt.pos)
            cond = stmt.left if stmt.op == "&&" else n.Call(n.Name("!"), (stmt.left,), pos=stmt.pos)
            stmt = n.If(cond, then, None, pos=stmt.pos)
        if isinstance(stmt, n.If):
            orelse = _statements(stmt.orelse) if stmt.orelse is not None else ()
            then_body = tail((*_statements(stmt.then), *rest))
            else_body = tail((*orelse, *rest)) if orelse or rest else (n.Name("nothing", pos=stmt.pos),)
            made = n.If(stmt.cond, n.Block(then_body, pos=stmt.pos), n.Block(else_body, pos=stmt.pos), pos=stmt.pos)
            return (*body[:at], made)
        if isinstance(stmt, n.Block):
            return tail((*body[:at], *stmt.body, *rest))
        if isinstance(stmt, n.MacroCall) and len(stmt.args) == 1:
            if stmt.name == "inbounds":
                rest_outside = (n.MacroCall("%outbounds", (n.Block(rest),), pos=stmt.pos),) if rest else ()
                inner = tail((*_statements(stmt.args[0]), *rest_outside))
                return (*body[:at], n.MacroCall("inbounds", (n.Block(inner, pos=stmt.pos),), pos=stmt.pos))
            if stmt.name.startswith("%"):
                inner = tail((*_statements(stmt.args[0]), *rest))
                return (*body[:at], n.MacroCall(stmt.name, (n.Block(inner, pos=stmt.pos),), pos=stmt.pos))
            return tail((*body[:at], stmt.args[0], *rest))
        if isinstance(stmt, (n.For, n.While)):
            loop = _flag_returns(stmt)
            if isinstance(stmt, n.While) and stmt.cond == n.Literal(True, "Bool") and not breaks(stmt.body):
                return (*body[:at], loop, n.Name(_RESULT, pos=stmt.pos))  # nothing else ends it
            return (*body[:at], *_with_flag(stmt, loop, rest))
        if isinstance(stmt, n.Let):
            if not rest:
                return (*body[:at], n.Let(stmt.bindings, n.Block(tail(stmt.body.body)), pos=stmt.pos))
            return (*body[:at], *_with_flag(stmt, _flag_returns(stmt), rest))
        return body  # refused where the return is met
    return body


def _with_flag(stmt: n.Node, made: n.Node, rest: tuple[n.Node, ...]) -> tuple[n.Node, ...]:
    start = n.Assign(n.Name(_RETURNED), n.Literal(False, "Bool"), pos=stmt.pos)
    after = n.If(
        n.Name(_RETURNED, pos=stmt.pos),
        n.Block((n.Name(_RESULT, pos=stmt.pos),), pos=stmt.pos),
        n.Block(tail(rest) or (n.Name("nothing"),), pos=stmt.pos),
        pos=stmt.pos,
    )
    return start, made, after


def breaks(node: n.Node) -> bool:
    """Tell whether a loop's body has a `break` of that loop."""
    if isinstance(node, n.Break):
        return True
    if isinstance(node, (n.For, n.While, n.Lambda, n.FunctionDef)):
        return False
    return any(breaks(child) for child in children(node))


def _statements(node: n.Node) -> tuple[n.Node, ...]:
    return node.body if isinstance(node, n.Block) else (node,)


def _flag_returns(loop: n.Node) -> n.Node:
    """Replace each `return v` in a loop by `result = v; returned = true; break`, out of all the loops around it."""
    if (
        isinstance(loop, n.For) and len(loop.bindings) > 1
    ):  # `break` leaves all of a multi-iterator loop, so one flag does
        return n.For(loop.bindings, _flag_block(loop.body), pos=loop.pos)
    if isinstance(loop, n.Let):
        once = n.Call(n.Name(":"), (n.Literal(1, "Int64"), n.Literal(1, "Int64")))
        return n.Let(loop.bindings, n.Block((n.For(((n.Name("_"), once),), _flag_block(loop.body)),)), pos=loop.pos)
    assert isinstance(loop, (n.For, n.While))
    body = _flag_block(loop.body)
    return (
        n.For(loop.bindings, body, pos=loop.pos) if isinstance(loop, n.For) else n.While(loop.cond, body, pos=loop.pos)
    )


def _flag_block(block: n.Node) -> n.Block:
    out: list[n.Node] = []
    for stmt in _statements(block):
        out.extend(_flag(stmt))
    return n.Block(tuple(out), pos=block.pos)


def _flag(stmt: n.Node) -> tuple[n.Node, ...]:
    if not has_return(stmt):
        return (stmt,)
    if isinstance(stmt, n.Return):
        value = stmt.value if stmt.value is not None else n.Name("nothing")
        return (
            n.Assign(n.Name(_RESULT), value, pos=stmt.pos),
            n.Assign(n.Name(_RETURNED), n.Literal(True, "Bool"), pos=stmt.pos),
            n.Break(pos=stmt.pos),
        )
    if isinstance(stmt, n.ShortCircuit):
        cond = stmt.left if stmt.op == "&&" else n.Call(n.Name("!"), (stmt.left,), pos=stmt.pos)
        return (n.If(cond, _flag_block(stmt.right), None, pos=stmt.pos),)
    if isinstance(stmt, n.If):
        orelse = None if stmt.orelse is None else _flag_block(stmt.orelse)
        return (n.If(stmt.cond, _flag_block(stmt.then), orelse, pos=stmt.pos),)
    if isinstance(stmt, n.Block):
        return (_flag_block(stmt),)
    if isinstance(stmt, n.MacroCall):
        return (n.MacroCall(stmt.name, tuple(_flag_block(a) for a in stmt.args), stmt.module, pos=stmt.pos),)
    if isinstance(stmt, (n.For, n.While, n.Let)):
        leave = n.If(n.Name(_RETURNED), n.Block((n.Break(pos=stmt.pos),)), None, pos=stmt.pos)
        return (_flag_returns(stmt), leave)
    return (stmt,)


def returned_names() -> tuple[str, str]:
    """Return the names that `tail` uses for a return inside a loop."""
    return _RETURNED, _RESULT

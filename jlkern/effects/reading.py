"""The reading of a kernel and of the helpers that it calls: what is written, what is read, what cannot be told.

Every function is read as a set of statements without order: a local variable may alias whatever is ever assigned to it.
Helpers are read once for each way of being called, as the union of the methods that a call may reach.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jlkern.effects.aliases import NONE, Aliases, Findings, Write, direct, element, inside, union
from jlkern.effects.functions import (
    ARITHMETIC,
    HARMLESS_MACROS,
    HIGHER_ORDER,
    METADATA,
    MODIFIERS,
    PURE,
    VALUE_MACROS,
    VIEWS,
)
from jlkern.syntax import nodes as n
from jlkern.syntax.walk import children, walk

_Key = tuple[int, frozenset[str]]
_Arg = tuple[n.Node, Aliases]
_PASSES = 12  # aliases grow along chains of assignments; what is not settled by then is told to be unknown
_BUDGET = 200  # readings of functions; helpers that call each other in circles could ask for very many


@dataclass
class Shared:
    """What the readings of all functions share.

    `stack` holds the functions that are being read, with what is known of them so far; `done` those that have been
    read; `open` the functions of the stack that were called again: what they call is not known in full before they are.
    """

    functions: Mapping[str, Sequence[n.FunctionDef]]
    structs: frozenset[str]
    stack: dict[_Key, Findings] = field(default_factory=dict)
    done: dict[_Key, Findings] = field(default_factory=dict)
    open: set[_Key] = field(default_factory=set)
    budget: int = _BUDGET


class Reading:
    """The reading of one function; `holders` are the parameters that may hold arrays inside."""

    def __init__(self, function: n.FunctionDef, shared: Shared, holders: frozenset[str]) -> None:
        self.function = function
        self.shared = shared
        self.functions = shared.functions
        self.structs = shared.structs
        self.key: _Key = (id(function), holders)
        self.params = frozenset(p.name for p in function.params if p.name is not None)
        self.types = frozenset(_type_names(function.where))
        self.aliases: dict[str, Aliases] = {}
        for param in function.params:
            if param.name is not None:
                held = {(param.name, True)} if param.name in holders else set()
                self.aliases[param.name] = frozenset({(param.name, False), *held})
        self.locals: dict[str, list[n.Lambda | n.FunctionDef]] = {}
        self.found = Findings()
        self.changed = False
        self.views = False
        self.uncertain = 0  # how many conditions, loops and closures we are inside of

    def run(self) -> Findings:
        """Read the body until the aliases stay as they are."""
        stack = self.shared.stack
        stack[self.key] = self.found
        for _ in range(_PASSES):
            self.changed = False
            self.found = Findings()
            self.found.returned |= self.value(self.function.body)
            before, stack[self.key] = stack[self.key], self.found
            if not self.changed and (self.key not in self.shared.open or before == self.found):
                break
        else:
            self.doubt(frozenset((param, False) for param in self.params), self.function, "too long to follow")
        del stack[self.key]
        self.shared.open.discard(self.key)
        if not self.shared.open:
            self.shared.done[self.key] = self.found
        return self.found

    # --- recording ---

    def bind(self, name: str, aliases: Aliases) -> None:
        """Let a variable alias more."""
        known = self.aliases.get(name, NONE)
        if not aliases <= known:
            self.aliases[name] = known | aliases
            self.changed = True

    def write(self, aliases: Aliases, node: n.Node, target: n.Index | None, plain: bool) -> None:
        """Record a write into what `aliases` name directly."""
        for param, held in aliases:
            if not held:
                named = target is not None and isinstance(target.obj, n.Name) and target.obj.id == param
                conditional = self.uncertain > 0 or len(aliases) > 1
                self.found.writes.append(
                    Write(param, node.pos.line, target if named else None, plain and named, conditional)
                )

    def read(self, aliases: Aliases) -> None:
        """Record that the content of arrays is read."""
        self.found.reads.update(param for param, _ in aliases)

    def doubt(self, aliases: Aliases, node: n.Node, reason: str) -> None:
        """Record that nobody can tell what happens to some arrays here."""
        for param in sorted({param for param, _ in aliases}):
            self.found.unknown.setdefault(param, (node.pos.line, reason))
            self.found.reads.add(param)

    # --- values: each returns what the value may alias ---

    def value(self, node: n.Node) -> Aliases:
        """Return what the value of a node may alias, recording what its evaluation does."""
        handler = _HANDLERS.get(type(node))
        if handler is not None:
            return handler(self, node)
        for child in children(node):
            self.value(child)
        return NONE

    def values(self, nodes: Iterable[n.Node]) -> Aliases:
        """Return what any of some values may alias."""
        found = NONE
        for node in nodes:
            found |= self.value(node)
        return found

    def maybe(self, *nodes: n.Node | None) -> Aliases:
        """Return what values may alias that are not always evaluated."""
        self.uncertain += 1
        found = self.values(node for node in nodes if node is not None)
        self.uncertain -= 1
        return found

    def name(self, node: n.Name) -> Aliases:
        return self.aliases.get(node.id, NONE)

    def index(self, node: n.Index) -> Aliases:
        base = self.value(node.obj)
        self.values(node.args)
        self.read(direct(base))
        return element(base) | (direct(base) if self.views else NONE)

    def fields(self, node: n.Field) -> Aliases:
        base = self.value(node.obj)
        return base | element(base)

    def block(self, node: n.Block) -> Aliases:
        last = NONE
        for statement in node.body:
            last = self.value(statement)
        return last

    def items(self, node: n.TupleExpr | n.VectorExpr) -> Aliases:
        return inside(self.values(node.items))

    def splat(self, node: n.Splat) -> Aliases:
        return self.value(node.value)

    def typed(self, node: n.Typed) -> Aliases:
        return self.value(node.value) if node.value is not None else NONE

    def branch(self, node: n.If) -> Aliases:
        self.value(node.cond)
        return self.maybe(node.then, node.orelse)

    def circuit(self, node: n.ShortCircuit) -> Aliases:
        return self.value(node.left) | self.maybe(node.right)

    def assign(self, node: n.Assign) -> Aliases:
        if isinstance(node.value, n.Lambda) and isinstance(node.target, n.Name):
            self.define(node.target.id, node.value)
        value = self.value(node.value)
        self.store(node.target, node.value, value, node)
        return value

    def store(self, target: n.Node, source: n.Node | None, value: Aliases, node: n.Assign) -> None:
        """Record the assignment of a value to one target."""
        if isinstance(target, n.Name):
            if node.dotted:
                self.write(self.name(target), node, None, False)
                self.read(self.name(target))
            else:
                self.bind(target.id, value)
        elif isinstance(target, n.Index):
            base = self.value(target.obj)
            self.values(target.args)
            plain = node.op is None and not node.dotted
            if not plain:
                self.read(direct(base))
            self.write(direct(base), node, target, plain)
            if isinstance(target.obj, n.Name) and target.obj.id not in self.params:
                self.bind(target.obj.id, inside(value))
        elif isinstance(target, n.Field):
            self.write(self.value(target.obj), node, None, False)
        elif isinstance(target, n.Typed) and target.value is not None:
            self.store(target.value, source, value, node)
        elif isinstance(target, n.Splat):
            self.store(target.value, None, inside(value), node)
        elif isinstance(target, n.TupleExpr):
            items = source.items if isinstance(source, n.TupleExpr) and source.names is None else ()
            paired = len(items) == len(target.items) and not any(
                isinstance(i, n.Splat) for i in (*items, *target.items)
            )
            for at, item in enumerate(target.items):
                self.store(item, None, self.value(items[at]) if paired else element(value), node)

    def loop(self, node: n.For) -> Aliases:
        for target, values in node.bindings:
            found = self.value(values)
            self.read(direct(found))
            self.store(target, None, element(found), n.Assign(target, values, pos=node.pos))
        self.maybe(node.body)
        return NONE

    def while_loop(self, node: n.While) -> Aliases:
        self.maybe(node.cond, node.body)
        return NONE

    def let(self, node: n.Let) -> Aliases:
        for name, value in node.bindings:
            if value is not None:
                self.bind(name, self.value(value))
        return self.value(node.body)

    def leave(self, node: n.Return) -> Aliases:
        self.found.returns = True
        if node.value is not None:
            self.found.returned |= self.value(node.value)
        return NONE

    def closure(self, node: n.Lambda) -> Aliases:
        return inside(self.maybe(node.body))

    def nested(self, node: n.FunctionDef) -> Aliases:
        self.define(node.name, node)
        return inside(self.maybe(node.body))

    def define(self, name: str, function: n.Lambda | n.FunctionDef) -> None:
        """Remember a function that a local name stands for."""
        known = self.locals.setdefault(name, [])
        if not any(function is one for one in known):
            known.append(function)
            self.changed = True

    def unsupported(self, node: n.Unsupported) -> Aliases:
        found = NONE
        for name in node.names:
            found |= self.aliases.get(name, NONE)
        self.doubt(found, node, f"used in a construct that is not understood: {node.what}")
        return found

    # --- calls ---

    def dotcall(self, node: n.DotCall) -> Aliases:
        args = [self.value(arg) for arg in node.args]
        for arg in args:
            self.read(arg)
        if not isinstance(node.func, n.Name) or not self.pure(node.func.id):
            self.value(node.func)
            self.doubt(direct(union(map(element, args))), node, "handed to a broadcast function")
        return inside(union(map(element, args)))

    def call(self, node: n.Call) -> Aliases:
        func = node.func
        values: list[_Arg] = []
        for arg in node.args:
            values.append((arg, self.value(arg)))
        for _, word in node.kwargs:
            values.append((word, self.value(word)))
        everything = union(aliases for _, aliases in values)
        while isinstance(func, n.Curly):
            func = func.base
        if isinstance(func, n.Lambda):
            self.bind_params(func.params, [aliases for _, aliases in values])
            return everything | element(self.value(func))
        name = func.id if isinstance(func, n.Name) else func.name if isinstance(func, n.Field) else None
        if name is None or (isinstance(func, n.Name) and name in self.params and name not in self.locals):
            held = self.value(func) if name is None else NONE
            what = f"the function value `{name}`" if name else "a function value"
            self.doubt(everything | held, node, f"handed to {what}")
            return everything
        if isinstance(func, n.Name) and name in self.locals:
            return self.call_local(name, [aliases for _, aliases in values], everything)
        if isinstance(func, n.Name) and name in self.functions:
            return self.call_methods(name, node, values)
        return self.call_known(name, node, values, everything)

    def call_local(self, name: str, args: list[Aliases], everything: Aliases) -> Aliases:
        """Call a closure or a nested function: its parameters alias the arguments, its body is read where it stands."""
        for function in self.locals[name]:
            self.bind_params(function.params, args)
        return everything | self.aliases.get(name, NONE)

    def bind_params(self, params: Sequence[n.Param], args: Sequence[Aliases]) -> None:
        """Let parameters of a local function alias arguments."""
        for at, param in enumerate(params):
            if param.name is not None:
                rest = args[at:] if param.vararg else args[at : at + 1]
                self.bind(param.name, inside(union(rest)) if param.vararg else union(rest))

    def call_known(self, name: str, node: n.Call, values: list[_Arg], everything: Aliases) -> Aliases:
        """Call a function that the source does not define."""
        args = [aliases for _, aliases in values]
        if name in METADATA:
            return NONE
        if name in VIEWS:
            return inside(everything) if name.startswith("each") else everything
        if name in ("tuple", "=>", "Tuple", "Ref"):
            return inside(everything)
        if name in ("getindex", "first", "last", "zip", "enumerate", "pairs", "reverse", "values"):
            self.read(everything)
            return element(everything)
        if name in HIGHER_ORDER:
            self.read(everything)
            return self.call_higher(node, values)
        if name in MODIFIERS or (name.startswith("atomic_") and name.endswith("!")):
            at = 1 if name in ("map!", "broadcast!") else 0
            if len(args) > at:
                self.write(args[at], node, None, False)
            self.read(everything)
            return args[at] if len(args) > at else NONE
        if name in self.structs or (name[:1].isupper() and name not in self.types):
            self.read(direct(everything) if name not in self.structs else NONE)
            return inside(everything)
        if self.pure(name):
            self.read(everything)
            return NONE
        self.doubt(everything, node, f"handed to `{name}`, which is not defined in the source")
        return everything

    def call_higher(self, node: n.Call, values: list[_Arg]) -> Aliases:
        """Call `map` and its like: functions among the arguments get the elements of the others."""
        held = union(element(aliases) for _, aliases in values)
        result = NONE
        for arg, aliases in values:
            if isinstance(arg, n.Lambda):
                result |= element(aliases)
                self.bind_params(arg.params, [held] * len(arg.params))
            elif isinstance(arg, n.Name) and arg.id in self.locals:
                for function in self.locals[arg.id]:
                    self.bind_params(function.params, [held] * len(function.params))
            elif isinstance(arg, n.Name) and arg.id in self.functions:
                for method in self.functions[arg.id]:
                    given = [(arg, held)] * len(method.params)
                    result |= self.apply(method, node, given)
            elif isinstance(arg, n.Name) and arg.id in self.params:
                self.doubt(direct(held), node, f"handed to the function value `{arg.id}`")
        return inside(held | result)

    def call_methods(self, name: str, node: n.Call, values: list[_Arg]) -> Aliases:
        """Call a function of the source: all methods that the number of arguments allows."""
        splat = any(isinstance(arg, n.Splat) for arg, _ in values)
        count = len(node.args)
        result = NONE
        reached = False
        for method in self.functions[name]:
            required = sum(1 for p in method.params if p.default is None and not p.vararg)
            most = len(method.params) if not any(p.vararg for p in method.params) else count
            if splat or required <= count <= most:
                reached = True
                result |= self.apply(method, node, self.spread(values, method) if splat else values[:count])
        everything = union(aliases for _, aliases in values)
        if not reached:
            self.doubt(everything, node, f"handed to `{name}`, which has no method of {count} arguments")
        if node.kwargs:
            self.doubt(union(aliases for _, aliases in values[count:]), node, f"handed to `{name}` by keyword")
        return result

    def spread(self, values: list[_Arg], method: n.FunctionDef) -> list[_Arg]:
        """Return the arguments of a call with `x...`: from the first splat on, any may come anywhere."""
        plain = []
        for arg, aliases in values:
            if isinstance(arg, n.Splat):
                break
            plain.append((arg, aliases))
        rest = NONE
        for arg, aliases in values[len(plain) :]:
            rest |= element(aliases) if isinstance(arg, n.Splat) else aliases
        missing = max(1, len(method.params) - len(plain))
        return [*plain, *[(values[len(plain)][0], rest)] * missing]

    def apply(self, method: n.FunctionDef, node: n.Node, values: Sequence[_Arg]) -> Aliases:
        """Take over what a method does to the arguments of a call."""
        if not any(aliases for _, aliases in values):
            return NONE
        given: dict[str, Aliases] = {}
        for at, param in enumerate(method.params):
            if param.name is not None:
                joined = union(aliases for _, aliases in (values[at:] if param.vararg else values[at : at + 1]))
                given[param.name] = inside(joined) if param.vararg else joined
        key = (id(method), frozenset(name for name, found in given.items() if any(held for _, held in found)))
        found = self.shared.done.get(key) or self.shared.stack.get(key)
        if key in self.shared.stack:
            self.shared.open.add(key)
        if found is None:
            self.shared.budget -= 1
            if self.shared.budget < 0:
                everything = union(given.values())
                self.doubt(everything, node, f"handed to `{method.name}`, which is too long to follow")
                return everything
            found = Reading(method, self.shared, key[1]).run()
        for write in found.writes:
            args = given.get(write.param, NONE)
            self.write(frozenset((p, False) for p, _ in args), node, None, False)
        for name in found.reads:
            self.read(given.get(name, NONE))
        for name, (_, reason) in found.unknown.items():
            self.doubt(given.get(name, NONE), node, f"handed to `{method.name}`, where it is {reason}")
        result = NONE
        for name, held in found.returned:
            given_here = given.get(name, NONE)
            result |= inside(given_here) if held else given_here
        return result

    def pure(self, name: str) -> bool:
        """Whether a function only computes from what it is given."""
        if name in self.functions or name in self.params or name in self.locals:
            return False
        return name in PURE or name in self.types or name in ARITHMETIC

    # --- macros ---

    def macro(self, node: n.MacroCall) -> Aliases:
        name = node.name
        if name.startswith("atomic"):
            return self.atomic(node)
        if name == "view" and len(node.args) == 1 and isinstance(node.args[0], n.Index):
            target = node.args[0]
            self.values(target.args)
            return self.value(target.obj)
        if name in ("views", "."):
            return self.with_views(node)
        if name in VALUE_MACROS:
            last = NONE
            for arg in node.args:
                last = self.value(arg)
            return last
        found = self.values(node.args)
        if name not in HARMLESS_MACROS:
            self.doubt(direct(found), node, f"handed to the macro `@{name}`")
            for arg in node.args:
                for inner in walk(arg):
                    if isinstance(inner, n.Index):
                        self.doubt(direct(self.value(inner.obj)), node, f"handed to the macro `@{name}`")
        return NONE

    def with_views(self, node: n.MacroCall) -> Aliases:
        """Read `@views e`, where slices are views, and `@. a = e`, which writes into `a`."""
        before, self.views = self.views, self.views or node.name == "views"
        last = NONE
        for arg in node.args:
            if node.name == "." and isinstance(arg, n.Assign):
                arg = n.Assign(arg.target, arg.value, arg.op, True, pos=arg.pos)
            last = self.value(arg)
        self.views = before
        return last

    def atomic(self, node: n.MacroCall) -> Aliases:
        """Read `@atomic A[i] += x` and all its other forms; `@atomic A[i]` alone is a load."""
        args = [arg for arg in node.args if not (isinstance(arg, n.Literal) and arg.type == "Symbol")]
        target: n.Node | None = None
        for arg in args:
            self.value(arg.value if isinstance(arg, n.Assign) else arg)
        if args and isinstance(args[0], n.Assign):
            target = args[0].target
        elif args and isinstance(args[0], n.Call) and args[0].args:
            target = args[0].args[0]
        elif len(args) > 1:
            target = args[0]
        if isinstance(target, n.Index):
            base = self.value(target.obj)
            self.values(target.args)
            self.read(direct(base))
            self.write(direct(base), node, target, False)
        elif isinstance(target, n.Field):
            self.write(self.value(target.obj), node, None, False)
        return NONE


def _type_names(where: Iterable[n.Node]) -> Iterable[str]:
    for param in where:
        for node in walk(param):
            if isinstance(node, n.Name):
                yield node.id
                break


_HANDLERS: dict[type[n.Node], Callable[[Reading, Any], Aliases]] = {
    n.Name: Reading.name,
    n.Index: Reading.index,
    n.Field: Reading.fields,
    n.Block: Reading.block,
    n.TupleExpr: Reading.items,
    n.VectorExpr: Reading.items,
    n.Splat: Reading.splat,
    n.Typed: Reading.typed,
    n.If: Reading.branch,
    n.ShortCircuit: Reading.circuit,
    n.Assign: Reading.assign,
    n.For: Reading.loop,
    n.While: Reading.while_loop,
    n.Let: Reading.let,
    n.Return: Reading.leave,
    n.Lambda: Reading.closure,
    n.FunctionDef: Reading.nested,
    n.Unsupported: Reading.unsupported,
    n.DotCall: Reading.dotcall,
    n.Call: Reading.call,
    n.MacroCall: Reading.macro,
}

"""Conversion of definitions: functions in every form, their parameters, kernels, structs, `using` lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jlkern.syntax.building import Params, Signature
from jlkern.syntax.cst import Source, convert, converts, fold, unsupported
from jlkern.syntax.nodes import (
    AbstractDef,
    Assign,
    Block,
    Call,
    Const,
    Curly,
    FunctionDef,
    KernelDef,
    Lambda,
    Literal,
    MacroCall,
    Name,
    Node,
    Param,
    Pos,
    Splat,
    StructDef,
    TupleExpr,
    Typed,
    Unsupported,
    Using,
    Where,
)
from jlkern.syntax.problem import KernelOptionProblem

if TYPE_CHECKING:
    from tree_sitter import Node as Tree

NOTHING = Block(())  # an item that leaves nothing behind, as `export f`


def block(source: Source, statements: list[Tree], pos: Pos) -> Block:
    """Return the block of some statements."""
    body = []
    for node in statements:
        if node.type == "quote_expression" and _on_same_line(source, node):
            source.problem(node, f"unexpected `{source.text(node)[:40]}`")
        made = convert(source, node)
        if made is not NOTHING:
            body.append(made)
    return Block(tuple(body), pos=pos)


def _on_same_line(source: Source, node: Tree) -> bool:
    """Whether a statement follows another without a line break or `;` between them."""
    before = node.prev_sibling
    between = source.data[before.end_byte : node.start_byte] if before is not None else b";"
    return (
        before is not None
        and before.is_named
        and before.type not in ("signature", "argument_list")
        and b"\n" not in between
        and b";" not in between
    )


# --- functions -------------------------------------------------------------------------------------------------------


@converts("function_definition")
def _function(source: Source, node: Tree) -> Node:
    kids = [kid for kid in source.kids(node) if kid.is_named]
    if not kids or kids[0].type != "signature":
        source.problem(node, "a function needs a name and parameters")
    head = source.kids(kids[0])[0]
    if head.type == "identifier":
        return NOTHING  # `function f end` declares f and no more
    pos = source.pos(node)
    body = block(source, kids[1:], pos)
    if head.type == "argument_list":
        params, _, opening = parameters(source, head)
        return Lambda(params, Block(opening + body.body, pos=pos), pos=pos)
    made = signature(source, head, pos)
    if made is None:
        return unsupported(source, node, "definition of a callable object")
    return FunctionDef(
        made.name,
        made.params,
        Block(made.body.body + body.body, pos=pos),
        made.where,
        made.returns,
        made.kwparams,
        pos=pos,
    )


def short_form(source: Source, head: Tree) -> Node | None:
    """Return what stands left of the `=` in `f(x) = ...`; None when that is no function head."""
    inner = head
    while inner.type in ("where_expression", "typed_expression"):
        inner = _unwrap(source, source.kids(inner)[0])
    if inner.type != "call_expression":
        return None
    pos = source.pos(head)
    made = signature(source, head, pos)
    if made is None:
        return unsupported(source, head, "definition of a callable object")
    return Signature(made, pos=pos)


def _unwrap(source: Source, node: Tree) -> Tree:
    """Return what parentheses hold."""
    while node.type == "parenthesized_expression":
        inner = [kid for kid in source.kids(node) if kid.is_named]
        if len(inner) != 1:
            break
        node = inner[0]
    return node


def signature(source: Source, head: Tree, pos: Pos) -> FunctionDef | None:
    """Return a function without body from its head `f(x; y)::R where {T}`; None when it has no name."""
    where: tuple[Node, ...] = ()
    returns: Node | None = None
    node = head
    while node.type in ("where_expression", "typed_expression"):
        kids = source.kids(node)
        if node.type == "where_expression":
            where = _where(source, kids[2]) + where
        else:
            returns = convert(source, kids[2])
        node = _unwrap(source, kids[0])
    if node.type != "call_expression":
        source.problem(head, "invalid function head")
    func, args = source.kids(node)[:2]
    while func.type == "parametrized_type_expression":
        func = source.kids(func)[0]
    if func.type not in ("identifier", "operator", "field_expression"):
        func = _unwrap(source, func)
        if func.type not in ("identifier", "operator"):
            return None
    name = fold(source.text(func)).replace(".:", ".")
    if name.endswith(")") and ".(" in name:  # `Base.:(==)`
        name = name[:-1].replace(".(", ".")
    params, kwparams, opening = parameters(source, args)
    return FunctionDef(name, params, Block(opening), where, returns, kwparams, pos=pos)


def _where(source: Source, node: Tree) -> tuple[Node, ...]:
    """Return the parameters of one `where`."""
    if node.type == "curly_expression":
        return tuple(convert(source, kid) for kid in source.kids(node) if kid.is_named)
    return (convert(source, node),)


def parameters(source: Source, node: Tree) -> tuple[tuple[Param, ...], tuple[Param, ...], tuple[Node, ...]]:
    """Return the positional and keyword parameters, and the statements that take tuple parameters apart."""
    params: list[Param] = []
    kwparams: list[Param] = []
    opening: list[Node] = []
    into = params
    for kid in source.kids(node):
        if not kid.is_named:
            if kid.type == ";":
                into = kwparams
        elif kid.type in ("tuple_expression", "typed_expression") and source.data[kid.start_byte] == 40:  # 40 is `(`
            name = f"#{len(params) + 1}"  # a name that no source can hold
            pos = source.pos(kid)
            made = convert(source, kid)
            kind = made.type if isinstance(made, Typed) else None
            target = made.value if isinstance(made, Typed) and made.value is not None else made
            into.append(Param(name, kind, pos=pos))
            opening.append(Assign(target, Name(name, pos=pos), pos=pos))
        elif kid.type != "for_clause":
            into.append(parameter(source, kid))
    return tuple(params), tuple(kwparams), tuple(opening)


def parameter(source: Source, node: Tree) -> Param:
    """Return one parameter: `x`, `x::T`, `::T`, `x = 1`, `x...`, `@Const(x)`."""
    pos = source.pos(node)
    kind = node.type
    if kind == "identifier":
        return Param(source.name(node), pos=pos)
    if kind in ("named_argument", "assignment", "let_binding"):
        kids = source.kids(node)
        inner = parameter(source, kids[0])
        return Param(inner.name, inner.type, convert(source, kids[2]), inner.vararg, inner.const, pos=pos)
    if kind == "splat_expression":
        inner = parameter(source, source.kids(node)[0])
        return Param(inner.name, inner.type, inner.default, True, inner.const, pos=pos)
    return _parameter_of(source, node, convert(source, node), pos)


def _parameter_of(source: Source, node: Tree, made: Node, pos: Pos) -> Param:
    """Return the parameter that a converted node stands for."""
    if isinstance(made, Name):
        return Param(made.id, pos=pos)
    if isinstance(made, Typed) and (made.value is None or isinstance(made.value, Name)):
        return Param(made.value.id if isinstance(made.value, Name) else None, made.type, pos=pos)
    if isinstance(made, Where) and isinstance(made.value, Typed):
        inner = _parameter_of(source, node, made.value, pos)
        return Param(inner.name, inner.type and Where(inner.type, made.params, pos=pos), pos=pos)
    if isinstance(made, MacroCall) and made.name in ("Const", "nospecialize", "specialize") and len(made.args) == 1:
        only = made.args[0]
        inner = _parameter_of(source, node, only.value if isinstance(only, Splat) else only, pos)
        return Param(inner.name, inner.type, None, isinstance(only, Splat), made.name == "Const", pos=pos)
    if isinstance(made, MacroCall) and made.name == "context" and not made.args:
        return Param("__ctx__", pos=pos)  # the name that KernelAbstractions gives it
    return source.problem(node, f"invalid parameter `{source.text(node)[:40]}`")


@converts("argument_list")
def _lambda_parameters(source: Source, node: Tree) -> Node:
    params, kwparams, opening = parameters(source, node)
    if kwparams:
        return unsupported(source, node, "keyword parameters of `->`")
    return Params(params, opening, pos=source.pos(node))


# --- kernels ---------------------------------------------------------------------------------------------------------

_OPTIONS = ("cpu", "inbounds", "unsafe_indices")


def macro_call(source: Source, node: Tree, args: list[Node]) -> Node:
    """Return the call of a macro, or the kernel that it makes, with the arguments that it was found to have."""
    kids = source.kids(node)
    at = next(i for i, kid in enumerate(kids) if kid.type == "macro_identifier")
    qualifier = source.text(kids[0]) if at else None
    inner = source.kids(kids[at])[-1]
    name = fold(source.text(inner))
    if inner.start_byte != kids[at].start_byte + 1 or (inner.type == "operator" and name.strip(".")) or "?" in name:
        source.problem(kids[at], f"unexpected `{source.text(kids[at])}`")
    if inner.type == "scoped_identifier":
        qualifier, name = name.rsplit(".", 1)
    made = kernel(source, node, args) if name == "kernel" else None
    return made or MacroCall(name, tuple(args), qualifier, pos=source.pos(node))


def kernel(source: Source, node: Tree, args: list[Node]) -> KernelDef | None:
    """Return the kernel of an `@kernel` call; None when it defines no function."""
    if not args or not isinstance(args[-1], FunctionDef):
        return None
    options = {"cpu": True, "inbounds": False, "unsafe_indices": False}
    for option in args[:-1]:
        pos = option.pos
        if not isinstance(option, Assign) or not isinstance(option.target, Name) or option.target.id not in _OPTIONS:
            raise KernelOptionProblem(pos.line, pos.column, "`@kernel` knows the options " + ", ".join(_OPTIONS))
        if not isinstance(option.value, Literal) or option.value.type != "Bool":
            raise KernelOptionProblem(
                pos.line, pos.column, f"option `{option.target.id}` of `@kernel` must be `true` or `false`"
            )
        options[option.target.id] = option.value.value is True
    return KernelDef(args[-1], options["cpu"], options["inbounds"], options["unsafe_indices"], pos=source.pos(node))


# --- structs and the rest of the top level ---------------------------------------------------------------------------


@converts("struct_definition")
def _struct(source: Source, node: Tree) -> Node:
    kids = source.kids(node)
    mutable = kids[0].type == "mutable"
    named = [kid for kid in kids if kid.is_named]
    head = convert(source, source.kids(named[0])[0])
    supertype: Node | None = None
    if isinstance(head, Call) and head.func == Name("<:") and len(head.args) == 2:
        head, supertype = head.args
    name, params = _type_name(head)
    if name is None:
        source.problem(node, "invalid name of a struct")
    fields: list[tuple[str, Node | None]] = []
    methods: list[Node] = []
    for kid in named[1:]:
        member = convert(source, kid)
        if isinstance(member, Const):
            member = member.assign
        if isinstance(member, Name):
            fields.append((member.id, None))
        elif isinstance(member, Typed) and isinstance(member.value, Name):
            fields.append((member.value.id, member.type))
        elif isinstance(member, Literal):
            continue  # a docstring of a field
        else:
            methods.append(member)
    return StructDef(name, params, tuple(fields), supertype, mutable, tuple(methods), pos=source.pos(node))


def _type_name(node: Node) -> tuple[str | None, tuple[Node, ...]]:
    """Return the name and parameters of a type head."""
    if isinstance(node, Name):
        return node.id, ()
    if isinstance(node, Curly) and isinstance(node.base, Name):
        return node.base.id, node.args
    return None, ()


@converts("abstract_definition")
def _abstract(source: Source, node: Tree) -> Node:
    named = [kid for kid in source.kids(node) if kid.is_named]
    head = convert(source, source.kids(named[0])[0])
    supertype: str | None = None
    if isinstance(head, Call) and head.func == Name("<:") and len(head.args) == 2:
        head, above = head.args
        supertype = above.id if isinstance(above, Name) else None
    name, params = _type_name(head)
    if name is None or params:
        return unsupported(source, node, "abstract type with parameters")
    return AbstractDef(name, supertype, pos=source.pos(node))


@converts("primitive_definition", "macro_definition", "module_definition")
def _refused(source: Source, node: Tree) -> Node:
    return unsupported(source, node, _REFUSED[node.type])


_REFUSED = {
    "primitive_definition": "primitive type",
    "macro_definition": "macro definition",
    "module_definition": "module",
}


@converts("export_statement", "public_statement")
def _export(source: Source, node: Tree) -> Node:
    return NOTHING


@converts("using_statement", "import_statement")
def _using(source: Source, node: Tree) -> Node:
    names: list[str] = []
    for kid in source.kids(node):
        if kid.type == "selected_import":
            names += [_imported(source, item) for item in source.kids(kid)[1:] if item.is_named]
        elif kid.is_named:
            names.append(_imported(source, kid))
    return Using(" ".join(source.text(node).split()), tuple(names), pos=source.pos(node))


def _imported(source: Source, node: Tree) -> str:
    """Return the name that one item of an import brings in."""
    if node.type == "import_alias":
        node = source.kids(node)[-1]
    return fold(source.text(node)).rsplit(".", 1)[-1]


@converts("const_statement")
def _const(source: Source, node: Tree) -> Node:
    made = convert(source, next(kid for kid in source.kids(node) if kid.is_named))
    if isinstance(made, Assign):
        return Const(made, pos=source.pos(node))
    if isinstance(made, Unsupported | FunctionDef):
        return made
    return source.problem(node, "`const` needs an assignment")


def declarations(made: Node) -> tuple[Node, ...]:
    """Return the items of `local a, b` or `local a = 1`."""
    return made.items if isinstance(made, TupleExpr) and made.names is None else (made,)

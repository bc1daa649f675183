"""Emitted source to machine code, by way of LLVM directly.

Emitted source is Python of a few forms, and every function in it is an intrinsic that knows its types. So its types
follow from one walk over the text, and Numba's own pipeline, which has to find out the types of any Python, is not
needed: that would be four fifths of the time that a candidate takes to compile. The text means the same to Numba;
`tests/test_assemble.py` compiles it both ways.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable
from typing import Any, NoReturn

import llvmlite.ir as ir
import numba.core.types as _types

types: Any = _types  # its own stubs lack most of it
I1, I64 = ir.IntType(1), ir.IntType(64)

_ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("add", "fadd"),
    ast.Sub: ("sub", "fsub"),
    ast.Mult: ("mul", "fmul"),
    ast.BitAnd: ("and_", ""),
    ast.BitOr: ("or_", ""),
    ast.BitXor: ("xor", ""),
}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}

Typed = tuple[Any, Any]
"""A Numba type and an LLVM value."""


class Unassembled(Exception):
    """The text has a form that this module does not know."""


def chunk_name(text: str) -> str:
    """Return the name of a text's function in machine code: equal names are equal functions."""
    return f"jlkern_{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def assemble(text: str, scope: dict[str, Any]) -> tuple[int, Any]:
    """Compile `chunk(_block, _errors, _first, _last)`, the text's last function.

    Returns its address and what keeps the machine code alive.
    Raises `Unassembled` for a text that is not of the emitter's forms.
    """
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.registry import cpu_target

    context = cpu_target.target_context
    name = chunk_name(text)
    with global_compiler_lock:
        *others, function = _parsed(text)
        library = context.codegen().create_library(name)
        library.enable_object_caching()
        module = library.create_ir_module(name)
        functions: dict[str, ir.Function] = {}
        for node in others:
            made = functions[node.name] = ir.Function(module, ir.FunctionType(I64, [I64] * 4), f"{name}_{node.name}")
            made.linkage = "internal"
            made.attributes.add("noinline")  # code that is inlined shares its registers and set-up with the others
            _Assembler(made, scope, context, {}).function(node)
        made = ir.Function(module, ir.FunctionType(I64, [I64] * 4), name)
        _Assembler(made, scope, context, functions).function(function)
        library.add_ir_module(module)
        library.finalize()
        return int(library.get_pointer_to_function(name)), library


def _parsed(text: str) -> list[ast.FunctionDef]:
    """Parse; CPython 3.11 raises SystemError when another thread happens to parse at the same time."""
    for _ in range(20):
        try:
            functions = ast.parse(text).body
        except SystemError:
            continue
        return [node for node in functions if isinstance(node, ast.FunctionDef)]
    raise Unassembled("the source cannot be parsed while other threads parse")


class _Assembler:
    """Writes one function; variables are stack slots, which LLVM turns into registers."""

    def __init__(
        self, function: ir.Function, scope: dict[str, Any], context: Any, functions: dict[str, ir.Function]
    ) -> None:
        self.scope, self.context, self.functions = scope, context, functions
        self.made = function
        self.entry = function.append_basic_block("entry")
        self.start = function.append_basic_block("start")
        self.b = ir.IRBuilder(self.start)
        self.variables: dict[str, Typed] = {}
        self.loops: list[tuple[ir.Block, ir.Block]] = []

    def function(self, node: ast.FunctionDef) -> None:
        for argument, value in zip(node.args.args, self.made.args, strict=True):
            self.set(argument.arg, (types.int64, value))
        self.body(node.body)
        if not self.b.block.is_terminated:
            self.b.ret(ir.Constant(I64, 0))
        ir.IRBuilder(self.entry).branch(self.start)

    # --- variables ---

    def set(self, name: str, value: Typed) -> None:
        ty, item = value
        if name not in self.variables:
            # the slot belongs to the entry block, so that it exists once, also for a variable set in a loop
            slot = ir.IRBuilder(self.entry).alloca(item.type, name=name)
            self.variables[name] = (ty, slot)
        known, slot = self.variables[name]
        if known != ty:
            raise Unassembled(f"{name} is {known} and {ty}")
        self.b.store(item, slot)

    # --- statements ---

    def body(self, stmts: list[ast.stmt]) -> None:
        for stmt in stmts:
            if self.b.block.is_terminated:
                return
            handler: Callable[[Any], None] | None = getattr(self, f"_{type(stmt).__name__}", None)
            if handler is None:
                self.unknown(stmt)
            handler(stmt)

    def unknown(self, node: ast.AST) -> NoReturn:
        raise Unassembled(ast.unparse(node))

    def _Pass(self, stmt: ast.Pass) -> None:
        pass

    def _Assign(self, stmt: ast.Assign) -> None:
        target = stmt.targets[0]
        if len(stmt.targets) != 1 or not isinstance(target, ast.Name):
            self.unknown(stmt)
        self.set(target.id, self.value(stmt.value))

    def _Expr(self, stmt: ast.Expr) -> None:
        self.value(stmt.value)

    def _Return(self, stmt: ast.Return) -> None:
        assert stmt.value is not None
        self.b.ret(self.value(stmt.value)[1])

    def _Break(self, stmt: ast.Break) -> None:
        self.b.branch(self.loops[-1][1])

    def _Continue(self, stmt: ast.Continue) -> None:
        self.b.branch(self.loops[-1][0])

    def _If(self, stmt: ast.If) -> None:
        then, after = self.block("then"), self.block("endif")
        orelse = self.block("else") if stmt.orelse else after
        self.b.cbranch(self.truth(stmt.test), then, orelse)
        for block, stmts in ((then, stmt.body), (orelse, stmt.orelse)):
            if stmts:
                self.b.position_at_end(block)
                self.body(stmts)
                if not self.b.block.is_terminated:
                    self.b.branch(after)
        self.b.position_at_end(after)

    def _While(self, stmt: ast.While) -> None:
        header, body, after = self.block("while"), self.block("body"), self.block("endwhile")
        self.b.branch(header)
        self.b.position_at_end(header)
        self.b.cbranch(self.truth(stmt.test), body, after)
        self.round(body, stmt.body, header, after)
        self.b.position_at_end(after)

    def _For(self, stmt: ast.For) -> None:
        call = stmt.iter
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id != "range":
            self.unknown(stmt)
        assert isinstance(stmt.target, ast.Name)
        bounds = [self.value(a)[1] for a in call.args]
        start, stop = (ir.Constant(I64, 0), bounds[0]) if len(bounds) == 1 else bounds[:2]
        step = bounds[2] if len(bounds) == 3 else ir.Constant(I64, 1)
        if not isinstance(step, ir.Constant):
            self.unknown(stmt)
        header, body, latch, after = (self.block(n) for n in ("for", "body", "next", "endfor"))
        before = self.b.block
        self.b.branch(header)
        self.b.position_at_end(header)
        k = self.b.phi(I64)
        k.add_incoming(start, before)
        self.b.cbranch(self.b.icmp_signed("<" if step.constant > 0 else ">", k, stop), body, after)
        self.b.position_at_end(body)
        self.set(stmt.target.id, (types.int64, k))
        self.round(None, stmt.body, latch, after)
        self.b.position_at_end(latch)
        # the sum cannot wrap: k is on this side of stop, and a range that ended beyond Int64 would never end
        k.add_incoming(self.b.add(k, step, flags=("nsw",)), latch)
        self.b.branch(header)
        self.b.position_at_end(after)

    def round(self, body: ir.Block | None, stmts: list[ast.stmt], again: ir.Block, after: ir.Block) -> None:
        """Write the body of a loop."""
        if body is not None:
            self.b.position_at_end(body)
        self.loops.append((again, after))
        self.body(stmts)
        self.loops.pop()
        if not self.b.block.is_terminated:
            self.b.branch(again)

    def block(self, name: str) -> ir.Block:
        return self.made.append_basic_block(name)

    # --- expressions ---

    def truth(self, node: ast.expr) -> Any:
        ty, value = self.value(node)
        if ty != types.boolean:
            self.unknown(node)
        return value

    def value(self, node: ast.expr) -> Typed:
        if isinstance(node, ast.Constant):
            return self.constant(node.value)
        if isinstance(node, ast.Name):
            return self.name(node)
        if isinstance(node, ast.UnaryOp):
            return self.unary(node)
        if isinstance(node, ast.BinOp):
            return self.arithmetic(node)
        if isinstance(node, ast.Compare):
            return self.comparison(node)
        if isinstance(node, ast.Call):
            return self.call(node)
        self.unknown(node)

    def constant(self, value: Any) -> Typed:
        if isinstance(value, bool):
            return types.boolean, ir.Constant(I1, int(value))
        if isinstance(value, int):
            return (types.int64 if value < 1 << 63 else types.uint64), ir.Constant(I64, value)
        if isinstance(value, float):
            return types.float64, ir.Constant(ir.DoubleType(), value)
        raise Unassembled(repr(value))

    def name(self, node: ast.Name) -> Typed:
        if node.id in self.variables:
            ty, slot = self.variables[node.id]
            return ty, self.b.load(slot)
        known = self.scope.get(node.id)
        if isinstance(known, float):
            return self.constant(known)
        self.unknown(node)

    def unary(self, node: ast.UnaryOp) -> Typed:
        if isinstance(node.op, ast.USub):
            inner = node.operand
            known = inner.value if isinstance(inner, ast.Constant) else None
            if isinstance(inner, ast.Name):
                known = self.scope.get(inner.id)
            if isinstance(known, (int, float)):
                return self.constant(-known)
        if isinstance(node.op, ast.Not):
            return types.boolean, self.b.not_(self.truth(node.operand))
        self.unknown(node)

    def arithmetic(self, node: ast.BinOp) -> Typed:
        (ty, x), (other, y) = self.value(node.left), self.value(node.right)
        names = _ARITHMETIC.get(type(node.op))
        if ty != other or names is None:
            self.unknown(node)
        plain, floating = names
        return ty, getattr(self.b, floating if isinstance(ty, types.Float) else plain)(x, y)

    def comparison(self, node: ast.Compare) -> Typed:
        (ty, x), (other, y) = self.value(node.left), self.value(node.comparators[0])
        if ty != other or len(node.ops) != 1:
            self.unknown(node)
        op = _COMPARISONS[type(node.ops[0])]
        if isinstance(ty, types.Float):
            compare = self.b.fcmp_unordered if op == "!=" else self.b.fcmp_ordered
        else:
            compare = self.b.icmp_signed if getattr(ty, "signed", False) else self.b.icmp_unsigned
        return types.boolean, compare(op, x, y)

    def call(self, node: ast.Call) -> Typed:
        """Write an intrinsic in place of its call; call another function of the text."""
        assert isinstance(node.func, ast.Name)
        if node.func.id in self.functions:
            given_values = [self.value(a)[1] for a in node.args]
            return types.int64, self.b.call(self.functions[node.func.id], given_values)
        function = self.scope.get(node.func.id)
        define = getattr(function, "_defn", None)
        if define is None:
            self.unknown(node)
        args = [self.value(a) for a in node.args]
        given = [
            types.literal(a.value) if isinstance(a, ast.Constant) and node.func.id.startswith("stack_") else ty
            for a, (ty, _) in zip(node.args, args, strict=True)
        ]
        defined = define(None, *given)
        if defined is None:
            self.unknown(node)
        signature, codegen = defined
        for want, (have, _) in zip(signature.args, args, strict=True):
            if types.unliteral(want) != have:
                self.unknown(node)
        result = codegen(self.context, self.b, signature, [value for _, value in args])
        return signature.return_type, result

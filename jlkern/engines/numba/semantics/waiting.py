"""What threads need to share work without Python's locks: atomic access, and sleeping until a word changes (Linux)."""

from __future__ import annotations

import platform
from typing import Any

import llvmlite.ir as ir
from numba.core import cgutils
from numba.core import types as _types
from numba.extending import intrinsic

types: Any = _types  # its own stubs lack most of it
_I64 = ir.IntType(64)
FUTEX = {"x86_64": 202, "aarch64": 98}
"""The number of the system call by which a thread sleeps until a word changes."""

WAIT, WAKE = 128, 129


@intrinsic
def watch(_typing: Any, pointer: Any, offset: Any) -> Any:
    """`pointer[offset]` as it is now, whatever thread wrote it."""

    def codegen(_context: Any, b: Any, _sig: Any, args: Any) -> Any:
        return b.load_atomic(b.gep(args[0], [args[1]], inbounds=True), "seq_cst", 8)

    return types.int64(pointer, types.int64), codegen


@intrinsic
def publish(_typing: Any, pointer: Any, offset: Any, value: Any) -> Any:
    """`pointer[offset] = value`, seen by other threads after all that was written before."""

    def codegen(context: Any, b: Any, _sig: Any, args: Any) -> Any:
        b.store_atomic(args[2], b.gep(args[0], [args[1]], inbounds=True), "seq_cst", 8)
        return context.get_dummy_value()

    return types.void(pointer, types.int64, types.int64), codegen


@intrinsic
def futex(_typing: Any, address: Any, operation: Any, value: Any) -> Any:
    """Sleep while the 32 bits at an address are `value` (`WAIT`), or wake `value` threads that do (`WAKE`)."""

    def codegen(_context: Any, b: Any, _sig: Any, args: Any) -> Any:
        call = cgutils.get_or_insert_function(b.module, ir.FunctionType(_I64, [_I64], var_arg=True), "syscall")
        zero = ir.Constant(_I64, 0)
        return b.call(call, [ir.Constant(_I64, FUTEX[platform.machine()]), *args, zero, zero, zero])

    return types.int64(types.int64, types.int64, types.int64), codegen


@intrinsic
def relax(_typing: Any) -> Any:
    """Tell the CPU that this is a loop that waits."""

    def codegen(context: Any, b: Any, _sig: Any, _args: Any) -> Any:
        if platform.machine() == "x86_64":
            nothing = ir.FunctionType(ir.VoidType(), [])
            b.call(cgutils.get_or_insert_function(b.module, nothing, "llvm.x86.sse2.pause"), [])
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def give_way(_typing: Any) -> Any:
    """Let another thread have this core."""

    def codegen(context: Any, b: Any, _sig: Any, _args: Any) -> Any:
        call = cgutils.get_or_insert_function(b.module, ir.FunctionType(ir.IntType(32), []), "sched_yield")
        b.call(call, [])
        return context.get_dummy_value()

    return types.void(), codegen

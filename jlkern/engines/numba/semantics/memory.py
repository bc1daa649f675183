"""Memory in compiled kernels: pointers from addresses, element access, stack arrays, atomics."""

from __future__ import annotations

from typing import Any

import llvmlite.ir as ir
from numba.core import cgutils
from numba.core import types as _types
from numba.extending import intrinsic

from jlkern.engines.numba.printing import callback

types: Any = _types  # its own stubs lack most of it
_I64 = ir.IntType(64)


def _pointer(element: Any) -> Any:
    """Return a function that makes a typed pointer of an address."""
    ty = types.CPointer(element)

    @intrinsic
    def pointer(_typing: Any, address: Any) -> Any:
        def codegen(context: Any, b: Any, _sig: Any, args: Any) -> Any:
            return b.inttoptr(args[0], context.get_value_type(ty))

        return ty(types.int64), codegen

    return pointer


ELEMENTS = (types.boolean, types.int8, types.int16, types.int32, types.int64, types.uint8, types.uint16, types.uint32,
            types.uint64, types.float32, types.float64)  # fmt: skip
POINTERS = {("bool" if ty is types.boolean else str(ty)): _pointer(ty) for ty in ELEMENTS}


@intrinsic
def load(_typing: Any, pointer: Any, offset: Any) -> Any:
    """`pointer[offset]`; a Bool is any byte but 0."""

    def codegen(_context: Any, b: Any, sig: Any, args: Any) -> Any:
        value = b.load(b.gep(args[0], [args[1]], inbounds=True))
        return b.icmp_unsigned("!=", value, ir.Constant(value.type, 0)) if sig.return_type == types.boolean else value

    return pointer.dtype(pointer, types.int64), codegen


@intrinsic
def store(_typing: Any, pointer: Any, offset: Any, value: Any) -> Any:
    """`pointer[offset] = value`."""

    def codegen(context: Any, b: Any, _sig: Any, args: Any) -> Any:
        place = b.gep(args[0], [args[1]], inbounds=True)
        item = b.zext(args[2], place.type.pointee) if args[2].type == ir.IntType(1) else args[2]
        b.store(item, place)
        return context.get_dummy_value()

    return types.void(pointer, types.int64, pointer.dtype), codegen


def _stack(element: Any) -> Any:
    ty = types.CPointer(element)

    @intrinsic(prefer_literal=True)
    def array(_typing: Any, size: Any) -> Any:
        count = size.literal_value

        def codegen(context: Any, b: Any, _sig: Any, _args: Any) -> Any:
            item = context.get_value_type(ty).pointee
            with b.goto_entry_block():
                place = b.alloca(ir.ArrayType(item, max(count, 1)))
                place.align = 64
            return b.bitcast(place, item.as_pointer())

        return ty(size), codegen

    return array


#: `stack_float32(n)`: n elements that live as long as the call, aligned for vectors; n is a literal.
STACKS = {("bool" if ty is types.boolean else str(ty)): _stack(ty) for ty in ELEMENTS}


@intrinsic
def address_of(_typing: Any, pointer: Any) -> Any:
    """The address that a pointer holds."""

    def codegen(_context: Any, b: Any, _sig: Any, args: Any) -> Any:
        return b.ptrtoint(args[0], _I64)

    return types.int64(pointer), codegen


@intrinsic
def bits_of(_typing: Any, value: Any) -> Any:
    """A scalar's bits in an int64, as it travels in an argument block."""
    value = types.unliteral(value)

    def codegen(_context: Any, b: Any, _sig: Any, args: Any) -> Any:
        item = args[0]
        if isinstance(item.type, ir.FloatType):
            item = b.bitcast(item, ir.IntType(32))
        elif isinstance(item.type, ir.DoubleType):
            item = b.bitcast(item, _I64)
        return item if item.type == _I64 else b.zext(item, _I64)

    return types.int64(value), codegen


def _from_bits(to: Any) -> Any:
    @intrinsic
    def value(_typing: Any, bits: Any) -> Any:
        def codegen(_context: Any, b: Any, _sig: Any, args: Any) -> Any:
            if to is types.float64:
                return b.bitcast(args[0], ir.DoubleType())
            if to is types.float32:
                return b.bitcast(b.trunc(args[0], ir.IntType(32)), ir.FloatType())
            if to is types.boolean:
                return b.icmp_unsigned("!=", args[0], ir.Constant(_I64, 0))
            return args[0] if to.bitwidth == 64 else b.trunc(args[0], ir.IntType(to.bitwidth))

        return to(types.int64), codegen

    return value


#: `bits_float32(b)`: the scalar that `bits_of` packed.
FROM_BITS = {("bool" if ty is types.boolean else str(ty)): _from_bits(ty) for ty in ELEMENTS}


def _atomic(op: str) -> Any:
    @intrinsic
    def operation(_typing: Any, pointer: Any, offset: Any, value: Any) -> Any:
        def codegen(_context: Any, b: Any, sig: Any, args: Any) -> Any:
            place = b.gep(args[0], [args[1]], inbounds=True)
            name = op
            if isinstance(args[2].type, (ir.FloatType, ir.DoubleType)):
                if op == "xchg":
                    bits = ir.IntType(32 if isinstance(args[2].type, ir.FloatType) else 64)
                    old = b.atomic_rmw("xchg", b.bitcast(place, bits.as_pointer()), b.bitcast(args[2], bits), "seq_cst")
                    return b.bitcast(old, args[2].type)
                name = {"add": "fadd", "sub": "fsub"}[op]
            elif op in ("min", "max") and not getattr(sig.args[0].dtype, "signed", False):
                name = "u" + op
            return b.atomic_rmw(name, place, args[2], "seq_cst")

        return pointer.dtype(pointer, types.int64, pointer.dtype), codegen

    return operation


#: `atomic_add(pointer, offset, value)` and its like return the old value.
ATOMICS = {op: _atomic(op) for op in ("add", "sub", "min", "max", "and", "or", "xor", "xchg")}


@intrinsic
def compare_exchange(_typing: Any, pointer: Any, offset: Any, old: Any, new: Any) -> Any:
    """Store `new` if the element still has the bits of `old`; tell whether it did."""

    def codegen(_context: Any, b: Any, _sig: Any, args: Any) -> Any:
        place, old_value, new_value = b.gep(args[0], [args[1]], inbounds=True), args[2], args[3]
        item = place.type.pointee
        if isinstance(item, (ir.FloatType, ir.DoubleType)):
            bits = ir.IntType(32 if isinstance(item, ir.FloatType) else 64)
            place = b.bitcast(place, bits.as_pointer())
            old_value, new_value = b.bitcast(old_value, bits), b.bitcast(new_value, bits)
        elif old_value.type != item:
            old_value, new_value = b.zext(old_value, item), b.zext(new_value, item)
        return b.extract_value(b.cmpxchg(place, old_value, new_value, "seq_cst"), 1)

    return types.boolean(pointer, types.int64, pointer.dtype, pointer.dtype), codegen


@intrinsic
def call_chunk(_typing: Any, code: Any, block: Any, errors: Any, first: Any, last: Any) -> Any:
    """Call compiled work-groups `first` to `last` at a native address; 0, or the number of a failed check."""

    def codegen(_context: Any, b: Any, _sig: Any, args: Any) -> Any:
        function = b.inttoptr(args[0], ir.FunctionType(_I64, [_I64] * 4).as_pointer())
        return b.call(function, args[1:])

    return types.int64(types.int64, types.int64, types.int64, types.int64, types.int64), codegen


REPORT = 16
"""int64 slots of a report: the number of the failed check, then its details."""


@intrinsic
def keep_report(_typing: Any, site: Any, details: Any) -> Any:
    """Put a failed check's number and details into memory of their own; its address, which is never 0 or negative.

    Each launch makes its own report, so that launches at the same time do not mix theirs. Whoever reads it frees it.
    """

    def codegen(_context: Any, b: Any, _sig: Any, args: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        malloc = cgutils.get_or_insert_function(b.module, ir.FunctionType(byte, [_I64]), "malloc")
        record = b.bitcast(b.call(malloc, [ir.Constant(_I64, 8 * REPORT)]), _I64.as_pointer())
        b.store(args[0], record)
        for k in range(1, REPORT):
            here, there = ir.Constant(_I64, k - 1), ir.Constant(_I64, k)
            b.store(b.load(b.gep(args[1], [here])), b.gep(record, [there]))
        return b.ptrtoint(record, _I64)

    return types.int64(types.int64, details), codegen


@intrinsic
def print_part(_typing: Any, kind: Any, bits: Any) -> Any:
    """Hand a part of a `@print` to Python; see `printing`."""

    def codegen(context: Any, b: Any, _sig: Any, args: Any) -> Any:
        address = ir.Constant(_I64, callback()[0])
        function = b.inttoptr(address, ir.FunctionType(ir.VoidType(), [_I64, _I64]).as_pointer())
        b.call(function, args)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


@intrinsic
def output_address(_typing: Any, array: Any) -> Any:
    """The address of an array that the kernel writes; read-only ones have no such function."""
    if not isinstance(array, types.Array) or not array.mutable or not array.aligned:
        return None

    def codegen(context: Any, b: Any, sig: Any, args: Any) -> Any:
        from numba.np.arrayobj import make_array

        data = make_array(sig.args[0])(context, b, args[0]).data
        return b.ptrtoint(data, _I64)

    return types.int64(array), codegen


@intrinsic
def input_address(_typing: Any, array: Any) -> Any:
    """The address of an array that the kernel only reads."""
    if not isinstance(array, types.Array) or not array.aligned:
        return None

    def codegen(context: Any, b: Any, sig: Any, args: Any) -> Any:
        from numba.np.arrayobj import make_array

        data = make_array(sig.args[0])(context, b, args[0]).data
        return b.ptrtoint(data, _I64)

    return types.int64(array), codegen

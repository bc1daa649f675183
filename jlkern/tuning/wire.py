"""What travels to a worker process and back: arguments, sources, requests as JSON, arrays as places in shared memory.

Nothing here can carry code but a kernel's source; callables stay in the process that has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jlkern import errors
from jlkern.engines.base import CompileRequest
from jlkern.signature import JuliaFunction, Signature, Val
from jlkern.source import KernelSource, Origin, load_source
from jlkern.space import Value


class WorkerError(Exception):
    """An exception of the worker's that has no class of its own here."""


def encode_value(value: Any) -> Any:
    """Return an argument that is no array as JSON.

    >>> decode_value(encode_value((np.float32(0.1), True, 3)))
    (np.float32(0.1), True, 3)
    """
    if isinstance(value, tuple):
        return {"tuple": [encode_value(item) for item in value]}
    if isinstance(value, np.generic):
        return {"numpy": value.dtype.name, "bytes": value.tobytes().hex()}
    if isinstance(value, np.dtype):
        return {"dtype": value.name}
    if isinstance(value, type):
        return {"type": np.dtype(value).name} if issubclass(value, np.generic) else {"python": value.__name__}
    if isinstance(value, Val):
        return {"val": encode_value(value.value)}
    if isinstance(value, JuliaFunction):
        return {"julia": value.name}
    if isinstance(value, complex):
        return {"complex": [value.real.hex(), value.imag.hex()]}
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, (bool, int, str)):
        return {"plain": value}
    raise TypeError(f"{type(value).__name__} arguments can not be sent to a worker process")


def decode_value(data: Mapping[str, Any]) -> Any:
    """Return the argument of `encode_value`."""
    (kind,) = data.keys() - {"bytes"}
    value = data[kind]
    if kind == "tuple":
        return tuple(map(decode_value, value))
    if kind == "numpy":
        return np.frombuffer(bytes.fromhex(data["bytes"]), value)[0]
    if kind in ("dtype", "type"):
        return np.dtype(value) if kind == "dtype" else np.dtype(value).type
    if kind == "python":
        return {"bool": bool, "int": int, "float": float, "complex": complex}[value]
    if kind == "val":
        return Val(decode_value(value))
    if kind == "julia":
        return JuliaFunction(value)
    if kind == "complex":
        return complex(*map(float.fromhex, value))
    return float.fromhex(value) if kind == "float" else value


def encode_array(array: np.ndarray[Any, Any], segments: Sequence[tuple[str, int, int]]) -> dict[str, Any]:
    """Return where an array lies, given each segment's name, address and size; an empty array lies nowhere."""
    place: dict[str, Any] = {
        "shape": array.shape,
        "strides": array.strides,
        "type": array.dtype.str,
        "writeable": array.flags.writeable,
        "segment": None,
        "offset": 0,
    }
    address = int(array.__array_interface__["data"][0])
    for name, start, size in segments:
        if array.size and start <= address < start + size:
            return {**place, "segment": name, "offset": address - start}
    if array.size:
        raise ValueError("the array is in no segment")
    return place


def decode_array(place: Mapping[str, Any], memory: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    """Return the array at a place, given each segment's memory."""
    shape, strides, dtype = tuple(place["shape"]), tuple(place["strides"]), np.dtype(place["type"])
    if place["segment"] is None:
        array: np.ndarray[Any, Any] = np.ndarray(shape, dtype)
    else:
        array = np.ndarray(shape, dtype, memory[place["segment"]], place["offset"], strides)
    array.flags.writeable = place["writeable"]
    return array


def encode_source(source: KernelSource, tunables: Sequence[str]) -> dict[str, Any]:
    """Return a source as JSON."""
    origin = source.origin
    return {
        "text": source.text,
        "name": source.name,
        "tunables": list(tunables),
        "origin": [origin.file, origin.line, origin.exact],
    }


def decode_source(data: Mapping[str, Any]) -> KernelSource:
    """Return the source of `encode_source`."""
    return load_source(data["text"], Origin(*data["origin"]), tuple(data["tunables"]), data["name"])


def encode_request(request: CompileRequest) -> dict[str, Any]:
    """Return a request as JSON, without its source and signature, which all requests of a tuning share."""
    return {
        "signature": list(map(str, request.signature)),
        "params": [[name, value] for name, value in request.params.items()],
        "workgroup": request.workgroup,
        "ndims": request.ndims,
        "written": sorted(request.written),
        "schedule": request.schedule,
        "check_bounds": request.check_bounds,
    }


def decode_request(data: Mapping[str, Any], source: KernelSource, signature: Signature) -> CompileRequest:
    """Return the request of `encode_request`."""
    if data["signature"] != list(map(str, signature)):
        raise ValueError(f"the arguments are {', '.join(map(str, signature))} here, not {data['signature']}")
    return CompileRequest(
        source=source,
        signature=signature,
        params=dict(_pairs(data["params"])),
        workgroup=None if data["workgroup"] is None else tuple(data["workgroup"]),
        ndims=data["ndims"],
        written=frozenset(data["written"]),
        schedule=_pairs(data["schedule"]),
        check_bounds=data["check_bounds"],
    )


def encode_error(problem: BaseException) -> list[str]:
    """Return an exception as its class's name and its text."""
    return [type(problem).__name__, str(problem)]


def decode_error(data: Sequence[str]) -> Exception:
    """Return the exception of `encode_error`: of jlkern's class, or a `WorkerError` that names it."""
    name, text = data
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, errors.JlkernError):
        return kind(text)
    return MemoryError(text) if name == "MemoryError" else WorkerError(f"{name}: {text}" if text else name)


def _pairs(data: Sequence[Sequence[Any]]) -> tuple[tuple[str, Value], ...]:
    return tuple((name, _value(value)) for name, value in data)


def _value(data: Any) -> Value:
    return tuple(map(_value, data)) if isinstance(data, list) else data

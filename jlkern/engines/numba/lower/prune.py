"""Dropping what the SIMT form computes and never uses."""

from __future__ import annotations

from dataclasses import replace

from jlkern.engines.numba.lower.fold import variables
from jlkern.engines.numba.lower.simt import Assign, Atomic, Check, For, If, Load, Print, Stmt, Store, While


def prune(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return the statements without assignments and loads of variables that nothing reads.

    Assignments that the next one of the same variable makes useless go too.
    """
    while True:
        shorter = _without(body, used_names(body))
        if shorter == body:
            return body
        body = shorter


def used_names(body: tuple[Stmt, ...]) -> set[str]:
    """Return the names of the variables that statements read."""
    used: set[str] = set()
    _collect(body, used)
    return used


def _collect(body: tuple[Stmt, ...], used: set[str]) -> None:
    for stmt in body:
        if isinstance(stmt, Assign):
            used |= variables(stmt.expr) - {stmt.var.name}
        elif isinstance(stmt, Load):
            used |= variables(stmt.offset)
        elif isinstance(stmt, (Store, Atomic)):
            used |= variables(stmt.offset) | variables(stmt.value)
            if isinstance(stmt, Atomic):
                _collect(stmt.body, used)
        elif isinstance(stmt, If):
            used |= variables(stmt.cond)
            _collect(stmt.then, used)
            _collect(stmt.orelse, used)
        elif isinstance(stmt, For):
            used |= variables(stmt.start) | variables(stmt.stop) | variables(stmt.step)
            _collect(stmt.body, used)
        elif isinstance(stmt, While):
            used |= variables(stmt.cond)
            _collect(stmt.header, used)
            _collect(stmt.body, used)
        elif isinstance(stmt, Check):
            used |= variables(stmt.bad)
            for detail in stmt.details:
                used |= variables(detail)
        elif isinstance(stmt, Print):
            for part in stmt.parts:
                used |= set() if isinstance(part, str) else variables(part)


def _without(body: tuple[Stmt, ...], used: set[str]) -> tuple[Stmt, ...]:
    kept: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, (Assign, Load)) and stmt.var.name not in used:
            continue
        if isinstance(stmt, Assign) and kept and isinstance(kept[-1], Assign) and kept[-1].var == stmt.var:
            if stmt.var.name not in variables(stmt.expr):
                kept.pop()
        if isinstance(stmt, If):
            stmt = replace(stmt, then=_without(stmt.then, used), orelse=_without(stmt.orelse, used))
            if not stmt.then and not stmt.orelse:
                continue
        elif isinstance(stmt, For):
            stmt = replace(stmt, body=_without(stmt.body, used))
        elif isinstance(stmt, While):
            stmt = replace(stmt, header=_without(stmt.header, used), body=_without(stmt.body, used))
        elif isinstance(stmt, Atomic):
            stmt = replace(stmt, body=_without(stmt.body, used))
        kept.append(stmt)
    return tuple(kept)

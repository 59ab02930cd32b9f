"""Every mutant of a module: one node of its syntax tree becomes another.

    <  to <=, >=        and to or           min to max        x + 1 to x - 1, x + 2, x + 0
    == to !=            not x to x          any to all        is_open=True to is_open=False
    in to not in        break to continue   a condition, or a part of one, to True or False
    return x to return of the return type's least value       a write or a call to pass

Only what functions do is mutated, and the defaults of their parameters. What stands on its own in
a module or class is data, and so is every string. Left alone too: annotations, decorators, asserts,
log calls, what `raise` says, and f-strings, since Python 3.11 does not say where their parts begin.

The text of the node is replaced and nothing else, so that the difference can be applied as a patch.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator
from dataclasses import dataclass

from tests.sim.planted_syntax import Function

COMPARED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
CALLED = {"min": "max", "minimum": "maximum", "any": "all"}
CALLED |= {becomes: name for name, becomes in CALLED.items()}
LEAST = {"bool": "False", "int": "0", "float": "0.0", "str": "''"}  # by return type
LEAST |= {"list": "[]", "dict": "{}", "set": "set()", "frozenset": "frozenset()"}

LEFT_ALONE = (ast.JoinedStr, ast.Raise, ast.Assert)
FIELDS_LEFT_ALONE = ("annotation", "returns", "decorator_list")
LOGS = ("log", "_log")
LITERALS = (ast.Constant, ast.Tuple, ast.List, ast.Dict)
NEEDS_NO_PARENTHESES = (ast.stmt, ast.Constant, ast.Name, ast.Attribute, ast.Call)

Replaced = Iterator[tuple[ast.AST, ast.AST]]
"""A node, and what takes its place."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change to the text of one module. Units: `start`, `end` in bytes of its UTF-8."""

    path: str  # from the root of the checkout
    line: int
    start: int
    end: int
    becomes: str

    def applied(self, source: str) -> str:
        """The module with the change made."""
        text = source.encode()
        return (text[: self.start] + self.becomes.encode() + text[self.end :]).decode()

    def diff(self, source: str) -> str:
        """The change as a unified diff."""
        before, after = (text.splitlines(keepends=True) for text in (source, self.applied(source)))
        return "".join(difflib.unified_diff(before, after, f"a/{self.path}", f"b/{self.path}"))


def mutants(path: str, source: str) -> list[Mutant]:
    """All of one module, in the order of their places."""
    begins = [0]
    for line in source.encode().splitlines(keepends=True):
        begins.append(begins[-1] + len(line))
    found = []
    for node, new in _replaced(ast.parse(source), returns=None):
        start = begins[node.lineno - 1] + node.col_offset
        end = begins[node.end_lineno - 1] + node.end_col_offset
        code = ast.unparse(new)
        becomes = code if isinstance(new, NEEDS_NO_PARENTHESES) else f"({code})"
        found.append(Mutant(path, node.lineno, start, end, becomes))
    return sorted(dict.fromkeys(found), key=lambda each: (each.start, each.end))


def _replaced(node: ast.AST, returns: str | None) -> Replaced:
    """What may change in a node and below it.

    `returns`: the return type of the function around it, as text; None outside functions.
    """
    if isinstance(node, LEFT_ALONE) or _is_log_call(node):
        return
    if isinstance(node, Function):
        returns = ast.unparse(node.returns) if node.returns else ""
    elif returns is not None:
        yield from ((node, new) for new in _instead_of(node))
        yield from _conditions(node)
        yield from _returned(node, returns)
    for name, value in ast.iter_fields(node):
        if name not in FIELDS_LEFT_ALONE:
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _replaced(child, returns)


def _instead_of(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Compare(left, ops, comparators):
            for at, op in enumerate(ops):
                for other in COMPARED[type(op)]:
                    yield ast.Compare(left, [*ops[:at], other(), *ops[at + 1 :]], comparators)
        case ast.BoolOp(op, values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(ast.Not(), operand):
            yield operand
        case ast.BinOp(left, ast.Add() | ast.Sub() as op, right):
            yield ast.BinOp(left, ast.Sub() if isinstance(op, ast.Add) else ast.Add(), right)
        case ast.Constant(bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(int(value) | float(value)):
            yield from (ast.Constant(value + 1), ast.Constant(value - 1))
        case ast.Name(name, ctx) if name in CALLED:
            yield ast.Name(CALLED[name], ctx)
        case ast.Attribute(owner, name, ctx) if name in CALLED:
            yield ast.Attribute(owner, CALLED[name], ctx)
        case ast.Break():
            yield ast.Continue()
        case ast.Continue():
            yield ast.Break()
        case ast.Assign([ast.Attribute() | ast.Subscript(), *_]) | ast.AugAssign() | ast.Delete():
            yield ast.Pass()
        case ast.Expr(ast.Call() | ast.Await()):
            yield ast.Pass()


def _conditions(node: ast.AST) -> Replaced:
    """What decides, forced; a part of it, forced so that the others decide."""
    match node:
        case ast.If(test) | ast.IfExp(test):
            forced = [(test, True), (test, False)]
        case ast.While(test) if not isinstance(test, ast.Constant):
            forced = [(test, False)]
        case ast.comprehension(ifs=tests):
            forced = [(test, value) for test in tests for value in (True, False)]
        case ast.match_case(guard=ast.expr() as test):
            forced = [(test, True), (test, False)]
        case ast.BoolOp(op, values):
            parts = [value for value in values if not isinstance(value, LITERALS)]
            forced = [(part, isinstance(op, ast.And)) for part in parts]
        case _:
            return
    yield from ((test, ast.Constant(value)) for test, value in forced)


def _returned(node: ast.AST, returns: str) -> Replaced:
    """The least value of its type instead of what a function returns."""
    if not isinstance(node, ast.Return) or node.value is None or _is_text(node.value):
        return
    code = "None" if returns.endswith("| None") else LEAST.get(returns.partition("[")[0])
    if returns.startswith("tuple[") and returns.endswith(", ...]"):
        code = "()"
    if code is not None and code != ast.unparse(node.value):
        yield node.value, ast.parse(code, mode="eval").body


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _is_log_call(node: ast.AST) -> bool:
    match node:
        case ast.Expr(ast.Call(ast.Attribute(ast.Name(name)))):
            return name in LOGS
    return False

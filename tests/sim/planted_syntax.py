"""How a bug is planted: one piece of syntax in one function becomes another.

Syntax trees are compared, not text: line breaks, spaces, comments, parentheses and the kind of
quotes make no difference. What is planted must be found exactly once; otherwise the code has
changed and the bug has to be written anew.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from tests.sim.mode import USUAL, Mode

Function = ast.FunctionDef | ast.AsyncFunctionDef
Part = Literal["statement", "condition", "expression"]


@dataclass(frozen=True, slots=True)
class Change:
    """A piece of code and the code that takes its place.

    `part`: a whole statement, the condition of an `if` or `elif`, or any expression that is read.
    The target of an assignment is not read, so it is never taken for the same expression.
    """

    part: Part
    code: str
    becomes: str


@dataclass(frozen=True, slots=True)
class Planted:
    """A change to one function, and what it breaks.

    `function`: its module, its classes and its own name, joined by dots.
    """

    function: str
    change: Change
    breaks: str
    is_quick: bool = False  # found within a few seeds: the tests plant it too
    first: int = 1  # a seed that is known to find it: those from there on are played
    mode: Mode = USUAL  # of the histories that find it
    test: str = ""  # that finds it where no random world has what it is about: its pytest id


class Mutant(NamedTuple):
    """A module with a bug in it."""

    path: Path
    source: str


def plant(planted: Planted, root: Path) -> None:
    """Write the bug into the copy of the project at `root`.

    Raises: ValueError, see `mutant`.
    """
    path, source = mutant(planted, root)
    path.write_text(source, encoding="utf-8")


def mutant(planted: Planted, root: Path) -> Mutant:
    """The module that `planted` changes, with the change made.

    Raises: ValueError, with the bug's name, if its function or its code is not there exactly once.
    """
    try:
        path, names = _module_of(planted.function, root)
        module = ast.parse(path.read_text(encoding="utf-8"))
        function = _function_in(module, names, planted.function)
        _apply(planted.change, function, planted.function)
    except (ValueError, SyntaxError) as error:
        raise ValueError(f"planted bug {planted.breaks!r}: {error}") from error
    return Mutant(path, ast.unparse(module) + "\n")


def parsed(code: str, part: Part) -> ast.AST:
    """The syntax of a piece of code that is one statement, or one expression."""
    if part != "statement":
        return ast.parse(code, mode="eval").body
    statements = ast.parse(code).body
    if len(statements) != 1:
        raise ValueError(f"{code!r} is {len(statements)} statements, not one")
    return statements[0]


def _module_of(name: str, root: Path) -> tuple[Path, Sequence[str]]:
    """The file that a dotted name leads to, and the rest of the name."""
    parts = name.split(".")
    for end in range(len(parts) - 1, 0, -1):
        module = root.joinpath(*parts[:end])
        for path in (module.with_suffix(".py"), module / "__init__.py"):
            if path.is_file():
                return path, parts[end:]
    raise ValueError(f"{name}: no module of that name")


def _function_in(module: ast.Module, names: Sequence[str], whole_name: str) -> Function:
    """The one function that is defined under these names, the outermost class first."""
    scopes: list[ast.Module | ast.ClassDef | Function] = [module]
    for name in names:
        scopes = [
            node
            for scope in scopes
            for node in scope.body
            if isinstance(node, ast.ClassDef | Function) and node.name == name
        ]
    functions = [scope for scope in scopes if isinstance(scope, Function)]
    if len(functions) != 1:
        found = len(functions) or "no"
        raise ValueError(f"{whole_name}: {found} functions {'.'.join(names)} in the module, not 1")
    return functions[0]


def _apply(change: Change, function: Function, whole_name: str) -> None:
    code = ast.dump(parsed(change.code, change.part))
    matches = [node for node in _parts(function, change.part) if ast.dump(node) == code]
    if len(matches) != 1:
        found = len(matches) or "no"
        raise ValueError(f"{whole_name}: {found} matches of {change.part} {change.code!r}, not 1")
    Replacement(matches[0], parsed(change.becomes, change.part)).visit(function)


def _parts(function: Function, part: Part) -> Iterator[ast.AST]:
    for node in ast.walk(function):
        match part:
            case "condition" if isinstance(node, ast.If):
                yield node.test
            case "expression" if isinstance(node, ast.expr):
                yield node
            case "statement" if isinstance(node, ast.stmt):
                yield node


class Replacement(ast.NodeTransformer):
    """Puts one node in the place of another."""

    def __init__(self, node: ast.AST, becomes: ast.AST) -> None:
        self._node = node
        self._becomes = becomes

    def visit(self, node: ast.AST) -> ast.AST:
        return self._becomes if node is self._node else self.generic_visit(node)

"""One file writes each field of a gang's record: what the docstrings there say, the code keeps."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

STATE = Path(__file__).resolve().parents[3] / "app" / "state"
GANG = ast.parse((STATE / "gang" / "gang.py").read_text(encoding="utf-8"))
GANGS = ast.parse((STATE / "gang" / "gangs.py").read_text(encoding="utf-8"))
PARTS = ast.parse((STATE / "gang" / "parts.py").read_text(encoding="utf-8"))
FLAT = re.compile(r"^ *([a-z_, ]+?)  +(?:written )?by `(\S+\.py)`$", re.MULTILINE)
WRITTEN_BY = re.compile(r"[Ww]ritten by `(\S+\.py)`")
MUTATORS = frozenset(
    (
        *("add", "append", "clear", "discard", "extend", "insert", "pop", "popitem"),
        *("remove", "reverse", "setdefault", "sort", "update"),
    )
)
Chain = tuple[str, ...]  # `gang.plan.nodes` as names


def _classes(module: ast.Module) -> dict[str, ast.ClassDef]:
    return {each.name: each for each in module.body if isinstance(each, ast.ClassDef)}


def _fields(owner: ast.ClassDef) -> dict[str, str]:
    """The fields of a dataclass and their types, as written."""
    return {
        each.target.id: ast.unparse(each.annotation)
        for each in owner.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }


def _owners() -> dict[Chain, str]:
    """The file that writes a field, by the last names that lead to it."""
    gang, parts = _classes(GANG)["Gang"], _classes(PARTS)
    owners = {("allowed",): "queueing/ungating.py"}  # of a Member, once it is known
    for names, file in FLAT.findall(ast.get_docstring(gang) or ""):
        owners |= {("gang", name): file for name in names.split(", ")}
    owners |= {("gangs", name): "gang/gangs.py" for name in _fields(_classes(GANGS)["Gangs"])}
    owners |= {(name,): _owner(parts["Placeholder"]) for name in _fields(parts["Placeholder"])}
    for attribute, type_ in _fields(gang).items():
        if type_ in parts:
            fields = _fields(parts[type_])
            owners |= {(attribute, name): _owner(parts[type_]) for name in fields}
    return owners


def _owner(part: ast.ClassDef) -> str:
    (file,) = WRITTEN_BY.findall(ast.get_docstring(part) or "")
    return str(file)


def _chain(expression: ast.expr) -> Chain:
    """The names of `a.b.c`, or of what `a.b.c[d]` is an item of; () for anything else."""
    match expression:
        case ast.Name(name):
            return (name,)
        case ast.Attribute(base, name):
            return (*above, name) if (above := _chain(base)) else ()
        case ast.Subscript(base):
            return _chain(base)
    return ()


def _written(module: ast.Module) -> Iterator[tuple[int, ast.expr]]:
    """Every expression that is assigned to, deleted, or mutated by a method, with its line."""
    for node in ast.walk(module):
        targets: list[ast.expr] = []
        match node:
            case ast.Assign(targets=targets) | ast.Delete(targets=targets):
                pass
            case ast.AugAssign(target=target) | ast.AnnAssign(target=target, value=ast.expr()):
                targets = [target]
            case ast.Call(func=ast.Attribute(value=base, attr=method)) if method in MUTATORS:
                targets = [base]
        for target in targets:
            each = target.elts if isinstance(target, ast.Tuple) else [target]
            # A plain name is a variable of the function, not a field.
            yield from ((node.lineno, one) for one in each if not isinstance(one, ast.Name))
            if isinstance(node, ast.Call) and isinstance(target, ast.Name):
                yield node.lineno, target


def _aliases(module: ast.Module) -> dict[str, Chain]:
    """Variables that stand for something longer: `plan = gang.plan`."""
    found: dict[str, Chain] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.Assign):
            (target, *_), value = node.targets, node.value
            pairs = [(target, value)]
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs = list(zip(target.elts, value.elts, strict=True))
            for name, chain in ((each, _chain(of)) for each, of in pairs):
                if isinstance(name, ast.Name) and len(chain) > 1:
                    found[name.id] = chain
    return found


def _trespasses(code: str, file: str) -> list[str]:
    """Writes in this file to fields that another file owns."""
    module, owners = ast.parse(code), _owners()
    aliases, found = _aliases(module), []
    for line, expression in _written(module):
        head, *rest = _chain(expression) or ("",)
        chain = (*aliases.get(head, (head,)), *rest)
        chain = chain[1:] if chain[0] == "self" else chain
        is_of_gang = len(chain) > 2 or chain[0] in ("gang", "gangs")
        owner = owners.get(chain[-2:]) if is_of_gang else None
        owner = owner or (owners.get(chain[-1:]) if len(chain) > 1 else None)
        if owner not in (None, file):
            found.append(f"{file}:{line} writes {'.'.join(chain)}, which is for {owner}")
    return found


def test_every_field_of_a_gang_has_one_owner_that_exists():
    fields = {("gang", name) for name in _fields(_classes(GANG)["Gang"])} - {("gang", "key")}
    parts = {("gang", chain[0]) for chain in _owners() if len(chain) > 1} & fields
    assert fields - parts == _owners().keys() & fields
    assert {file for file in _owners().values() if not (STATE / file).is_file()} == set()


def test_no_file_writes_what_another_one_owns():
    files = sorted(STATE.rglob("*.py"))
    assert len(files) > 40
    assert [
        trespass
        for path in files
        for trespass in _trespasses(
            path.read_text(encoding="utf-8"), path.relative_to(STATE).as_posix()
        )
    ] == []


@pytest.mark.parametrize(
    "code",
    [
        "gang.phase = phase",
        "gang.members[uid] = member",
        "gang.plan.nodes[uid] = node",
        "del gang.binding.at_bind[uid]",
        "self.gang.binding.posted |= uids",
        "gang.reporting.sentence, gang.reporting.sentence_at = sentence, None",
        "gang.rejections.outdated.popitem()",
        "plan = gang.plan\nplan.nodes.clear()",
        "nodes, others = gang.plan.nodes, ()\nnodes.pop(uid)",
        "del self.gangs.by_key[key]",
        "place.until = now",
        "member.allowed = None",
    ],
)
def test_a_write_is_recognised(code):
    assert len(set(_trespasses(code, "filtering.py"))) >= 1


@pytest.mark.parametrize(
    "code",
    [
        "plan.nodes[uid] = node",  # a search's plan, not a gang's
        "phase = gang.phase",
        "binding.progress(gang, now)",
        "nodes = {**gang.plan.nodes}\nnodes.clear()",
        "self.members = {}",
    ],
)
def test_what_is_no_write_to_a_gang_is_left_alone(code):
    assert _trespasses(code, "filtering.py") == []

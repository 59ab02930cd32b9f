"""The simulator finds bugs: the quick ones are planted here, `python -m tests.sim.planted` all."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

import pytest

from tests.sim.planted import ROOT, catch
from tests.sim.planted_bugs import PLANTED
from tests.sim.planted_syntax import Change, Planted, mutant, parsed, plant

QUICK = tuple(each for each in PLANTED if each.is_quick)
LEAST = 15
ARRIVE = "app.state.gate.Barrier.arrive"
MODULE = '''
"""A gang waits here."""

def arrive(gang):
    gang.posted.clear()


class Barrier:
    def arrive(self, gang, uid):
        """Count one more."""
        gang.asked = gang.first
        if (
            gang.has_started  # some run already
            and uid not in gang.posted
        ):
            gang.posted.add(
                uid,
            )
        elif gang.posted:
            self.seen[uid] = "now"; gang.asked = None
        gang.asked = None

    @property
    def place(self):
        return self._place

    @place.setter
    def place(self, place):
        self._place = place
'''


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.breaks)
def test_a_planted_bug_changes_the_code_of_today(planted):
    path, source = mutant(planted, ROOT)
    compile(source, path, "exec")
    assert source != _unparsed(path)


def test_no_bug_is_planted_twice():
    assert len({planted.breaks for planted in PLANTED}) == len(PLANTED)
    assert len({(planted.function, planted.change) for planted in PLANTED}) == len(PLANTED)


def test_there_are_enough_of_them_in_every_part():
    assert len(PLANTED) >= LEAST
    for part in ("app.state.engine", "app.state.plan.planner", "app.state.pods.assumed_pods"):
        assert any(planted.function.startswith(f"{part}.") for planted in PLANTED)


@pytest.mark.slow
def test_a_planted_bug_names_only_what_the_code_has():
    """A name that is gone would raise, and the simulator would find that instead of the bug."""
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "app").rglob("*.py")]
    known = {name for source in sources for name in _names(ast.parse(source))} | set(dir(builtins))
    for planted in PLANTED:
        unknown = set(_names(parsed(planted.change.becomes, planted.change.part))) - known
        assert not unknown, planted.breaks


@pytest.mark.slow
@pytest.mark.parametrize("planted", QUICK, ids=lambda planted: planted.breaks)
def test_a_planted_bug_is_found(planted):
    assert catch(planted, seeds=20, jobs=1) is not None


@pytest.mark.parametrize(
    ("change", "line"),
    [
        pytest.param(
            Change("statement", "gang.posted.add(uid)", becomes="pass"),
            "pass",
            id="a_call_over_several_lines",
        ),
        pytest.param(
            Change("statement", "self.seen[uid]='now'", becomes="raise"),
            "raise",
            id="one_of_two_statements_on_a_line",
        ),
        pytest.param(
            Change("condition", "gang.has_started and uid not in gang.posted", becomes="False"),
            "if False:",
            id="a_condition_with_a_comment_in_it",
        ),
        pytest.param(
            Change("condition", "gang.posted", becomes="uid"),
            "elif uid:",
            id="a_condition_that_is_read_elsewhere_too",
        ),
        pytest.param(
            Change("expression", "uid not in gang.posted", becomes="True"),
            "if gang.has_started and True:",
            id="a_part_of_a_condition",
        ),
        pytest.param(
            Change("expression", "gang.first", becomes="gang.first + gang.first"),
            "gang.asked = gang.first + gang.first",
            id="an_expression_that_its_replacement_contains",
        ),
    ],
)
def test_a_change_is_made_whatever_the_code_is_laid_out_like(tmp_path, change, line):
    path = _module_in(tmp_path)
    before = _unparsed(path).splitlines()
    plant(Planted(ARRIVE, change, "some promise"), tmp_path)
    after = path.read_text(encoding="utf-8").splitlines()
    changed = [new.strip() for old, new in zip(before, after, strict=True) if old != new]
    assert changed == [line]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(
            Change("statement", "gang.posted.clear()", becomes="pass"),
            "no matches of statement 'gang.posted.clear()', not 1",
            id="only_in_another_function",
        ),
        pytest.param(
            Change("statement", "gang.asked = None", becomes="pass"),
            "2 matches of statement 'gang.asked = None', not 1",
            id="there_twice",
        ),
        pytest.param(
            Change("condition", "gang.has_started", becomes="False"),
            "no matches of condition 'gang.has_started', not 1",
            id="a_part_of_a_condition_only",
        ),
        pytest.param(
            Change("expression", "gang.asked", becomes="None"),
            "no matches of expression 'gang.asked', not 1",
            id="assigned_only",
        ),
        pytest.param(
            Change("expression", "gang.posted", becomes="None"),
            "3 matches of expression 'gang.posted', not 1",
            id="read_three_times",
        ),
    ],
)
def test_what_is_not_there_exactly_once_is_refused(tmp_path, change, message):
    _assert_refused(Planted(ARRIVE, change, "some promise"), message, tmp_path)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        pytest.param(
            "app.state.gate.Barrier.arive",
            "no functions Barrier.arive",
            id="no_such_function",
        ),
        pytest.param("app.state.gate.Barier.arrive", "no functions Barier", id="no_such_class"),
        pytest.param("app.state.gat.Barrier.arrive", "no module", id="no_such_module"),
        pytest.param("app.state.gate.Barrier", "no functions Barrier", id="a_class"),
        pytest.param("app.state.gate", "no module", id="a_module"),
        pytest.param(
            "app.state.gate.Barrier.place",
            "2 functions Barrier.place",
            id="defined_twice",
        ),
    ],
)
def test_a_name_that_leads_to_no_single_function_is_refused(tmp_path, function, message):
    change = Change("statement", "gang.posted.add(uid)", becomes="pass")
    _assert_refused(Planted(function, change, "some promise"), message, tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(
            Change("statement", "gang.posted.add(uid)", becomes="pass; pass"),
            "'pass; pass' is 2 statements, not one",
            id="two_statements",
        ),
        pytest.param(
            Change("expression", "gang.posted.add(uid)", becomes="pass"),
            "invalid syntax",
            id="a_statement_for_an_expression",
        ),
    ],
)
def test_code_of_another_kind_is_refused(tmp_path, change, message):
    _assert_refused(Planted(ARRIVE, change, "some promise"), message, tmp_path)


def _assert_refused(planted, message, root):
    """The error names the bug, and the file stays as it is."""
    path = _module_in(root)
    with pytest.raises(ValueError, match=r"^planted bug 'some promise': ") as caught:
        plant(planted, root)
    assert message in str(caught.value)
    assert path.read_text(encoding="utf-8") == MODULE


def _module_in(root):
    path = root / "app" / "state" / "gate.py"
    path.parent.mkdir(parents=True)
    path.write_text(MODULE, encoding="utf-8")
    return path


def _unparsed(path):
    return ast.unparse(ast.parse(path.read_text(encoding="utf-8"))) + "\n"


def _names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr

"""A mutant changes one node of a module and nothing else."""

from __future__ import annotations

import ast

import pytest

from tests.mutants.__main__ import drawn
from tests.mutants.syntax import mutants
from tests.sim.planted import ROOT
from tests.sim.planted_syntax import Replacement


@pytest.mark.parametrize(
    ("line", "becomes"),
    [
        pytest.param("x = a < b", ["x = (a <= b)", "x = (a >= b)"], id="a_boundary"),
        pytest.param("x = a not in b", ["x = (a in b)"], id="a_membership"),
        pytest.param(
            "x = b if a else c", ["x = b if True else c", "x = b if False else c"], id="a_choice"
        ),
        pytest.param(
            "x = a and b(c)",
            ["x = True and b(c)", "x = (a or b(c))", "x = a and True"],
            id="the_parts_of_a_condition",
        ),
        pytest.param("x = a or ()", ["x = False or ()", "x = (a and ())"], id="a_value_if_empty"),
        pytest.param("while a: b = c", ["while False: b = c"], id="a_loop_is_not_entered"),
        pytest.param("x = not a", ["x = a"], id="a_negation"),
        pytest.param("x = a[1]", ["x = a[2]", "x = a[0]"], id="an_index"),
        pytest.param("x = a - b", ["x = (a + b)"], id="a_difference"),
        pytest.param("x = np.minimum(a, b)", ["x = np.maximum(a, b)"], id="the_smaller_of_two"),
        pytest.param("x = max(a)", ["x = min(a)"], id="the_largest"),
        pytest.param(
            "x = [a for a in b if c]",
            ["x = [a for a in b if True]", "x = [a for a in b if False]"],
            id="a_filter",
        ),
        pytest.param("a.b = c", ["pass"], id="an_attribute_is_set"),
        pytest.param("a += b", ["pass"], id="a_sum_grows"),
        pytest.param("a(b=True)", ["pass", "a(b=False)"], id="a_call_for_its_effect"),
        pytest.param("break", ["continue"], id="the_end_of_a_loop"),
        pytest.param("return a", ["return False"], id="the_answer"),
    ],
)
def test_a_line_of_a_function_becomes(line, becomes):
    head = "def f() -> bool:\n  while ...:\n    "
    source = f"{head}{line}\n"
    assert [
        each.applied(source).removeprefix(head).strip() for each in mutants("m.py", source)
    ] == (becomes)


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("SECONDS = 5 + 1", id="a_constant_of_the_module"),
        pytest.param("class A:\n    is_open: bool = True", id="a_field_of_a_class"),
        pytest.param("@dataclass(frozen=True)\nclass A:\n    pass", id="a_decorator"),
        pytest.param("def f():\n    '''Not a < b.'''", id="a_docstring"),
        pytest.param("def f(a: Bound[1]) -> Bound[2]:\n    b: Bound[3] = a", id="annotations"),
        pytest.param("def f():\n    log.info('a', pods=1 + 1)", id="a_log_line"),
        pytest.param("def f():\n    raise ValueError(a[0])", id="what_an_error_says"),
        pytest.param("def f() -> str:\n    return f'{a + 1}'", id="a_sentence"),
    ],
)
def test_what_no_test_should_hold_is_left_alone(source):
    assert mutants("m.py", source) == []


def test_the_default_of_a_parameter_is_mutated():
    source = "class A:\n    def f(self, *, is_open=True): ..."
    assert [each.applied(source) for each in mutants("m.py", source)] == [
        source.replace("True", "False")
    ]


@pytest.mark.slow
def test_a_mutant_of_the_code_of_today_changes_one_node():
    for mutant in drawn(ROOT, count=15, seed=1):
        source = (ROOT / mutant.path).read_text(encoding="utf-8")
        changed = mutant.applied(source)
        compile(changed, mutant.path, "exec")
        assert ast.dump(ast.parse(changed)) in _with_one_node_replaced(source, mutant)
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source))


def test_the_difference_is_of_the_file_as_it_stands():
    source = "def f(a):\n    # Größe\n    return a + b  # »why«\n"
    (mutant,) = mutants("app/m.py", source)
    assert mutant.line == 3
    assert mutant.diff(source).splitlines()[:2] == ["--- a/app/m.py", "+++ b/app/m.py"]
    assert "-    return a + b  # »why«\n+    return (a - b)  # »why«\n" in mutant.diff(source)


@pytest.mark.slow
def test_the_same_seed_draws_the_same_mutants_and_a_larger_count_more_of_them():
    ten = drawn(ROOT, count=10, seed=7, paths=["topology/fit"])
    assert drawn(ROOT, count=20, seed=7, paths=["topology/fit"])[:10] == ten
    assert drawn(ROOT, count=10, seed=8, paths=["topology/fit"]) != ten


@pytest.mark.slow
def test_mutants_are_drawn_from_the_paths_given_and_never_from_the_sandbox():
    everywhere = {mutant.path for mutant in drawn(ROOT, count=10**9, seed=1)}
    below = {mutant.path for mutant in drawn(ROOT, count=10**9, seed=1, paths=["app/verbs"])}
    assert below == {path for path in everywhere if path.startswith("app/verbs/")}
    assert {path.split("/")[0] for path in everywhere} == {"app", "topology"}
    assert not any(path.startswith("app/sandbox/") for path in everywhere)


def _with_one_node_replaced(source, mutant):
    """The module's syntax for each node with the mutant's place and text, that node replaced."""
    (new,) = ast.parse(mutant.becomes).body
    text = source.encode()[mutant.start : mutant.end].decode()
    found = []
    for number, node in enumerate(ast.walk(ast.parse(source))):
        is_expression = isinstance(node, ast.expr)
        if (
            getattr(node, "lineno", 0) == mutant.line
            and ast.get_source_segment(source, node) == text
            and is_expression == isinstance(new, ast.Expr)
        ):
            module = ast.parse(source)
            node = list(ast.walk(module))[number]
            Replacement(node, new.value if is_expression else new).visit(module)
            found.append(ast.dump(module))
    return found

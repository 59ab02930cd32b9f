"""Which tests run which line, as `pytest --cov --cov-context=test` has recorded it.

A mutant can only be killed by a test that runs it, so no other test is tried. What a process of its
own runs is not recorded: for a line that no test runs, nothing is known.
"""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

from coverage import CoverageData

from tests.mutants.syntax import Mutant


class Covering:
    """The tests of each line of a checkout."""

    def __init__(self, recorded: Path, root: Path) -> None:
        """Raises: FileNotFoundError if nothing is recorded there."""
        if not recorded.is_file():
            raise FileNotFoundError(f"{recorded}: no recorded coverage; see README, Develop")
        data = CoverageData(str(recorded))
        data.read()
        self._tests_by_line: dict[str, dict[int, set[str]]] = {}
        self._lines_by_test: Counter[str] = Counter()
        for name in data.measured_files():
            by_line = {
                line: {context.partition("|")[0] for context in contexts if context}
                for line, contexts in data.contexts_by_lineno(name).items()
            }
            path = Path(name)
            path = path.relative_to(root) if path.is_absolute() else path
            self._tests_by_line[str(path)] = by_line
            for tests in by_line.values():
                self._lines_by_test.update(tests)

    def tests_of(self, mutant: Mutant, source: str) -> list[str]:
        """The tests that run the mutated code, those first that run the fewest lines in all.

        The default of a parameter is read when its module is imported: what counts are the tests
        that run the function. A test that runs little says what it found, and is quick.
        """
        by_line = self._tests_by_line.get(mutant.path, {})
        tests: set[str] = set()
        for first, last in _lines_around(mutant, source):
            tests = set().union(*(by_line.get(line, ()) for line in range(first, last + 1)))
            if tests:
                break
        return sorted(tests, key=lambda test: (self._lines_by_test[test], test))


def _lines_around(mutant: Mutant, source: str) -> list[tuple[int, int]]:
    """The first and last line of the expression, then of the statements around it, inside out."""
    text = source.encode()
    last = mutant.line + text[mutant.start : mutant.end].count(b"\n")
    spans = [
        (node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.stmt)
        and not isinstance(node, ast.ClassDef)
        and node.lineno <= mutant.line
        and (node.end_lineno or node.lineno) >= last
    ]
    return [(mutant.line, last), *sorted(spans, key=lambda span: span[1] - span[0])]

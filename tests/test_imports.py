"""The direction of data, kept by machine: what no reviewer should have to look for."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent

# Everything between two awaits is atomic; where there is none, everything is.
NEVER_AWAITS = ["topology", "app/state", "app/dialects"]
ASYNC = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)


@pytest.mark.parametrize("folder", NEVER_AWAITS)
def test_there_is_no_async_code_under(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in files
        for line in _async_lines(path.read_text(encoding="utf-8"))
    ]
    assert files
    assert found == []


@pytest.mark.parametrize(
    "code",
    [
        "async def f(): pass",
        "async def f():\n  await g()",
        "async def f():\n  async for x in g(): pass",
        "async def f():\n  async with g(): pass",
        "async def f():\n  return [x async for x in g()]",
    ],
)
def test_async_code_is_recognised(code: str) -> None:
    assert _async_lines(code)[-1] == len(code.splitlines())


@pytest.mark.slow
def test_every_import_goes_the_way_data_goes() -> None:
    lint = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    ran = subprocess.run(
        [sys.executable, "-c", lint], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_every_package_we_import_is_one_we_declare() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    listed = [*project["dependencies"], *(each for extra in extras for each in extra)]
    declared = {_normal(Requirement(each).name) for each in listed}
    of_module = packages_distributions()
    imported = {
        _normal(of_module.get(module, [module])[0])
        for folder in ("app", "topology")
        for path in (ROOT / folder).rglob("*.py")
        for module in _imported(path.read_text(encoding="utf-8"))
    }
    assert imported - declared == set()


def test_imports_are_recognised_wherever_they_stand() -> None:
    code = "import a.b, os\nfrom c.d import e\nfrom . import f\ndef g():\n  import h\n"
    assert _imported(code) == {"a", "c", "h"}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _imported(code: str) -> set[str]:
    """The packages that code imports, which are neither ours nor Python's."""
    modules = set()
    for place in ast.walk(ast.parse(code)):
        if isinstance(place, ast.Import):
            modules |= {alias.name for alias in place.names}
        elif isinstance(place, ast.ImportFrom) and not place.level:
            modules.add(place.module or "")
    packages = {module.partition(".")[0] for module in modules}
    return packages - sys.stdlib_module_names - {"app", "topology"}


def _async_lines(code: str) -> list[int]:
    """The lines with any async syntax, in order."""
    lines = []
    for place in ast.walk(ast.parse(code)):
        if isinstance(place, ASYNC):
            lines.append(place.lineno)
        elif isinstance(place, ast.comprehension) and place.is_async:
            lines.append(place.target.lineno)
    return sorted(lines)

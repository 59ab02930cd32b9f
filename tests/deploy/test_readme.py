"""What README names exists: files, settings with their defaults, metrics, reasons of events."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from prometheus_client import generate_latest

from app.dialects.registry import DIALECTS
from app.metrics import Metrics
from app.settings import Settings

ROOT = Path(__file__).resolve().parent.parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def table(header: str) -> list[list[str]]:
    """The rows below a header, each as its cells."""
    lines = iter(README.splitlines())
    for line in lines:
        if line.startswith(f"| {header} |"):
            next(lines)
            break
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def code(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#]+)\)", README))
def test_every_link_leads_somewhere(link: str) -> None:
    assert (ROOT / link).exists()


def written(default: object) -> str:
    """A setting's default as README writes it."""
    if isinstance(default, bool):
        return "on" if default else "off"
    if default in (None, (), ""):
        return "none"
    if isinstance(default, tuple):
        return ",".join(default)
    return f"{default:g}" if isinstance(default, float) else str(default)


def test_every_setting_has_the_name_and_the_default_that_readme_gives() -> None:
    rows = [row for row in table("setting") if "Topology" not in row[1]]  # a default in words
    assert len(rows) > 5
    for names, defaults, _ in rows:
        known = [written(Settings.model_fields[name].default) for name in code(names)]
        assert [text.strip("`") for text in defaults.split(", ")] == known


def test_every_metric_and_its_label_exist() -> None:
    exposed = generate_latest(Metrics(DIALECTS.kinds).registry).decode()
    families = set(re.findall(r"# TYPE (\S+)", exposed))
    named = [name for row in table("metric") for name in code(row[0]) if name.startswith("corral_")]
    assert len(named) > 5
    for name in named:
        family = name.partition("{")[0]
        assert {family, f"{family}_total"} & families, name


def test_every_reason_of_an_event_is_one_that_is_emitted() -> None:
    reasons = {code(row[0])[0] for row in table("reason")}
    text = "".join(path.read_text() for path in (ROOT / "app" / "state").rglob("*.py"))
    emitted = set(
        re.findall(
            r'"((?:Eviction|Gang|Member|Needs|New|NoNodes|NoRoom|Places|Pod|Preemption|Ranks|Room|Nodes)[A-Z][A-Za-z]+'
            r'|Preempt(?:ing|ed))"',
            text,
        )
    )
    assert reasons == emitted


def test_every_event_says_what_to_do() -> None:
    for row in table("reason"):
        assert len(row) == 3, row[0]
        assert row[2] in ("nothing",) or len(row[2].split()) > 3, row

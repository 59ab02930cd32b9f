"""The dashboard and the alert rules name series that Corral exports, and README names every one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from app.dialects.corral import GATE
from app.metrics import Metrics
from tests.app.state.world import World, four_racks, members

ROOT = Path(__file__).resolve().parent.parent.parent
MONITORING = ROOT / "deploy" / "monitoring"
_NAME = re.compile(r"\bcorral_[a-z0-9_]+")
_LABELS = re.compile(r"(corral_[a-z0-9_]+)\{([^}]*)\}")
# Labels that Prometheus adds when it scrapes a pod.
SCRAPED = {"job", "pod", "le"}


def exported() -> dict[str, set[str]]:
    """The labels of each sample's name, in every family that there is."""
    found: dict[str, set[str]] = {}
    for family in Metrics(("Pod",)).registry.collect():
        names = [family.name]
        if family.type == "counter":
            names = [f"{family.name}_total"]
        elif family.type == "histogram":
            names = [f"{family.name}_{end}" for end in ("bucket", "count", "sum")]
        labels = {label for sample in family.samples for label in sample.labels}
        found |= {name: labels for name in names}
    return found


def expressions() -> Iterator[tuple[str, str]]:
    """Where it stands, and the expression."""
    dashboard = json.loads((MONITORING / "dashboard.json").read_text(encoding="utf-8"))
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            yield f"panel {panel['title']}", target["expr"]
    for rule in rules():
        yield f"alert {rule['alert']}", rule["expr"]


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((MONITORING / "alerts.yaml").read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def test_a_rollout_is_seen_on_the_dashboard() -> None:
    shown = [said for where, said in expressions() if "corral_build_info" in said]
    assert len(shown) == 1
    assert shown[0].startswith("count by (version, commit) ")


@pytest.mark.parametrize(("where", "expression"), list(expressions()))
def test_every_series_that_is_named_is_exported(where: str, expression: str) -> None:
    named = set(_NAME.findall(expression))
    assert named
    assert named <= exported().keys(), where


@pytest.mark.parametrize(("where", "expression"), list(expressions()))
def test_every_label_that_is_selected_is_one_of_the_series(where: str, expression: str) -> None:
    known = exported()
    for name, matchers in _LABELS.findall(expression):
        labels = set(re.findall(r"([a-z_]+)\s*(?:=~|!~|!=|=)", matchers))
        # Families without a child yet say no labels; those of shapes are made by the setting.
        own = known[name] or {"shape", "level", "reason", "kind", "setting", "resource", "phase"}
        assert labels <= own | SCRAPED, (where, name)


def test_every_exported_series_stands_in_readmes_table() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    table = "\n".join(line for line in readme.splitlines() if line.startswith("| `corral_"))
    families = {family.name for family in Metrics().registry.collect()}
    told = set(_NAME.findall(table))
    # `corral_a`, `_b` and `_c` share the words before.
    shortened = set(re.findall(r"`(_[a-z_]+)", table))
    missing = {
        name
        for name in families
        if not any(each.removesuffix("_total") == name for each in told)
        and not any(name.endswith(end.removesuffix("_total")) for end in shortened)
    }
    assert missing == set()


def test_every_alert_says_what_it_means_and_how_bad_it_is() -> None:
    assert rules()
    for rule in rules():
        assert set(rule["annotations"]) == {"summary", "description"}, rule["alert"]
        assert rule["labels"]["severity"] in ("warning", "critical"), rule["alert"]


def test_every_alert_is_tried_by_the_rules_own_test() -> None:
    tried = (MONITORING / "alerts-test.yaml").read_text(encoding="utf-8")
    named = set(re.findall(r'alertname(?:: |=")(\w+)', tried))
    assert named == {rule["alert"] for rule in rules()}


def test_a_gang_that_kube_scheduler_never_brings_is_placed_within_every_window_of_its_alert() -> (
    None
):
    """A plan that is not used ends, and another is made some minutes later."""
    (said,) = [rule["expr"] for rule in rules() if rule["alert"] == "CorralGangsNotBrought"]
    (minutes,) = re.findall(r'max_over_time\(corral_gangs\{phase="placed"\}\[(\d+)m\]\)', said)
    gated = [msgspec.structs.replace(each, gates=(GATE,)) for each in members("g", 2)]
    world = World(four_racks(), gated)
    placed = []
    for _ in range(2 * 60):  # scrapes, each after half a minute
        for _ in range(30):
            world.patch(world.tick(1.0))
        placed.append(world.engine.gangs_by_phase()["placed"])
    assert 0 in placed
    size = int(minutes) * 2
    assert all(any(placed[at : at + size]) for at in range(len(placed) - size))


def test_panels_have_places_of_their_own_and_titles_that_differ() -> None:
    dashboard = json.loads((MONITORING / "dashboard.json").read_text(encoding="utf-8"))
    panels = dashboard["panels"]
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells
    assert len({panel["title"] for panel in panels}) == len(panels)

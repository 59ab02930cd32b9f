"""The Helm chart and the kustomization are the manifests of deploy/, and say nothing a second time.

What they make of values, tests/controlplane/test_chart.py shows with Helm itself.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any

import pytest
import yaml

from app.settings import Settings
from tests.deploy.chart_schema import CHART, OF_THE_CHART, SCHEMA, text
from tests.deploy.test_image import ROOT, pyproject
from tests.deploy.test_webhook import DEPLOY, _one

KUSTOMIZATION = DEPLOY / "kustomization.yaml"
MANIFESTS = {file.name for file in DEPLOY.glob("*.yaml")} - {KUSTOMIZATION.name}


def read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((CHART / name).read_text(encoding="utf-8"))
    return content


def test_the_kustomization_is_what_readme_applies_and_names_what_is_optional() -> None:
    listed = yaml.safe_load(KUSTOMIZATION.read_text(encoding="utf-8"))["resources"]
    optional = re.findall(r"(?m)^# - (\S+)", KUSTOMIZATION.read_text(encoding="utf-8"))
    assert listed == ["rbac.yaml", "policy.yaml", "corral.yaml"]
    assert {*listed, *optional} == MANIFESTS
    assert len(listed) + len(optional) == len(MANIFESTS)


def test_the_chart_has_every_manifest_and_scheduler_configuration_as_a_link() -> None:
    links = sorted((CHART / "files").iterdir())
    assert {link.name for link in links} == {*MANIFESTS, "monitoring", "scheduler-config"}
    for link in links:
        home = ROOT if link.name == "scheduler-config" else DEPLOY
        assert link.is_symlink()
        assert not os.path.isabs(os.readlink(link))
        assert link.resolve(strict=True) == home / link.name


def test_the_charts_version_is_the_projects() -> None:
    version = pyproject()["project"]["version"]
    chart = read("Chart.yaml")
    assert (chart["version"], chart["appVersion"]) == (version, version)


def test_the_images_of_values_are_those_of_the_manifest() -> None:
    pod = _one("corral.yaml", "Deployment")["spec"]["template"]["spec"]
    shipped = {each["name"]: each["image"] for each in pod["containers"]}
    values = read("values.yaml")
    for name, image, tag in (
        ("corral", values["image"], read("Chart.yaml")["appVersion"]),
        ("kube-scheduler", values["scheduler"]["image"], ""),
    ):
        assert f"{image['repository']}:{image['tag'] or tag}" == shipped[name]


def test_the_schema_takes_the_settings_of_corral_and_their_bounds() -> None:
    written = SCHEMA.read_text(encoding="utf-8")
    assert written == text(json.loads(written)), "python -m tests.deploy.chart_schema"
    assert set(Settings.model_fields) > OF_THE_CHART


def test_every_value_is_in_the_schema_and_has_a_default() -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    del schema["properties"]["global"]  # Helm's own
    _compared(read("values.yaml"), schema, "values")


def test_helm_is_built_with_the_versions_of_the_control_plane() -> None:
    """Else Go compiles Kubernetes' client once more, which takes minutes."""
    plane, helm = (_versions(f"{folder}/go.mod") for folder in (".", "operators/helm-kustomize"))
    # Helm needs newer ones of these two, which little else is made of.
    own = {"github.com/cyphar/filepath-securejoin", "cyphar.com/go-pathrs"}
    shared = (plane.keys() & helm.keys()) - own
    assert {"k8s.io/client-go", "golang.org/x/net"} <= shared
    assert {name: helm[name] for name in shared} == {name: plane[name] for name in shared}


def _versions(file: str) -> dict[str, str]:
    """Module -> the version that is built, where a go.mod says it."""
    lines = (ROOT / "tests" / "controlplane" / file).read_text(encoding="utf-8").splitlines()
    required = [each.split() for each in lines if re.match(r"\t\S+ v", each)]
    replaced = [each.split("=>")[1].split() for each in lines if "=>" in each]
    return {line[0]: line[1] for line in (*required, *replaced)}


def _compared(value: Any, schema: dict[str, Any], where: str) -> None:
    if schema.get("additionalProperties") is False and value:
        assert value.keys() == schema["properties"].keys(), where
        for name, each in value.items():
            _compared(each, schema["properties"][name], f"{where}.{name}")


@pytest.mark.parametrize("file", sorted((CHART / "templates").glob("*")), ids=lambda it: it.name)
def test_no_template_repeats_a_right_or_a_probe(file: Any) -> None:
    template = file.read_text(encoding="utf-8")
    assert not re.search(
        r"(?m)^\s*(- )?(verbs|rules|\w+Probe|securityContext|matchConditions):", template
    )

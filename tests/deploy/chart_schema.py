"""What the chart's values.schema.json says of `settings`, derived from app/settings.py.

python -m tests.deploy.chart_schema         writes that part of the file anew
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from app.settings import Settings

CHART = Path(__file__).resolve().parent.parent.parent / "deploy" / "chart"
SCHEMA = CHART / "values.schema.json"
# What the chart sets by itself, by its other values; and the journal, for which it has no volume.
OF_THE_CHART = {
    *("kubeconfig", "service_account", "neighbour_lease", "pod_name", "journal", "journal_bytes"),
    *("own_lease", "pod_ip", "leader_service"),
    *("extender_listen", "extender_cert", "extender_key", "extender_client_ca"),
    *("api_listen", "api_cert", "api_key"),
    *("admission_listen", "admission_cert", "admission_key", "admission_client_ca"),
    *("admission_namespace_selector", "admission_pod_selector"),
}
KEPT = ("type", "enum", "pattern", "maxLength")
BOUNDS = ("minimum", "maximum", "exclusiveMinimum")


def settings() -> dict[str, Any]:
    """Setting -> the schema of its value in a values file."""
    every = Settings.model_json_schema()["properties"]
    return {name: _value(each) for name, each in every.items() if name not in OF_THE_CHART}


def _value(of_setting: dict[str, Any]) -> dict[str, Any]:
    """As values write it: lists and maps, or their text; a bare `on` is true to YAML."""
    if "anyOf" in of_setting:
        return {"type": "string"}
    if of_setting["type"] == "array":
        is_map = of_setting["items"]["type"] == "array"
        return {"type": ["object" if is_map else "array", "string"]}
    if {"on", "off"} & {*of_setting.get("enum", ())}:
        words = {"on": True, "off": False}
        said = of_setting["enum"]
        return {"enum": [*said, *(value for word, value in words.items() if word in said)]}
    return {name: of_setting[name] for name in (*KEPT, *BOUNDS) if name in of_setting}


def text(schema: dict[str, Any]) -> str:
    """The file: a line for each setting, and indented as ever around them."""
    placeholder = "the settings"
    schema["properties"]["settings"]["properties"] = placeholder
    lines = [f"        {json.dumps(name)}: {json.dumps(each)}" for name, each in settings().items()]
    around = json.dumps(schema, indent=2)
    return around.replace(json.dumps(placeholder), "{\n" + ",\n".join(lines) + "\n      }") + "\n"


if __name__ == "__main__":
    SCHEMA.write_text(text(json.loads(SCHEMA.read_text(encoding="utf-8"))), encoding="utf-8")

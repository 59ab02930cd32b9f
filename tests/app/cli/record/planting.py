"""Objects of the Kubernetes API with a canary in every text that they can have.

The fields are those of the official client's models, so a field that a later version of the API
adds is planted in when the client knows it.
"""

from __future__ import annotations

from typing import Any

from kubernetes_asyncio.client import models

CANARY = "c4n4ry"
DEEPEST = 12  # models that contain themselves, such as JSONSchemaProps, end there


def planted(model: str, depth: int = 0) -> dict[str, Any]:
    """An object of this model with every field set, and the canary in every text of it."""
    made: dict[str, Any] = {}
    if depth > DEEPEST:
        return made
    cls = getattr(models, model)
    for name, kind in cls.openapi_types.items():
        made[cls.attribute_map[name]] = _value(kind, depth)
    return made


def _value(kind: str, depth: int) -> Any:
    if kind.startswith("list["):
        return [_value(kind.removeprefix("list[").removesuffix("]"), depth)]
    if kind.startswith("dict("):
        inner = kind.removeprefix("dict(").removesuffix(")").split(", ", 1)[1]
        return {CANARY: _value(inner, depth)}
    match kind:
        case "str" | "IntOrString" | "byte":
            return CANARY
        case "int":
            return 1
        case "float":
            return 1.5
        case "bool":
            return True
        case "datetime":
            return "2026-01-01T00:00:00Z"
        case "object":
            return {CANARY: CANARY}
    return planted(kind, depth + 1)


def texts(part: Any, path: str = "") -> list[tuple[str, str]]:
    """(path, text) of every text and every key in it; places in lists are not told apart."""
    if isinstance(part, str):
        return [(path, part)]
    if isinstance(part, list):
        return [found for each in part for found in texts(each, f"{path}[]")]
    if isinstance(part, dict):
        return [
            found
            for key, each in part.items()
            for found in ((f"{path}.{key}", key), *texts(each, f"{path}.{key}"))
        ]
    return []


def where(part: Any, text: str = CANARY) -> list[str]:
    """The paths at which a text stands, within other texts too."""
    return sorted({path for path, found in texts(part) if text in found})

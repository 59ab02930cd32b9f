"""What the engine runs with: the operator's options, and what the program around it can watch."""

from __future__ import annotations

from app.dialects.registry import DIALECTS
from app.kube.watch.events import Kind
from app.settings import EngineOptions


class EngineSettings(EngineOptions):
    """Plain values. `levels` are label keys: a preset's name has become its labels by now."""

    kinds: tuple[Kind, ...] = DIALECTS.kinds  # what has to be listed before anything is planned

"""The engine's share of the settings, with what they name read and resolved."""

from __future__ import annotations

from app.dialects import topograph
from app.dialects.presets import label_levels, valid_keys
from app.dialects.registry import DIALECTS, Dialects
from app.dialects.spec import TierPacking
from app.dialects.volcano.scheduler_conf import packing_in
from app.errors import DecodeError, SettingsError
from app.settings import EngineOptions, Settings
from app.state.settings import EngineSettings


def engine_settings(settings: Settings, dialects: Dialects = DIALECTS) -> EngineSettings:
    """The engine's share of the settings, under the same names, presets resolved.

    Raises: SettingsError.
    """
    try:
        levels = valid_keys(settings.levels) if settings.levels else ()
    except ValueError as error:
        raise SettingsError(f"levels: {error}") from error
    try:
        hyper_nodes_from = settings.hyper_nodes_from
        if hyper_nodes_from and hyper_nodes_from != (topograph.NAME,):
            hyper_nodes_from = label_levels(hyper_nodes_from)
    except ValueError as error:
        raise SettingsError(f"hyper_nodes_from: {error}") from error
    try:
        dialects.configured(settings)
    except ValueError as error:
        raise SettingsError(f"scheduler_vocabularies: {error}") from error
    options = settings.model_dump(include=set(EngineOptions.model_fields))
    made = {"levels": levels, "hyper_nodes_from": hyper_nodes_from}
    return EngineSettings(
        **options | made,
        scheduler_lives_on=bool(settings.own_lease),
        packing=_packing(settings),
    )


def _packing(settings: Settings) -> TierPacking:
    """As Volcano's scheduler has it in its file, if one is set."""
    path = settings.volcano_scheduler_conf
    if path is None:
        return TierPacking()
    try:
        return packing_in(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"volcano_scheduler_conf {path}: cannot be read: {error}") from error
    except DecodeError as error:
        raise SettingsError(f"volcano_scheduler_conf {path}: {error}") from error

"""kube-scheduler's configuration and Corral's settings in files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml
from pydantic import ValidationError

from app.cli.doctor.configuration import SchedulerConfig, config_in
from app.cli.doctor.seen import OwnSettings
from app.cli.topology.reading import read_bytes, shown
from app.errors import DecodeError, SettingsError
from app.settings import Settings, check_names

# No variable of the environment begins like this: that of doctor is not Corral's.
_NO_ENVIRONMENT: Mapping[str, Any] = {"_env_prefix": "CORRAL_DOCTOR_READS_NO_ENVIRONMENT_"}


def config_of(file: str) -> SchedulerConfig:
    """The configuration in a file. Raises: SettingsError; OSError."""
    try:
        return config_in(read_bytes(file), shown(file))
    except DecodeError as wrong:  # the user has to name another file
        raise SettingsError(str(wrong)) from wrong


def settings_of(file: str) -> OwnSettings:
    """The settings in a file. Raises: SettingsError; OSError."""
    return settings_in(read_bytes(file), shown(file))


def settings_in(
    text: str | bytes, where: str, given: Mapping[str, Any] | None = None
) -> OwnSettings:
    """The settings in a YAML file, below those that are given otherwise.

    Raises: SettingsError naming the setting and its value.
    """
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as wrong:
        raise SettingsError(f"{where}: {' '.join(str(wrong).split())}") from wrong
    if not isinstance(content, dict | None):
        raise SettingsError(f"{where}: expected `setting: value` lines")
    named = {str(name).replace("-", "_"): value for name, value in (content or {}).items()}
    check_names(named, where)
    return settings_from({**named, **(given or {})}, where)


def settings_from(values: Mapping[str, Any], where: str) -> OwnSettings:
    """The settings with these values, and the defaults of all others.

    Raises: SettingsError naming the setting and its value.
    """
    try:
        return OwnSettings(where, Settings(**{**values, **_NO_ENVIRONMENT}))
    except ValidationError as wrong:
        first = wrong.errors()[0]
        name, value = str(first["loc"][0]), first["input"]
        what = first["msg"].removeprefix("Value error, ")
        raise SettingsError(f"{where}: {name}: {value!r} is not valid: {what}") from wrong

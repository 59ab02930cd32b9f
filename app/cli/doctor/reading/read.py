"""All that the options ask to be read, put together."""

from __future__ import annotations

from dataclasses import dataclass

from app.cli.doctor import shipped
from app.cli.doctor.reading import files
from app.cli.doctor.seen import Seen, Unread

NO_CONFIG = Unread("no KubeSchedulerConfiguration was read: --config FILE names one")
NO_SETTINGS = Unread("no settings of Corral were read: --settings FILE names them")


@dataclass(frozen=True, slots=True)
class Asked:
    """What the options say."""

    config: str | None
    settings: str | None
    kubeconfig: str | None
    context: str | None
    namespace: str
    cluster: bool
    canary: str
    """The namespace of the canary; "": no canary."""


def read(asked: Asked) -> Seen:
    """Read files first, then the cluster.

    Raises: DecodeError, SettingsError, OSError for a file that cannot be read.
    """
    return Seen(
        config=files.config_of(asked.config) if asked.config else NO_CONFIG,
        settings=files.settings_of(asked.settings) if asked.settings else NO_SETTINGS,
        shipped=shipped.minors(),
    )

"""Variables of the environment that look like settings and are none."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping

from app.settings import ENV_PREFIX, SETTINGS_FILE, Settings

OF_COMMANDS = ("server", "at")  # CORRAL_SERVER, CORRAL_AT: of those that ask a Corral
# What kubelet tells a container of a Service whose name begins as ours do.
# Source: https://kubernetes.io/docs/tutorials/services/connect-applications-service/
SERVICE_LINK = re.compile(r"(^|_)(SERVICE_(HOST|PORT)|PORT(_\d+_(TCP|UDP|SCTP))?)(_\w+)?$")


def misspelt(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Each variable that no setting has, with the most similar one that one has, "" if none is."""
    known = {name.upper() for name in (*Settings.model_fields, SETTINGS_FILE, *OF_COMMANDS)}
    for variable in sorted(environment):
        rest = variable.removeprefix(ENV_PREFIX)
        if rest == variable or rest in known or SERVICE_LINK.search(rest):
            continue
        alike = difflib.get_close_matches(rest, sorted(known), n=1)
        yield variable, ENV_PREFIX + alike[0] if alike else ""

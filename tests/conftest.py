"""Settings every test shares: hypothesis runs the same examples each time."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("corral", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("corral")

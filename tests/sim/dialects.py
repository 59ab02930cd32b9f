"""The vocabularies as the engines of simulated worlds read them."""

from __future__ import annotations

from app.dialects import registry
from app.settings import EngineOptions

# In worlds without native PodGroups no pod names one, and the setting makes no difference.
DIALECTS = registry.DIALECTS.configured(EngineOptions(native_pod_groups="on"))

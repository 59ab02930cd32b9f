"""What is known of a write when it is up for admission."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from app.sandbox.apiserver.storage.kinds import Kind, Object

Operation = Literal["CREATE", "UPDATE"]


@dataclass(frozen=True, slots=True)
class Attributes:
    """One write. before: None for a new object. name: "" while generateName is all there is."""

    operation: Operation
    kind: Kind
    namespace: str
    name: str
    after: Object
    before: Object | None = None
    subresource: str = ""
    is_dry_run: bool = False

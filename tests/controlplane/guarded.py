"""One object that a policy of deploy/policy.yaml guards, on a real API server."""

from __future__ import annotations

from dataclasses import dataclass

from tests.cluster import MERGE, Cluster, Object, Refused

SECONDS = 20.0  # until an API server enforces a policy that it was given; 1 s as a rule


@dataclass(frozen=True, slots=True)
class Guarded:
    """The object at a path of the API, and the name of the policy."""

    path: str
    policy: str

    def change(self, user: Cluster, body: object) -> Object:
        """The object once a user has merged this into it."""
        answer: Object = user.request("PATCH", self.path, body=body, content_type=MERGE).json()
        return answer

    def is_refused(self, user: Cluster, body: object) -> bool:
        """Whether the policy refuses the change, which is only tried."""
        dry_run = {"dryRun": "All"}
        try:
            user.request("PATCH", self.path, body=body, content_type=MERGE, params=dry_run)
        except Refused as refused:
            named = f"ValidatingAdmissionPolicy '{self.policy}'" in refused.message
            return refused.status == 403 and named
        return False

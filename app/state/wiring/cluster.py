"""What is known of the cluster: the books, what objects say, what single pods do."""

from __future__ import annotations

from app.dialects.registry import Dialects
from app.kube.core.objects import PodRecord
from app.state.cache.books import Books
from app.state.cache.device_parts import DeviceParts
from app.state.cache.eligibility.node_refusals import Refusals
from app.state.cache.eligibility.node_table import NodeTable
from app.state.cache.part_counted import PartCounted
from app.state.cache.resource_rows import ResourceRows
from app.state.claims.claim_reader import ClaimReader
from app.state.claims.named_pods import NamedPods
from app.state.claims.unseen import UnseenPods
from app.state.domains.statuses import DomainStatuses
from app.state.domains.topologies import Topologies
from app.state.isolation import OnFault
from app.state.objects.budgets import Budgets
from app.state.objects.declared import Objects
from app.state.objects.device_classes import DeviceClasses
from app.state.objects.kept_keys import KeptKeys
from app.state.objects.pod_lists import PodLists
from app.state.pods.arrivals import EARLY_SECONDS, Arrivals
from app.state.pods.assumed_pods import AssumedPods
from app.state.pods.grants import Grants
from app.state.pods.nominations import Nominations
from app.state.pods.occupants import Occupants
from app.state.pods.rejected_pods import RejectedPods
from app.state.pods.usual_requests import UsualRequests
from app.state.report.naming import Naming
from app.state.settings import EngineSettings
from topology.model.resources import ResourceAxis


class ClusterParts:
    """The ground floor."""

    def __init__(self, settings: EngineSettings, on_fault: OnFault, dialects: Dialects) -> None:
        self.on_fault = on_fault
        self.settings = settings
        self.dialects = dialects.configured(self.settings)
        self.naming = Naming(self.settings.name_other_namespaces)
        self.books = Books(ResourceRows(ResourceAxis(dict(self.settings.device_parts))))
        shared = self.settings.device_parts if self.settings.fewest_fragments else ()
        self.device_parts = DeviceParts(self.books, dict(shared))
        self.kept_keys = KeptKeys(self.dialects)
        self.part_counted = PartCounted(self.books.axis)
        self.pod_lists = PodLists(self.kept_keys, self.part_counted)
        self.objects = Objects(self.dialects, self.kept_keys)
        self.named_pods = NamedPods(self.settings, self.dialects, self.objects)
        self.claim_reader = ClaimReader(self.settings, self.dialects, self.named_pods)
        self.node_table = NodeTable()
        self.refusals = Refusals()
        self.nominations = Nominations()
        self.budgets = Budgets(self.dialects, self.kept_keys)
        self.device_classes = DeviceClasses(self.dialects, self.books)
        self.occupants = Occupants(self.settings.unpreemptible_in, self._is_managed)
        self.grants = Grants(self.nominations)
        self.assumed_pods = AssumedPods(self.books, self.nominations)
        self.rejected_pods = RejectedPods(self.books)
        self.unseen = UnseenPods()
        self.usual_requests = UsualRequests(self.books.largest)
        self.arrivals = Arrivals(min(EARLY_SECONDS, self.settings.gang_bind_seconds))
        self.topologies = Topologies(self.settings, self.books, self.dialects)
        self.domain_statuses = DomainStatuses(self.dialects, self.objects, self.topologies)

    def _is_managed(self, pod: PodRecord) -> bool:
        """Whether Kueue, where it runs, keeps for itself what the pod takes."""
        return self.settings.kueue_manages and self.dialects.is_managed(
            pod.labels, pod.annotations, pod.gates
        )

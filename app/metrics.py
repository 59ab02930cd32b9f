"""What Prometheus sees. One registry per Corral, so that two may live in one process.

Label values are bounded (verbs, kinds, outcomes, phases); children are bound once, because
`.labels()` costs more than the observation itself.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import asdict

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import generate_latest

from app.version import this_build

VERBS = ("filter", "prioritize", "bind", "preempt")
ANSWERS = ("passed", "pinned", "rejected", "failed", "hypothetical")
BIND_OUTCOMES = ("bound", "failed", "gone")
UNGATE_OUTCOMES = ("ungated", "gone", "forbidden", "failed")
ASK_OUTCOMES = ("written", "gone", "conflict", "refused", "failed", "dropped")
REQUEST_OUTCOMES = ("written", "gone", "absent", "refused", "failed", "dropped")
ASKS = {
    "mark": ASK_OUTCOMES,
    "unmark": ASK_OUTCOMES,
    "protect": ASK_OUTCOMES,
    "unprotect": ASK_OUTCOMES,
    "request": REQUEST_OUTCOMES,
    "withdraw": REQUEST_OUTCOMES,
}
NEEDS = ("never", "busy", "fragmented", "gradual")
REMOVALS = ("evict", "delete", "suspend", "resume")
REMOVAL_OUTCOMES = ("done", "gone", "refused", "failed", "dropped")
WAKE_OUTCOMES = ("woken", "not_nominated", "gone", "failed", "dropped")
REPORT_OUTCOMES = ("written", "failed", "dropped")
STATUS_OUTCOMES = ("written", "gone", "failed", "dropped")
KEPT_OUTCOMES = ("made", "changed", "deleted", "gone", "conflict", "failed")
ROOM_OUTCOMES = ("room", "none", "dropped", "failed")
PLACE_OUTCOMES = ("place", "none", "dropped", "failed")
# What became of the places that were made for gangs: see `app.state.preempt.plans.room_plan`.
ROOM_RESULTS = (
    *("placed", "needless", "withdrawn"),
    *("refused", "unanswered", "changed", "stuck", "taken", "lost", "other_pods"),
)
ROOM_VICTIMS = ("gang", "pod")
GIVEN_BACK = ("gang", "pod")
REVIEW_OUTCOMES = ("granted", "refused", "failed", "busy")
ADMISSION_ROUTES = ("mutate", "validate")
TLS_PORTS = ("extender", "api", "admission")
CERTIFICATE_OUTCOMES = ("loaded", "refused")
ADMISSION_OUTCOMES = ("passed", "changed", "refused", "unread", "failed")
BROKEN_REQUESTS = (
    *("handshake", "late", "header", "body", "busy", "idle", "connections"),
    "malformed",
)

TICK_WORK = ("searches", "roll_calls")

_UNITS = {"cpu": 1000}  # counted in thousandths
MOST_RESOURCES = 64  # that no node offers, shown by name: pods may request any

# Seconds. From a pass-through (0.2 ms) to the httpTimeout of /bind, which waits for its gang.
_BUCKETS = (
    *(0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.1, 0.5),
    *(1, 2.5, 5, 10, 20, 30, 60, 120, 300),
)
_LONG_BUCKETS = (900, 3_600, 14_400, 86_400)  # a gang may wait for its room


class Metrics:
    """Every series, with its children bound; `kinds` are those of the objects that are watched."""

    def __init__(self, kinds: Sequence[str] = ()) -> None:
        self._kinds = kinds
        self.registry = CollectorRegistry()
        self._of_verbs()
        self._of_pods()
        self._of_starts()
        self._of_slots()
        self._of_room()
        self._of_autoscaling()
        self._of_admission()
        self._of_people()
        self._of_ourselves()
        self._of_certificates()
        self._of_lateness()
        self._gangs = Gauge("corral_gangs", "Gangs by phase", ["phase"], registry=self.registry)
        self._phases: set[str] = set()
        self._levels: dict[str, set[str]] = {}
        self.absent_pods = Gauge(
            "corral_absent_pods",
            "Pods that do not exist and have places held: pods to come, and spares",
            registry=self.registry,
        )
        self.absent_share = Gauge(
            "corral_absent_pods_most_used_ratio",
            "The highest share that a namespace has of the places it may have held for such pods",
            registry=self.registry,
        )
        self._waiting = Gauge(
            "corral_gangs_waiting",
            "Gangs that wait, by the word for it in corral gangs",
            ["reason"],
            registry=self.registry,
        )
        self.earmarked_nodes = Gauge(
            "corral_earmarked_nodes",
            "Nodes kept free for gangs that have waited too long",
            registry=self.registry,
        )

    def _of_verbs(self) -> None:
        """The requests of kube-scheduler, and what becomes of its bindings."""
        seconds = Histogram(
            "corral_extender_request_seconds",
            "Time from a request's last byte to its answer",
            ["verb"],
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.request_seconds = {verb: seconds.labels(verb) for verb in VERBS}
        self.answers = self._counters(
            "corral_filter_answers", "Answers to /filter by kind", "answer", ANSWERS
        )
        self.binds = self._counters("corral_binds", "Bindings by outcome", "outcome", BIND_OUTCOMES)
        self.bind_seconds = Histogram(
            "corral_bind_seconds",
            "Time the API server took for one binding, retries included",
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.held_binds = Gauge(
            "corral_held_binds", "/bind requests waiting for an answer", registry=self.registry
        )
        self.broken_requests = self._counters(
            "corral_broken_requests",
            "Connections ended and requests refused before a verb saw them",
            "reason",
            BROKEN_REQUESTS,
        )

    def _of_pods(self) -> None:
        """Writes to pods, and events about them."""
        self.ungated = self._counters(
            "corral_pods_ungated", "Scheduling gates taken off", "outcome", UNGATE_OUTCOMES
        )
        self.rejected_pods = Counter(
            "corral_pods_rejected",
            "Pods that are no part of the gang they name: in excess, or invalid; each has an event",
            registry=self.registry,
        )
        self.gate_to_bound_seconds = Histogram(
            "corral_gate_to_bound_seconds",
            "Time from the decision to ungate a pod to its binding",
            buckets=_BUCKETS,
            registry=self.registry,
        )
        removals = Counter(
            "corral_removals",
            "Pods evicted or deleted, and Jobs suspended and resumed, because a policy says so",
            ["how", "outcome"],
            registry=self.registry,
        )
        self.removals = {
            (how, outcome): removals.labels(how, outcome)
            for how in REMOVALS
            for outcome in REMOVAL_OUTCOMES
        }
        self.wakes = self._counters(
            "corral_wakes", "Pods woken by a patch", "outcome", WAKE_OUTCOMES
        )
        self.reports = self._counters(
            "corral_reports", "Events about gangs", "outcome", REPORT_OUTCOMES
        )
        self.lost_writes = Gauge(
            "corral_lost_writes",
            "Events, statuses and deletions that were dropped or failed and wait to be repeated",
            registry=self.registry,
        )
        self.notes = self._counters(
            "corral_notes", "Annotations of ours written on members", "outcome", STATUS_OUTCOMES
        )
        self.statuses = self._counters(
            "corral_statuses", "Statuses of gangs written back", "outcome", STATUS_OUTCOMES
        )
        self.kept_objects = self._counters(
            "corral_kept_objects",
            "Objects kept as the labels of nodes are: made, changed, deleted, or not",
            "outcome",
            KEPT_OUTCOMES,
        )
        self.kept_notes = Gauge(
            "corral_kept_notes",
            "Reasons why such objects are not as the labels of nodes are; the log has each of them",
            registry=self.registry,
        )

    def _of_starts(self) -> None:
        """How long gangs take."""
        self.gang_decision_seconds = Histogram(
            "corral_gang_decision_seconds",
            "Time from a gang's completion to its first plan or verdict",
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.gang_start_seconds = Histogram(
            "corral_gang_start_seconds",
            "Time from a gang's completion to the binding of its last pod, as the watch shows it",
            buckets=(*_BUCKETS, *_LONG_BUCKETS),
            registry=self.registry,
        )
        self.gang_plans = Counter(
            "corral_gang_plans",
            "Plans that were made for gangs until they started: one each where none was lost",
            registry=self.registry,
        )

    def _of_slots(self) -> None:
        """The room for the shapes that the setting names."""

        def gauge(name: str, documentation: str, *labels: str) -> Gauge:
            return Gauge(name, documentation, ["shape", *labels], registry=self.registry)

        self._free = gauge("corral_shape_free_pods", "Pods of this shape that fit now")
        self._reserved = gauge(
            "corral_shape_reserved_pods", "Pods of this shape that only reservations leave no room"
        )
        self._most_free = gauge(
            "corral_shape_largest_pods",
            "Pods of this shape that fit in the domain of the level that takes most of them",
            "level",
        )
        self._fragmentation = gauge(
            "corral_shape_fragmentation_ratio",
            "Of the pods of this shape that fit, the share in domains that are not wholly free",
            "level",
        )

    def show_slots(
        self, shape: str, free: int, reserved: int, levels: Mapping[str, tuple[int, float]]
    ) -> None:
        """Publish the room for a shape; `levels`: pods in the best domain, and fragmentation."""
        self._free.labels(shape).set(free)
        self._reserved.labels(shape).set(reserved)
        for gone in self._levels.get(shape, set()) - levels.keys():
            self._most_free.remove(shape, gone)
            self._fragmentation.remove(shape, gone)
        self._levels[shape] = set(levels)
        for level, (most, fragmentation) in levels.items():
            self._most_free.labels(shape, level).set(most)
            self._fragmentation.labels(shape, level).set(fragmentation)

    def show_waiting(self, gangs_by_reason: Mapping[str, int]) -> None:
        """Publish how many gangs wait for each reason there is."""
        for reason, gangs in gangs_by_reason.items():
            self._waiting.labels(reason).set(gangs)

    def _of_room(self) -> None:
        """Questions of gangs that wait: who would have to go?"""
        self.room_answers = self._counters(
            "corral_room_answers",
            "Answers to gangs that wait and ask which pods would have to go",
            "outcome",
            ROOM_OUTCOMES,
        )
        self.room_seconds = Histogram(
            "corral_room_seconds",
            "Time a thread took to find out which pods would have to go for a gang",
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.place_answers = self._counters(
            "corral_place_answers",
            "Searches for a gang that were too long for the loop, by what they found",
            "outcome",
            PLACE_OUTCOMES,
        )
        self.place_seconds = Histogram(
            "corral_place_seconds",
            "Time a thread took to search a place for a gang",
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.room_plans = self._counters(
            "corral_room_plans",
            "Places that pods were to go from for a gang, by what became of them",
            "result",
            ROOM_RESULTS,
        )
        self.room_victims = self._counters(
            "corral_room_victims",
            "Gangs, and pods outside gangs, evicted for gangs that wait",
            "kind",
            ROOM_VICTIMS,
        )
        self.room_drain_seconds = Histogram(
            "corral_room_drain_seconds",
            "Time from the last eviction for a gang until the last pod that it waited for was gone",
            buckets=(*_BUCKETS, *_LONG_BUCKETS),
            registry=self.registry,
        )
        self._shown: dict[tuple[str, str], int] = {}

    def show_room(self, results: Mapping[str, int], victims: Mapping[str, int]) -> None:
        """Set what became of gangs' places, and who went for them, since the start."""
        self._show("plans", self.room_plans, results)
        self._show("victims", self.room_victims, victims)

    def show_given_back(self, known: Mapping[str, int]) -> None:
        """Set how many gangs and pods were given back to their controllers, since the start."""
        self._show("given back", self.given_back, known)

    def _show(self, name: str, counters: Mapping[str, Counter], known: Mapping[str, int]) -> None:
        for label, number in known.items():
            counters[label].inc(number - self._shown.get((name, label), 0))
            self._shown[name, label] = number

    def _of_autoscaling(self) -> None:
        """What gangs ask node autoscalers for."""
        self._needs = Gauge(
            "corral_needs_nodes_gangs",
            "Gangs that wait for nodes to be made: whether they would fit if no pod ran, or apart",
            ["reason"],
            registry=self.registry,
        )
        for reason in NEEDS:
            self._needs.labels(reason)
        self._needs_pods = Gauge(
            "corral_needs_nodes_pods", "Pods of these gangs without a node", registry=self.registry
        )
        self._needs_resource = Gauge(
            "corral_needs_nodes_resource",
            "What these pods request together: cores, bytes, or as the resource is counted",
            ["resource"],
            registry=self.registry,
        )
        self._needed: set[str] = set()
        self._needs_oldest = Gauge(
            "corral_needs_nodes_oldest_seconds",
            "How long the first of these gangs has asked for nodes",
            registry=self.registry,
        )
        self.new_nodes_kept = Gauge(
            "corral_new_nodes_kept",
            "Nodes that came while a gang asked for some, and are kept for it",
            registry=self.registry,
        )
        asks = Counter(
            "corral_node_asks",
            "Written for node autoscalers, or taken back: conditions, requests, nodes' annotations",
            ["how", "result"],
            registry=self.registry,
        )
        self.asks = {(how, each): asks.labels(how, each) for how in ASKS for each in ASKS[how]}

    def show_needs(
        self,
        gangs: Mapping[str, int],
        pods: int,
        resources: Mapping[str, int],
        oldest_seconds: float,
        offered: Container[str] = (),
    ) -> None:
        """Publish what gangs ask node autoscalers for, in all.

        `gangs`: by why they need nodes. `resources`: as in a request; one not named any more is 0.
        `offered`: the resources of nodes, which names that pods make up do not keep out.
        """
        for reason, number in gangs.items():
            self._needs.labels(reason).set(number)
        self._needs_pods.set(pods)
        self._needs_oldest.set(oldest_seconds)
        others = sum(resource not in offered for resource in self._needed)
        for resource in resources:
            if resource in self._needed:
                continue
            if resource in offered:
                self._needed.add(resource)
            elif others < MOST_RESOURCES:
                self._needed.add(resource)
                others += 1
        for resource in self._needed:
            amount = resources.get(resource, 0)
            self._needs_resource.labels(resource).set(amount / _UNITS.get(resource, 1))

    def _of_admission(self) -> None:
        """The reviews of the webhook."""
        self.pods_gated = Counter(
            "corral_pods_gated",
            "Pods given a scheduling gate at their creation",
            registry=self.registry,
        )
        self.pods_born = Counter(
            "corral_pods_born",
            "Pods narrowed to their nodes at their creation, without a gate",
            registry=self.registry,
        )
        self.given_back = self._counters(
            "corral_given_back",
            "Gangs, and their pods, that their controllers were to make again to start elsewhere",
            "kind",
            GIVEN_BACK,
        )
        self.admissions = self._counters(
            "corral_admissions", "Reviews by outcome", "outcome", ADMISSION_OUTCOMES
        )
        self.admission_rejected = self._counters(
            "corral_admission_rejected",
            "Objects refused for what they say about gangs",
            "kind",
            self._kinds,
        )
        reviews = Histogram(
            "corral_admission_seconds",
            "Time from a review's last byte to its answer",
            ["route"],
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.admission_seconds = {route: reviews.labels(route) for route in ADMISSION_ROUTES}

    def _of_people(self) -> None:
        """Who reads /v1."""
        self.access_reviews = self._counters(
            "corral_access_reviews",
            "Questions to the API server about who reads /v1, and what they may read",
            "outcome",
            REVIEW_OUTCOMES,
        )
        self.followers = Gauge(
            "corral_followers", "Clients that follow /v1/events", registry=self.registry
        )

    def _of_ourselves(self) -> None:
        """The health of this process, and which one it is."""
        which = asdict(this_build())
        Gauge(
            "corral_build_info",
            "1: which version this is, of which commit, on which Python",
            list(which),
            registry=self.registry,
        ).labels(**which).set(1)
        self.engine_errors = self._counters(
            "corral_engine_errors",
            "Inputs the engine failed on, or parts of them; each is a bug and is in the log",
            "input",
            ("apply", "tick", "outcome", "lead", "heal", "drain", "part"),
        )
        self.audit_differences = Counter(
            "corral_audit_differences",
            "Differences between the books and the records; each is a bug and is in the log",
            registry=self.registry,
        )
        self.audit_seconds = Gauge(
            "corral_audit_seconds",
            "Time the last check of the books took, in pieces between which requests are answered",
            registry=self.registry,
        )
        self.journal_bytes = Gauge(
            "corral_journal_bytes",
            "Bytes of journal kept so far; stands still once it is full",
            registry=self.registry,
        )

    def _of_certificates(self) -> None:
        """The certificates of our ports, and of the authorities that settings name."""
        certificates = Counter(
            "corral_certificates",
            "Certificates of a port found changed; what is refused is in the log",
            ["port", "outcome"],
            registry=self.registry,
        )
        self.certificates = {
            (port, outcome): certificates.labels(port, outcome)
            for port in TLS_PORTS
            for outcome in CERTIFICATE_OUTCOMES
        }
        self.certificate_ends = Gauge(
            "corral_certificate_expiration_timestamp_seconds",
            "When the certificate that a setting names ends, of authorities the first one",
            ["setting"],
            registry=self.registry,
        )

    def _of_lateness(self) -> None:
        """How far this process is behind: its event loop, and what it watches."""
        self.loop_lag_seconds = Gauge(
            "corral_loop_lag_seconds",
            "How late the last tick came: work that did not yield",
            registry=self.registry,
        )
        self.ticks_over_budget = self._counters(
            "corral_ticks_over_budget",
            "Ticks that left work for the next one, since they had done as much as a tick may",
            "work",
            TICK_WORK,
        )
        self.watch_lag_seconds = Histogram(
            "corral_watch_lag_seconds",
            "Time from the API server's answer to a binding until the watch shows it",
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.watch_awaited_seconds = Gauge(
            "corral_watch_awaited_seconds",
            "For how long the watch has not shown a binding that was answered, of all the longest",
            registry=self.registry,
        )
        self.watch_silent_seconds = Gauge(
            "corral_watch_silent_seconds",
            "Time since the API server last said anything of a kind: a bookmark comes each minute",
            ["kind"],
            registry=self.registry,
        )
        self.watch_problems = self._counters(
            "corral_watch_problems",
            "Watches that broke and objects that could not be read",
            "kind",
            self._kinds,
        )

    def show_gangs(self, gangs_by_phase: Mapping[str, int]) -> None:
        """Publish how many gangs are in each phase; a phase not named keeps its series at 0."""
        self._phases.update(gangs_by_phase)
        for phase in self._phases:
            self._gangs.labels(phase).set(gangs_by_phase.get(phase, 0))

    def exposition(self) -> bytes:
        """The text format of all series."""
        return generate_latest(self.registry)

    def _counters(
        self, name: str, documentation: str, label: str, values: Sequence[str]
    ) -> Mapping[str, Counter]:
        counter = Counter(name, documentation, [label], registry=self.registry)
        return _Children(counter, values)


class _Children(dict[str, Counter]):
    """The children of one counter by the value of its label; those not named are made on use."""

    def __init__(self, counter: Counter, values: Sequence[str]) -> None:
        super().__init__((value, counter.labels(value)) for value in values)
        self._counter = counter

    def __missing__(self, value: str) -> Counter:
        child = self[value] = self._counter.labels(value)
        return child

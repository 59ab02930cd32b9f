"""Every setting: what it means, its unit, its default, and why that default.

    EngineOptions ─▶ Settings           all that an operator may set; those of the engine first
          └────────▶ EngineSettings     (app/state/settings.py) what the engine runs with

Both are subclasses, so a default or a bound of the engine stands here once.

Precedence: flag of the command line > environment `CORRAL_<NAME>` > settings file > default.
An invalid value ends the program with one sentence: the setting, its value and its source.
How values are written is `setting_values.py`.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_settings import BaseSettings, SettingsConfigDict

from app.errors import SettingsError
from app.labels import EVERYTHING, selector_from_text
from app.setting_values import (
    MIB,
    Address,
    Bytes,
    DeviceParts,
    ListenAddress,
    Names,
    PodsByNamespace,
    Seconds,
    Selector,
    Shapes,
    Vocabularies,
    ip_address,
    scheduler_names,
)

ENV_PREFIX = "CORRAL_"
SETTINGS_FILE = "settings"  # names the file itself, so a file cannot set it
RoleRules = Literal["kueue", "kep"]


def is_named(scheduler: str, names: str) -> bool:
    """Whether a schedulerName is one of those between commas; "": any is."""
    if not names or scheduler == names:
        return True
    return "," in names and scheduler in (part.strip() for part in names.split(","))


class EngineOptions(BaseModel):
    """What an operator may set of the engine. It reads no environment and no file.

    Units: seconds, unless the name says otherwise.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    # The cluster
    # spec.schedulerName of the pods planned for, as of the profiles that Corral extends; several
    # with commas; "": any.
    scheduler_name: Annotated[str, AfterValidator(scheduler_names)] = "corral"
    # The vocabularies that pods of these schedulers are read in, such as default-scheduler=grove;
    # those of others in every one.
    scheduler_vocabularies: Vocabularies = ()
    levels: Names = ()  # label keys, widest first, or one preset name; none: the Topology objects'
    kueue_manages: bool = False  # Kueue runs here: pods that name a queue are left to it

    # Whose rules tell the roles of a pod group apart, and how many it may have. kueue: what Kueue
    # hashes, and 18, so that a group is read alike by both. kep: what KEP-976 lists, which is also
    # labels, image and preemptionPolicy, and 8.
    pod_group_roles: RoleRules = "kueue"

    volcano_queues: Names = ()  # Queues of Volcano to make where absent, as its scheduler would
    # Label keys, widest first, one preset name, or topograph: a HyperNode for each domain of these
    # labels is made, changed and deleted as nodes come and go; needs the ClusterRole
    # corral-hypernodes.
    hyper_nodes_from: Names = ()

    # schedulerNames whose pods KAI's pod-grouper takes: each waits until a PodGroup is named on it.
    # none: the pod-grouper does not run.
    kai_grouped_schedulers: Names = ("kai-scheduler",)

    # Who starts the pods of PodGroups of scheduling.k8s.io together. off: kube-scheduler, if its
    # feature gates are on; to Corral they are ordinary pods. on: Corral, where kube-scheduler's
    # gates are off; needs the ClusterRole corral-native-pod-groups.
    native_pod_groups: Literal["off", "on"] = "off"

    # Gangs
    hold_seconds: Seconds = 60.0  # a plan that kube-scheduler does not use ends after this
    # Longest hold of one request at /bind; with bind_seconds it is below the httpTimeout of the
    # extender that binds, 300. A gang of 10,000 pods takes a minute to pass kube-scheduler.
    gang_bind_seconds: Seconds = 280.0
    refusal_seconds: Seconds = 30.0  # longest a node that refused a shape is left out; 1 s at first
    rewake_seconds: Seconds = 10.0  # a planned pod that is not at /filter by then is woken again
    # Pause after a lost plan, doubled each time in a row up to the most; thrice for a plan that
    # was never used.
    retry_seconds: Seconds = 1.0
    retry_seconds_most: Seconds = 60.0
    # Nodes an ungated pod may still go to, those of its domain: two racks of 16 to repair it in.
    # Each costs the API server 1 % of the pod's patch, which is twice as dear at 128; 0: all nodes.
    narrow_nodes: Annotated[int, Field(ge=0, le=1024)] = 32
    # Gangs whose size is known are planned when their first pod is created, and their pods stored
    # where they belong, without a gate; places for those that do not come end so long after the
    # last one that did. 0: pods wait behind the gate.
    born_seconds: Annotated[float, Field(ge=0, le=600)] = 0.0
    # Such pods are made again by their controller, once, if their gang has a place elsewhere only;
    # needs the ClusterRoles corral-suspend, for Jobs and JobSets, and corral-evict, for others.
    born_pods_given_back: bool = True
    # So are pods that were narrowed as their gate was taken off; needs the same ClusterRoles.
    narrowed_pods_given_back: bool = False
    gather_seconds: Seconds = 10.0  # members missing for so long are reported; controllers take 1 s
    # A gang with a required level that is blocked for so long has nodes of one domain kept free.
    starvation_seconds: Seconds = 300.0
    earmarks_per_namespace: Annotated[int, Field(ge=0, le=1_000)] = 1  # 0: no nodes are kept free
    earmark_seconds: Seconds = 600.0  # for so long at most; then none for the namespace as long
    earmark_priority: int = 0  # for gangs of this priority or a higher one
    # At one time, for all gangs: so many nodes or that share of them, whichever is more.
    earmarked_nodes: Annotated[int, Field(ge=0, le=100_000)] = 8
    earmarked_share: Annotated[float, Field(ge=0, le=1)] = 0.1
    # Nodes kept free may be used by what is likely to end before all of them are free, and gangs
    # with a preferred level alone, or none, have some kept too. deadlines: pods end by
    # activeDeadlineSeconds, their own or their workload's. history: others as the last ones like
    # them did. off: no end is expected.
    backfill: Literal["off", "deadlines", "history"] = "off"
    backfill_seconds: Seconds = 86_400.0  # ends that are expected later are not counted with
    # What a tick may look at, ten times a second, in nodes: 30 ns each. So much for searches and as
    # much for roll calls; what is left over waits for the next tick, in turns between namespaces.
    visits_per_tick: Annotated[int, Field(ge=10_000, le=1_000_000_000)] = 150_000
    # The same for one search for a gang of several pod sets, beside ten for each node; what takes
    # longer goes on in a thread.
    visits_per_search: Annotated[int, Field(ge=1_000, le=1_000_000_000)] = 20_000
    # As in kube-scheduler's profile, to recognise a sample of nodes; 0: its adaptive rule.
    percentage_of_nodes_to_score: Annotated[int, Field(ge=0, le=100)] = 0
    # The write that has kube-scheduler look at a planned pod again nominates it for its node: that
    # is looked at first, also in a sample, and kept from pods of no higher priority. off: the write
    # changes an annotation.
    nominate_planned: bool = True
    preferred_affinity: bool = True  # preferred node affinity decides before capacity does
    # The pods of a preferred level evenly over the domains they need. Off by default, as Kueue's
    # gate TASBalancedPlacement is: domains that are filled leave others whole.
    balanced_placement: bool = False
    # Where no domain of the preferred level takes all pods: the wider one in which they need the
    # fewest of these. Off: the tightest one, as Kueue has it; Grove's gangs and those of the native
    # API have no such rule, and always get the fewest.
    fewest_domains: bool = False

    # Pods to come: those that a running gang declares and that do not exist yet
    # Their places are held this long after the last one came; annotation corral.dev/absent-seconds.
    absent_seconds: Seconds = 600.0
    # What a namespace may have held for pods to come and spares: so many pods or that share of the
    # cluster, whichever is more (1: any number); a namespace with a number of its own only that.
    absent_pods_per_namespace: Annotated[int, Field(ge=0, le=100_000)] = 32
    absent_share_per_namespace: Annotated[float, Field(ge=0, le=1)] = 0.1
    absent_pods_in: PodsByNamespace = ()  # such as team-a=512,team-b=0

    # Preemption by kube-scheduler
    # Which node's pods go for a pod of higher priority. by_priority: those of the lowest priority,
    # then those that break the fewest gangs. last: those that break the fewest gangs, then by
    # priority. never: no member of a gang; the pod waits.
    gangs_as_victims: Literal["by_priority", "last", "never"] = "by_priority"
    # Namespaces whose pods may say with the label corral.dev/preemptible: "false" that they are
    # never among those; *: all. Else a tenant could withdraw pods from every PriorityClass.
    unpreemptible_in: Names = ()
    # What of a gang ends then: that pod, or all of them (which needs the ClusterRole corral-evict),
    # and the gang waits as a whole; annotation corral.dev/disruption.
    disruption: Literal["single", "all"] = "single"

    # Preemption for gangs
    # Which pods of lower priority would have to go for a gang that has no place. off: not asked.
    # explain: the gang is told, and none goes. on: they are evicted; needs the ClusterRole
    # corral-evict.
    preempt: Literal["off", "explain", "on"] = "explain"
    preempt_in: Names = ("*",)  # namespaces whose gangs have others evicted with `on`; *: all
    preempt_after_seconds: Seconds = 10.0  # it has been complete for so long: pods may end anyway
    bare_victims: bool = False  # pods without a controller may go, too: no one makes them again
    preempt_plans: Annotated[int, Field(ge=1, le=64)] = 4  # gangs that have others go at one time
    preempt_pods_at_once: Annotated[int, Field(ge=1, le=10_000)] = 256  # that go for all of them
    # So often in ten minutes others go for gangs of one namespace.
    preempt_per_namespace: Annotated[int, Field(ge=1, le=10_000)] = 10
    # Gangs, and pods outside gangs, that were created less than so long ago are left alone.
    preempt_min_runtime_seconds: Annotated[float, Field(ge=0, le=86_400)] = 0.0
    # So often in an hour a gang goes, or pods of one controller do; then they are left alone.
    preempted_at_most: Annotated[int, Field(ge=1, le=10_000)] = 3

    # Tenants
    # Events, conditions and answers about a gang or a pod name pods and gangs of other namespaces:
    # who goes for whom, who took a node, for whom places are held. off: they say "a pod of another
    # namespace" instead, for tenants who may not know of each other.
    name_other_namespaces: bool = True

    # Clusters whose nodes come and go
    # Waiting gangs that lack nothing but capacity are marked: a condition of their pods says so in
    # the words that node autoscalers read, and the gates stay. never: those that would not fit if
    # no pod ran. busy: also those that have waited for pods to leave for needs_nodes_seconds.
    needs_nodes: Literal["off", "never", "busy"] = "busy"
    needs_nodes_seconds: Seconds = 30.0
    # With no node added for so long it is looked into why: autoscalers see free nodes, not racks.
    needs_nodes_stall_seconds: Seconds = 300.0
    # What /filter says of pods without a gate whose gang is not complete. rejected: for
    # kube-scheduler they are unschedulable, so autoscalers make nodes; they are woken at once.
    # failed: an error, which no autoscaler counts; kube-scheduler tries again after 1 to 10 s.
    gathering_answer: Literal["rejected", "failed"] = "rejected"
    # Nodes that come while a gang asks are kept for it so long after the last one, at most thrice
    # as long in all; and so long those whose labels of levels have not come yet.
    needs_nodes_hold_seconds: Seconds = 600.0
    node_settle_seconds: Seconds = 60.0
    # Instead of by marks a gang asks by a ProvisioningRequest of this class, for all of its nodes
    # or none, as cluster-autoscaler has them with --enable-provisioning-requests. The annotation
    # corral.dev/provisioning-class of its pods names another. *: only gangs that name one. none: no
    # gang does. Needs the ClusterRole corral-provisioning.
    provisioning_class: Annotated[
        str,
        Field(
            max_length=253,
            pattern=r"^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$",
        ),
    ] = ""
    # At one time so many of them wait for their first answer: cluster-autoscaler looks at one after
    # the other in no order of its own.
    provisioning_requests: Annotated[int, Field(ge=1, le=64)] = 4
    # Pods of gangs are bound with the annotations that keep cluster-autoscaler and Karpenter from
    # moving what runs; those that a pod has already stay. Karpenter takes narrowed pods for pods
    # that may go anywhere.
    protect_running: bool = True
    # Nodes on which gangs have places are annotated until the last of these pods is bound, so that
    # neither of the two removes them meanwhile; needs the ClusterRole corral-protect-nodes.
    protect_held_nodes: bool = False

    # Repair, and pods that are one too many
    # A lost member's node is held this long for its replacement; 0: it is not.
    owed_seconds: Annotated[float, Field(ge=0, le=86_400)] = 120.0
    node_failure_seconds: Seconds = 30.0  # a node not ready for so long has failed, not blinked
    replace_failed_nodes: bool = True  # hold another node before the replacement pod exists
    replace_on_pod_termination: bool = True  # as soon as a pod on a node that is not ready ends
    # Evict a gang whose lost member has no other node; needs the ClusterRole corral-evict.
    fail_fast: bool = False
    delete_excess_pods: bool = False  # of pod groups; needs the ClusterRole corral-delete-excess

    # Ordinary pods
    # /prioritize, where no HyperNode decides: first the nodes where the pod leaves the least that
    # usual pods cannot use, then those in used domains. More GPUs are given out before pods with
    # many find none; a cluster that is half full has a quarter fewer free racks. Off: by domains.
    fewest_fragments: bool = False
    # Resources that count parts of devices which pods share, and how many parts a device has, such
    # as alibabacloud.com/gpu-milli=1000: a pod that requests less stands on one device. Nothing is
    # planned where pods fit by sum and on no devices; and fewest_fragments tells devices apart.
    device_parts: DeviceParts = ()
    # The webhook gives members the resources corral.dev/member and corral.dev/member-bind, by which
    # kube-scheduler tells them from ordinary pods: it then asks Corral about members alone. Only
    # with scheduler-config/1.36-marker.yaml, else no member fits on any node; and not where nodes
    # are made for gangs, since node autoscalers have no node with them. An ordinary pod may then
    # take a node that is held: members are narrowed to domains beside theirs, too.
    marker_resource: bool = False

    @field_validator("native_pod_groups", "backfill", "preempt", "needs_nodes", mode="before")
    @classmethod
    def _words(cls, value: object) -> object:
        """YAML reads off and on without quotes as booleans."""
        return {False: "off", True: "on"}[value] if isinstance(value, bool) else value

    @field_validator("marker_resource")
    @classmethod
    def _has_no_autoscalers(cls, marks: bool, info: ValidationInfo) -> bool:
        """Raises: ValueError naming the setting that makes nodes for members."""
        if not marks:
            return marks
        if info.data.get("needs_nodes") != "off":
            raise ValueError(
                "to a node autoscaler a member with it fits on no node: set needs_nodes to off"
            )
        if info.data.get("provisioning_class"):
            raise ValueError(
                "cluster-autoscaler has no node for a member with it: leave provisioning_class out"
            )
        grouped = info.data.get("kai_grouped_schedulers", ())
        ours = info.data.get("scheduler_name", "")
        if late := [name for name in grouped if is_named(name, ours)]:
            raise ValueError(
                f"KAI's pod-grouper makes members of pods of {late[0]} when they are there already,"
                " without it: leave that out of kai_grouped_schedulers, or of scheduler_name"
            )
        return marks


class Settings(EngineOptions, BaseSettings):
    """Every setting, validated. `load` builds it; made directly it reads no settings file."""

    model_config = SettingsConfigDict(env_prefix=ENV_PREFIX, frozen=True, extra="forbid")

    # The cluster
    kubeconfig: Path | None = None  # none: the pod's own service account
    # The file of Volcano's scheduler, or the ConfigMap around it, for the arguments of its plugin
    # network-topology-aware. none: every resource that a pod requests counts alike, the rest as by
    # its defaults.
    volcano_scheduler_conf: Path | None = None
    service_account: Path = Path("/var/run/secrets/kubernetes.io/serviceaccount")  # kubelet's place
    # namespace/name of the Lease our kube-scheduler holds while it leads; "": it always leads.
    neighbour_lease: Annotated[str, Field(pattern=r"^([^/]+/[^/]+)?$")] = ""
    pod_name: str = Field(default_factory=socket.gethostname)  # holders are named after it
    # namespace/name of the Lease by which one of several Corrals acts, and answers a kube-scheduler
    # that is in no pod with them; "": this one always does, or with its neighbour.
    own_lease: Annotated[str, Field(pattern=r"^([^/]+/[^/]+)?$")] = ""
    pod_ip: Annotated[str, AfterValidator(ip_address)] = ""  # where others reach this pod
    # The Service, in the namespace of that Lease and without a selector, that leads to the pod that
    # holds it: its EndpointSlice of the same name is written; "": nothing is.
    leader_service: Annotated[str, Field(pattern=r"^([a-z]([-a-z0-9]{0,61}[a-z0-9])?)?$")] = ""

    # Ports
    extender_listen: ListenAddress = Address("127.0.0.1", 8888)  # loopback: the sidecar's neighbour
    # PEM, read again when they change: all three or none. With them the port speaks TLS only, and
    # only with clients that have a certificate of client_ca; beyond loopback there is no other way.
    # The authority must sign for kube-scheduler alone: each of its clients may have pods bound.
    extender_cert: Path | None = None
    extender_key: Path | None = None
    extender_client_ca: Path | None = None
    api_listen: ListenAddress | None = None  # probes, metrics and /v1; none: no such port
    # PEM, read again when they change: both or none. With them that port speaks TLS only, and
    # answers /v1 beyond loopback to those who have a token, what the API server lets them list;
    # needs the ClusterRole corral-readers. Probes and metrics stay open to all.
    api_cert: Path | None = None
    api_key: Path | None = None
    # Any pod may open them, and each keeps up to 0.4 MiB for TLS once a large body has come by it.
    api_connections: Annotated[int, Field(ge=16, le=1_000_000)] = 512

    # The webhook
    admission_listen: ListenAddress | None = None  # none: no webhook, gangs start gateless
    admission_cert: Path | None = None  # PEM, read again when it changes
    admission_key: Path | None = None
    admission_client_ca: Path | None = None  # PEM, who signs for the API server; none: any client
    # Which pods it gates and checks, as `kubectl get --selector` writes it: those that the pod
    # selector selects, in a namespace that the namespace selector selects. Neither the system nor
    # Corral itself may wait for Corral. deploy/webhook.yaml keeps the same ones from being sent.
    # Any other label of namespaces needs the ClusterRole corral-namespaces.
    admission_namespace_selector: Selector = selector_from_text(
        "kubernetes.io/metadata.name notin (kube-system,corral-system)"
    )
    admission_pod_selector: Selector = EVERYTHING
    admission_body_bytes: Bytes = 4 * MIB  # two pods of 1.5 MB, old and new, and room
    # Bodies between their first byte and their answer; at least four times the largest body.
    admission_under_way_bytes: Bytes = 32 * MIB
    # Each takes up to 0.7 MiB for TLS. An API server has 200 writes of all kinds under way at once.
    admission_connections: Annotated[int, Field(ge=16, le=1_000_000)] = 256

    # Time
    tick_seconds: Annotated[float, Field(ge=0.005, le=10)] = 0.1  # how late a deadline may be seen
    bind_seconds: Seconds = 15.0  # one binding with its retries: a restart of the API server
    audit_seconds: Seconds = (
        60.0  # between two checks of the books; each takes 2 µs a pod, in pieces
    )

    # A watch on which nothing has come for so long is asked for anew, from where it was. The API
    # server sends a bookmark a minute. Before Corral counts as unready, after 150.
    watch_silence_seconds: Annotated[float, Field(ge=1, le=140)] = 75.0

    # Writes to the API server
    bind_concurrency: Annotated[int, Field(ge=1, le=1024)] = 64  # 2,000 binds/s on two cores
    ungate_concurrency: Annotated[int, Field(ge=1, le=1024)] = 16  # patches under way at once
    evict_per_second: Annotated[float, Field(gt=0, le=1_000)] = 10.0  # a rack of pods in seconds
    wake_per_second: Annotated[float, Field(gt=0, le=10_000)] = 200.0  # each wake is one PATCH
    wake_burst: Annotated[int, Field(ge=1, le=100_000)] = 512  # one large gang at once
    report_per_minute: Annotated[float, Field(gt=0, le=60_000)] = 120.0  # events to owners

    # Requests: sizes in bytes. 15,000 names of 245 characters are 3.7 MB, a pod up to 1.5 MB.
    filter_body_bytes: Bytes = 8 * MIB  # /filter and /prioritize
    preempt_body_bytes: Bytes = 32 * MIB  # 5,000 nodes with whole victim pods
    bind_body_bytes: Bytes = 4 * 1024  # four short strings; a gang's requests are held together
    under_way_bytes: Bytes = 128 * MIB  # as admission_under_way_bytes, of each of the other ports
    full_nodes: bool = True  # accept Nodes instead of NodeNames, within filter_body_bytes
    receive_seconds: Seconds = 5.0  # first to last byte of one request
    keep_alive_seconds: Annotated[int, Field(ge=91, le=86_400)] = 120  # Go's client idles for 90
    max_connections: Annotated[int, Field(ge=16, le=1_000_000)] = 16_384  # seven of eight for /bind

    # What is measured
    # Pods whose room is a metric, such as node:nvidia.com/gpu=8; quarter:nvidia.com/gpu=2,cpu=8
    metric_shapes: Shapes = ()
    # Where a span of each gang that starts is sent by OTLP over HTTP, such as
    # http://collector:4318/v1/traces; none: nowhere. Needs the extra otel.
    otlp_endpoint: Annotated[str, Field(pattern=r"^(https?://[^\s]+)?$")] = ""

    # What happened
    journal: Path | None = None  # every input of the engine, for `corral replay`; none: none kept
    # It ends there; a cluster of 150,000 pods takes some 100 MiB, each pod of a gang 5 KiB.
    journal_bytes: Annotated[int, Field(ge=MIB, le=1024 * 1024 * MIB)] = 1024 * MIB
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @field_validator("own_lease")
    @classmethod
    def _has_one_lease(cls, lease: str, info: ValidationInfo) -> str:
        """Raises: ValueError where the neighbour's decides already."""
        if lease and info.data.get("neighbour_lease"):
            raise ValueError("neighbour_lease says already who acts: leave one of them out")
        return lease

    @field_validator("leader_service")
    @classmethod
    def _leads_somewhere(cls, service: str, info: ValidationInfo) -> str:
        """Raises: ValueError without a Lease. `pod_ip` is missing where a manifest is only read."""
        if service and not info.data.get("own_lease"):
            raise ValueError("needs own_lease beside it")
        return service


def load(flags: Mapping[str, object]) -> Settings:
    """The settings that hold, from flags that were given (None: not given), environment and file.

    Raises: SettingsError naming the setting, its value and its source.
    """
    given = {name: value for name, value in flags.items() if value is not None}
    path = given.pop(SETTINGS_FILE, None) or os.environ.get(ENV_PREFIX + SETTINGS_FILE.upper())
    from_file = read_file(Path(str(path))) if path else {}
    check_names(from_file, f"settings file {path}")
    from_environment = {
        name: os.environ[variable]
        for name in Settings.model_fields
        if (variable := ENV_PREFIX + name.upper()) in os.environ
    }
    try:
        return Settings(**{**from_file, **from_environment, **given})  # type: ignore[arg-type]
    except ValidationError as error:
        raise SettingsError(_sentence(error, given, from_file, str(path))) from error


def check_names(names: Iterable[str], where: str) -> None:
    """Raises: SettingsError for the first that is no setting, with those there are."""
    if unknown := sorted(name for name in names if name not in Settings.model_fields):
        known = ", ".join(Settings.model_fields)
        raise SettingsError(f"{where}: no setting {unknown[0]!r}; known: {known}")


def read_file(path: Path) -> dict[str, object]:
    """The mapping in a YAML settings file; an empty file is an empty mapping."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"settings file {path}: cannot be read: {error}") from error
    except yaml.YAMLError as error:
        why = " ".join(str(error).split())
        raise SettingsError(f"settings file {path}: not YAML: {why}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise SettingsError(f"settings file {path}: expected `setting: value` lines")
    return {str(name).replace("-", "_"): value for name, value in content.items()}


def _sentence(
    error: ValidationError, given: Mapping[str, object], from_file: Mapping[str, object], path: str
) -> str:
    """The first thing that is wrong, as its writer knows it."""
    first = error.errors()[0]
    name = str(first["loc"][0])
    variable = ENV_PREFIX + name.upper()
    if name in given:
        source, value = f"flag --{name.replace('_', '-')}", given[name]
    elif variable in os.environ:
        source, value = f"environment variable {variable}", os.environ[variable]
    else:
        source, value = f"settings file {path}, {name}", from_file.get(name)
    what = first["msg"].removeprefix("Value error, ")
    return f"{source}: {value!r} is not valid: {what}"

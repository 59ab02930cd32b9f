"""Whether Corral's settings and kube-scheduler's configuration say the same."""

from __future__ import annotations

from collections.abc import Iterator

from app.cli.doctor import installed
from app.cli.doctor.configuration import LOOPBACK, SchedulerConfig
from app.cli.doctor.findings import Check, Problem, error, lines, warning
from app.cli.doctor.seen import Object, OwnSettings
from app.kube.decoding.requests import MARKERS

ALL_NODES = 100  # percentageOfNodesToScore of a scheduler that looks at every node
CLUSTERS_OWN = "kube-system/kube-scheduler"  # the Lease of the scheduler that every cluster has
CLUSTERS_NAME = "default-scheduler"  # whose pods that one takes


def bind_timeout(config: SchedulerConfig, settings: OwnSettings) -> Iterator[Problem]:
    """Whether kube-scheduler waits for a gang as long as Corral holds it."""
    values = settings.values
    held = values.gang_bind_seconds + values.bind_seconds
    for field, each in config.extenders():
        if each.bind_verb and each.timeout <= held:
            yield error(
                config.where,
                f"/bind is held for gang_bind_seconds + bind_seconds of {settings.where},"
                f" {held:g} s, and members that are bound after kube-scheduler gave up fail",
                f"httpTimeout: {held + 5:g}s",
                field=f"{field}.httpTimeout",
                value=each.http_timeout or None,
            )
        elif each.filter_verb and each.timeout < values.receive_seconds:
            yield warning(
                config.where,
                f"Corral takes up to receive_seconds, {values.receive_seconds:g} s, to read a"
                " request",
                "httpTimeout: 30s",
                field=f"{field}.httpTimeout",
                value=each.http_timeout,
            )


def address(config: SchedulerConfig, settings: OwnSettings) -> Iterator[Problem]:
    """Whether kube-scheduler asks where Corral listens."""
    listen, has_tls = settings.values.extender_listen, settings.values.extender_cert is not None
    for field, each in config.extenders():
        port = each.address[1]
        # Another address may be that of a Service, with a port of its own.
        if each.is_on_loopback and port != listen.port:
            why, mend = f"Corral listens on {listen}", f"urlPrefix: http://{listen}"
        elif each.address[0] and not each.is_on_loopback and LOOPBACK.fullmatch(listen.host):
            why = f"Corral listens on {listen}, which only its own pod reaches"
            mend = "extender_listen: 0.0.0.0:8888, with extender_cert, extender_key and"
            mend += " extender_client_ca"
        elif each.is_tls != has_tls:
            why = "Corral speaks TLS there" if has_tls else "Corral has no extender_cert for TLS"
            mend = f"urlPrefix: {'https' if has_tls else 'http'}://…"
        else:
            continue
        yield error(
            config.where, why, mend, field=f"{field}.urlPrefix", value=each.url_prefix or None
        )


def profiles(config: SchedulerConfig, settings: OwnSettings) -> Iterator[Problem]:
    """Whether the profiles are those that Corral plans for."""
    wanted = settings.schedulers
    if not wanted:
        return
    ours = list(config.extenders())
    is_shielded = bool(ours) and all(each.managed_resources for _, each in ours)
    names = [profile.scheduler_name for profile in config.content.profiles]
    for at, name in enumerate(names):
        if name not in wanted and ours and not is_shielded:
            yield error(
                config.where,
                f"profiles share their extenders, and Corral binds only pods of scheduler_name"
                f" ({','.join(wanted)}): those of {name} stay unbound",
                lines(f"scheduler_name: {','.join([*wanted, name])}", "or leave that profile out"),
                field=f"profiles[{at}].schedulerName",
                value=name,
            )
    for name in wanted:
        if name not in names:
            yield error(
                settings.where,
                f"no profile of {config.where} is called {name}, so no kube-scheduler brings its"
                " pods to Corral",
                lines("profiles:", f"- schedulerName: {name}"),
                field="scheduler_name",
                value=settings.values.scheduler_name,
            )


def sampling(
    config: SchedulerConfig,
    settings: OwnSettings,
    gating: tuple[Object, ...],
) -> Iterator[Problem]:
    """Whether a gang without gates is shown its nodes, and a sample is known for one."""
    values = settings.values
    gates = gating or values.admission_listen is not None
    for at, profile in enumerate(config.content.profiles):
        if settings.schedulers and profile.scheduler_name not in settings.schedulers:
            continue
        share = config.percentage(profile)
        field = f"profiles[{at}].percentageOfNodesToScore"
        if share != ALL_NODES and not (gates or values.nominate_planned):
            yield error(
                config.where,
                "without the webhook or policies.yaml pods come ungated, and without"
                " nominate_planned kube-scheduler shows Corral a sample of the nodes in which the"
                " planned one may be missing",
                f"percentageOfNodesToScore: {ALL_NODES}",
                field=field,
                value=share or None,
            )
        elif share != values.percentage_of_nodes_to_score:
            yield warning(
                settings.where,
                f"{config.where} has {share or 'none'} as {field}, and Corral takes a sample of"
                " nodes for all of them, or all for a sample",
                f"percentage_of_nodes_to_score: {share}",
                field="percentage_of_nodes_to_score",
                value=values.percentage_of_nodes_to_score,
            )


def marker(
    config: SchedulerConfig, settings: OwnSettings, gating: tuple[Object, ...]
) -> Iterator[Problem]:
    """Whether members have the resources that kube-scheduler knows them by, and no others."""
    values, name = settings.values, "marker_resource"
    managed = {each.name for _, one in config.extenders() for each in one.managed_resources}
    missing = [each for each in MARKERS if each not in managed]
    if values.marker_resource and missing:
        mode = "beside-marker" if any(one.is_tls for _, one in config.extenders()) else "marker"
        yield error(
            config.where,
            f"members request {', '.join(missing)} by {name} of {settings.where}, and without this"
            " kube-scheduler finds no node that offers it",
            f"corral doctor --write-config MINOR --mode {mode}",
            field="extenders[*].managedResources",
            value=", ".join(sorted(managed)) or None,
        )
    if managed.isdisjoint(MARKERS):
        return
    if not values.marker_resource:
        yield error(
            settings.where,
            "no pod requests what the extenders manage, and kube-scheduler starts gangs without"
            " Corral",
            f"{name}: true",
            field=name,
            value=False,
        )
    elif values.admission_listen is None:
        yield error(
            settings.where,
            f"the webhook adds what {name} says"
            + (", and policies.yaml does not" if gating else "")
            + ": kube-scheduler starts gangs without Corral",
            "kubectl apply -f deploy/webhook.yaml",
            field="admission_listen",
        )


def lease(config: SchedulerConfig, settings: OwnSettings) -> Iterator[Problem]:
    """Whether Corral acts while its own kube-scheduler leads, and only then."""
    election, followed = config.content.leader_election, settings.values.neighbour_lease
    if not followed:
        return
    field, mend = "neighbour_lease", f"neighbour_lease: {election.lease}"
    if not election.leader_elect:
        yield error(
            config.where,
            f"kube-scheduler takes no Lease, and a Corral that follows {followed}"
            " (neighbour_lease) never acts",
            "leaderElection: {leaderElect: true}",
            field="leaderElection.leaderElect",
            value=False,
        )
    elif election.lease != followed:
        yield error(
            settings.where,
            f"the kube-scheduler beside it leads by {election.lease}, and Corral never acts",
            mend,
            field=field,
            value=followed,
        )


def replicas(
    config: SchedulerConfig, settings: OwnSettings, deployment: Object
) -> Iterator[Problem]:
    """Whether one of several Corrals acts at a time, and the cluster's own Lease is left alone."""
    count = (deployment.get("spec") or {}).get("replicas", 1)
    election, metadata = config.content.leader_election, deployment["metadata"]
    where = f"Deployment {metadata['namespace']}/{metadata['name']}"
    if count > 1 and not (settings.values.neighbour_lease or settings.values.own_lease):
        yield error(
            settings.where,
            f"{where} has {count} replicas, and all of them act at once",
            f"neighbour_lease: {election.lease}",
            field="neighbour_lease",
        )
    if election.leader_elect and election.lease == CLUSTERS_OWN:
        yield error(
            config.where,
            f"that is the Lease of the cluster's own kube-scheduler: the one of {where} waits for"
            " it for ever, or takes its place",
            lines(
                "leaderElection:",
                f"  resourceNamespace: {metadata['namespace']}",
                "  resourceName: corral-scheduler",
            ),
            field="leaderElection.resourceName",
            value=election.lease,
        )


def cluster_profile(config: SchedulerConfig, deployment: Object) -> Iterator[Problem]:
    """Whether the kube-scheduler beside Corral leaves the pods of the cluster's own alone."""
    if installed.scheduler_container(deployment) is None:
        return
    for at, profile in enumerate(config.content.profiles):
        if profile.scheduler_name == CLUSTERS_NAME:
            yield error(
                config.where,
                "the cluster's own kube-scheduler takes these pods as well, asks no Corral, and"
                " neither knows what the other has given out",
                "corral doctor --write-config MINOR --mode beside, for the cluster's own",
                field=f"profiles[{at}].schedulerName",
                value=CLUSTERS_NAME,
            )


_BOTH = ("config", "settings")
_GATES = (*_BOTH, "gating_policies")
CHECKS = (
    Check("bind-timeout", "kube-scheduler waits as long as /bind is held", _BOTH, bind_timeout),
    Check("extender-address", "kube-scheduler asks where Corral listens", _BOTH, address),
    Check("profile-names", "each profile is one that Corral plans for", _BOTH, profiles),
    Check("node-sampling", "Corral knows how many nodes it is shown", _GATES, sampling),
    Check("marker", "kube-scheduler asks about every member", _GATES, marker),
    Check("lease", "Corral follows the Lease of its kube-scheduler", _BOTH, lease),
    Check("replicas", "one Corral acts at a time", (*_BOTH, "deployment"), replicas),
    Check(
        "cluster-profile",
        "the cluster's own kube-scheduler has its pods to itself",
        ("config", "deployment"),
        cluster_profile,
    ),
)

"""What owns pods, and what administrators write: kind, input and bytes."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.largest import vocabularies
from benchmarks.largest.written import (
    ANNOTATIONS,
    STORED,
    Json,
    a_template,
    affinity,
    as_many,
    containers,
    mapping,
    written,
)


def _made(kind: str, name: str, spec: object, metadata: object = None) -> tuple[str, str, bytes]:
    named = {"name": "a", "namespace": "b", **(metadata or {})}
    return kind, name, written({"metadata": named, "spec": spec})


def workloads() -> Iterator[tuple[str, str, bytes]]:
    """Kind, input and bytes."""
    many = containers(STORED, lambda at: {"cpu": f"{at}m"})
    noted = {"annotations": mapping(lambda at: f"a{at}", 2 * ANNOTATIONS)}
    for kind, spec in (
        ("Job", lambda template: {"template": template}),
        ("StatefulSet", lambda template: {"template": template}),
        (
            "LeaderWorkerSet",
            lambda template: {
                "startupPolicy": "LeaderReady",
                "leaderWorkerTemplate": {"leaderTemplate": {}, "workerTemplate": template},
            },
        ),
        (
            "MPIJob",
            lambda template: {
                "launcherCreationPolicy": "WaitForWorkersReady",
                "mpiReplicaSpecs": {"Launcher": {"template": template}},
            },
        ),
    ):
        yield _made(kind, "labels", {}, {"labels": mapping(lambda at: f"l{at}")})
        yield _made(kind, "annotations of the template", spec(a_template(noted)))
        yield _made(kind, "10,000 containers", spec(a_template(containers=many)))
        terms = affinity([{}] * 4_000)
        yield _made(kind, "16 KiB of empty affinity terms", spec(a_template(affinity=terms)))
    for kind in ("Job", "JobSet", "MPIJob"):
        status = {"conditions": as_many(lambda at: {})}
        named = {"name": "a", "namespace": "b"}
        yield kind, "conditions", written({"metadata": named, "spec": {}, "status": status})
    yield _made("Job", "failure rules", {"podFailurePolicy": {"rules": as_many(lambda at: {})}})
    yield from _of_job_sets(many[:40])
    selects = {"selector": {"matchLabels": mapping(lambda at: f"l{at}")}}
    yield _made("PodDisruptionBudget", "labels of its selector", selects)
    few = {"selector": {"matchLabels": {f"l{at}": "v" * 63 for at in range(64)}}}
    yield _made("PodDisruptionBudget", "as many labels as are compared", few)
    yield _made(
        "PyTorchJob",
        "replica types",
        {"pytorchReplicaSpecs": {f"T{at}": {} for at in range(100_000)}},
    )
    yield from vocabularies.of_volcano()
    yield from vocabularies.of_kai()
    yield from vocabularies.of_native()
    yield from vocabularies.of_provisioning()
    yield from vocabularies.of_grove()
    yield from of_administrators()


def _of_job_sets(many: list[Json]) -> Iterator[tuple[str, str, bytes]]:
    """JobSets, also with templates of so many containers."""
    depends = {"name": "a", "dependsOn": as_many(lambda at: {})}
    yield _made("JobSet", "dependencies", {"replicatedJobs": [depends]})
    small = a_template()
    inner = affinity([{}] * 1_000)
    for order in ("AnyOrder", "InOrder"):
        for name, template in (
            ("replicated Jobs", small),
            ("large templates", a_template(containers=many)),
            ("templates of empty affinity terms", a_template(affinity=inner)),
            (
                "templates with annotations",
                a_template({"annotations": {str(a): "" for a in range(500)}}),
            ),
        ):
            jobs = as_many(
                lambda at, each=template: {
                    "name": f"r{at}",
                    "template": {"spec": {"template": each}},
                }
            )
            spec = {"replicatedJobs": jobs, "startupPolicy": {"startupPolicyOrder": order}}
            yield _made("JobSet", f"{name}, {order}", spec)


def of_administrators() -> Iterator[tuple[str, str, bytes]]:
    """Kind, input and bytes of what no tenant may store: beyond a bound, and just below it."""

    def made(kind: str, name: str, spec: Json, status: Json) -> tuple[str, str, bytes]:
        named = {"name": "a", "namespace": "b"}
        return kind, name, written({"metadata": named, "spec": spec, "status": status})

    for name, levels in (
        ("1,300 levels", [{"nodeLabel": f"l{at}"} for at in range(1_300)]),
        ("levels", as_many(lambda at: {"nodeLabel": f"l{at}"})),
        ("empty levels", as_many(lambda at: {})),
    ):
        yield made("Topology", name, {"levels": levels}, {})
    for resources in (2_000, 50_000):
        hard = {f"requests.a.b/r{at}": f"{at}" for at in range(resources)}
        yield made("ResourceQuota", f"{resources} resources", {}, {"hard": hard})
    exact = [
        {"type": "Node", "selector": {"exactMatch": {"name": f"n{at}"}}} for at in range(10_000)
    ]
    yield made("HyperNode", "10,000 members", {"tier": 1, "members": exact}, {})
    yield made("HyperNode", "1,000 members", {"tier": 1, "members": exact[:1_000]}, {})
    yield made("HyperNode", "empty members", {"tier": 1, "members": as_many(lambda at: {})}, {})

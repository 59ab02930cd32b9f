"""What PodCliqueSets may say of topology: the rules of GREP-244, each by its section."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from app.dialects.declared import TopologySpec
from app.dialects.grove.pod_clique_sets import MOST_PARTS, check_pod_clique_set
from app.dialects.grove.topology import decode_topology, specs_of

Json = dict[str, Any]
# Supported topology domains, from the widest to the narrowest.
DOMAINS = ("region", "zone", "datacenter", "block", "rack", "host", "numa")
KEYS = {**{each: f"example.com/{each}" for each in DOMAINS}, "host": "kubernetes.io/hostname"}


def topology(name: str = "grove-topology", domains: tuple[str, ...] = DOMAINS) -> TopologySpec:
    """What is known of a ClusterTopology of these levels."""
    levels = [{"domain": each, "key": KEYS[each]} for each in domains]
    made = {"metadata": {"name": name, "uid": "u"}, "spec": {"levels": levels}}
    (spec,) = specs_of(decode_topology(msgspec.json.encode(made), kind="ClusterTopology"))
    return spec


def known(*topologies: TopologySpec):
    return {each.name: each for each in topologies}.get


GROVES = known(topology())


def within(domain: str = "", preferred: str = "", name: str = "") -> Json:
    """A constraint in the words of newer versions of Grove."""
    pack = {"required": domain, "preferred": preferred}
    said: Json = {"pack": {key: value for key, value in pack.items() if value}}
    return {**said, "topologyName": name} if name else said


def older(domain: str) -> Json:
    """The same in those of v0.1.0-alpha.8."""
    return {"packDomain": domain}


def made(
    whole: Json | None = None,
    cliques: dict[str, Json | None] | None = None,
    groups: dict[str, tuple[Json | None, list[str]]] | None = None,
    scheduler: str = "",
) -> Json:
    """A PodCliqueSet: constraints of the whole, of cliques, of scaling groups and their cliques."""
    pods = {"schedulerName": scheduler} if scheduler else {}
    template: Json = {
        "cliques": [
            {"name": name, "spec": {"podSpec": pods}, **_constraint(said)}
            for name, said in (cliques or {"a": None}).items()
        ],
        "podCliqueScalingGroups": [
            {"name": name, "cliqueNames": names, **_constraint(said)}
            for name, (said, names) in (groups or {}).items()
        ],
        **_constraint(whole),
    }
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": "pcs", "namespace": "default"},
        "spec": {"replicas": 1, "template": template},
    }


def _constraint(said: Json | None) -> Json:
    return {} if said is None else {"topologyConstraint": said}


def errors(wanted: Json, before: Json | None = None, topologies=GROVES) -> list[str]:
    was = None if before is None else msgspec.json.encode(before)
    return [
        str(f) for f in check_pod_clique_set(msgspec.json.encode(wanted), was, topologies).flaws
    ]


@pytest.mark.parametrize("say", [within, older])
@pytest.mark.parametrize("domain", DOMAINS)
def test_supported_topology_domains_each_of_a_cluster_topology_may_be_named(domain, say):
    assert errors(made(say(domain), {"a": say(domain)}, {"g": (say(domain), ["a"])})) == []


@pytest.mark.parametrize(
    ("wanted", "path"),
    [
        (made(within("room")), "template.topologyConstraint.pack.required"),
        (made(within(preferred="room")), "template.topologyConstraint.pack.preferred"),
        (made(older("room")), "template.topologyConstraint.packDomain"),
        (
            made(None, {"a": None, "b": within("room")}),
            "template.cliques[1].topologyConstraint.pack.required",
        ),
        (
            made(None, None, {"g": (older("room"), ["a"])}),
            "template.podCliqueScalingGroups[0].topologyConstraint.packDomain",
        ),
    ],
)
def test_validation_rule_1_a_domain_that_the_topology_has_not_is_rejected(wanted, path):
    few = known(topology(domains=("zone", "rack")))
    told = f'spec.{path}: Unsupported value: "room": supported values: "zone", "rack"'
    assert errors(wanted, topologies=few) == [told]


def test_workload_portability_a_cluster_without_the_level_rejects_it():
    wanted = made(within("block"))
    assert errors(wanted) == []
    assert errors(wanted, topologies=known(topology(domains=("zone", "rack")))) != []


def test_a_key_means_its_own_level_though_another_one_is_called_so():
    levels = [{"domain": "zone", "key": "example.com/dc"}, {"domain": "rack", "key": "zone"}]
    said = {"metadata": {"name": "t", "uid": "u"}, "spec": {"levels": levels}}
    (spec,) = specs_of(decode_topology(msgspec.json.encode(said), kind="ClusterTopology"))
    assert (spec.levels, spec.aliases) == (("example.com/dc", "zone"), (("rack", "zone"),))


@pytest.mark.parametrize(
    "levels",
    [
        pytest.param((("zone", "a"), ("rack", "b"), ("rack", "c")), id="its_domain"),
        pytest.param((("zone", "a"), ("rack", "b"), ("block", "b")), id="its_key"),
    ],
)
def test_validation_levels_are_unique_and_one_that_is_there_twice_is_none(levels):
    said = [{"domain": domain, "key": key} for domain, key in levels]
    made_of = {"metadata": {"name": "grove-topology", "uid": "u"}, "spec": {"levels": said}}
    (spec,) = specs_of(decode_topology(msgspec.json.encode(made_of), kind="ClusterTopology"))
    assert errors(made(within("zone")), topologies=known(spec)) == []
    (told,) = errors(made(within("rack")), topologies=known(spec))
    assert told.endswith('Unsupported value: "rack": supported values: "zone"')


def test_validation_rule_1_a_topology_that_is_not_there_has_no_domain():
    told = 'Invalid value: "{}": there is no ClusterTopology of this name'
    assert errors(made(within("rack")), topologies=known()) == [
        f"spec.template.topologyConstraint: {told.format('grove-topology')}"
    ]
    assert errors(made(within("rack", name="other"))) == [
        f"spec.template.topologyConstraint.topologyName: {told.format('other')}"
    ]
    assert errors(made(within("rack", name="b")), topologies=known(topology("b"))) == []


def test_a_pod_clique_set_without_constraints_needs_no_topology():
    assert errors(made(), topologies=known()) == []


def test_the_topology_of_the_whole_is_that_of_its_parts():
    named = made(within("zone", name="b"), {"a": within("rack")}, {"g": (within("block"), ["a"])})
    assert errors(named, topologies=known(topology("b"))) == []


def test_one_pod_clique_set_names_one_topology():
    both = known(topology("b"), topology("c"))
    wanted = made(within("zone", name="b"), {"a": within("rack", name="c")})
    assert errors(wanted, topologies=both) == [
        'spec.template.cliques[0].topologyConstraint.topologyName: Invalid value: "c":'
        " must be b, as in the rest of the PodCliqueSet"
    ]


# The table of GREP-244 "Validation" (rule 2), and its text: equal or lower.
@pytest.mark.parametrize("say", [within, older, lambda domain: within(preferred=domain)])
@pytest.mark.parametrize(
    ("parent", "child", "is_valid"),
    [
        ("rack", "host", True),
        ("rack", "rack", True),
        ("rack", "numa", True),
        ("host", "rack", False),
        ("zone", "block", True),
        ("rack", "zone", False),
        ("rack", "region", False),
    ],
)
def test_validation_rule_2_down_the_hierarchy_levels_are_equal_or_lower(
    parent, child, is_valid, say
):
    of_group = made(say(parent), {"a": None}, {"g": (say(child), ["a"])})
    of_clique = made(say(parent), {"a": say(child)})
    inside = made(None, {"a": say(child)}, {"g": (say(parent), ["a"])})
    for wanted in (of_group, of_clique, inside):
        found = errors(wanted)
        assert (found == []) == is_valid
        if not is_valid:
            assert len(found) == 1
            assert f'Invalid value: "{child}": must not be wider than {parent} in spec.' in found[0]


def test_validation_rule_2_a_clique_of_no_group_is_not_inside_one():
    assert (
        errors(made(None, {"a": within("zone"), "b": None}, {"g": (within("rack"), ["b"])})) == []
    )


def test_validation_rule_2_a_clique_is_compared_with_the_whole_through_its_group():
    found = errors(made(within("rack"), {"a": within("zone")}, {"g": (None, ["a"])}))
    assert found == [
        'spec.template.cliques[0].topologyConstraint.pack.required: Invalid value: "zone":'
        " must not be wider than rack in spec.template.topologyConstraint.pack.required"
    ]


def test_required_and_preferred_are_not_compared_with_each_other():
    assert errors(made(within("rack"), {"a": within(preferred="zone")})) == []


def test_a_constraint_says_its_domain_once():
    both = {"packDomain": "rack", "pack": {"required": "rack"}}
    assert errors(made(both)) == [
        "spec.template.topologyConstraint.packDomain: Forbidden:"
        " may not be set together with pack.required, which says the same"
    ]
    assert errors(made({})) == [
        "spec.template.topologyConstraint: Required value:"
        " names no domain: set pack.required or pack.preferred"
    ]


BEFORE = made(within("zone", "rack"), {"a": within("rack")}, {"g": (within("block"), ["a"])})


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (
            made(within("block", "rack"), {"a": within("rack")}, {"g": (within("block"), ["a"])}),
            "template.topologyConstraint.pack.required: Forbidden:"
            " may not change once the PodCliqueSet exists: was zone",
        ),
        (
            made(within("zone"), {"a": within("rack")}, {"g": (within("block"), ["a"])}),
            "template.topologyConstraint.pack.preferred: Forbidden:"
            " may not change once the PodCliqueSet exists: was rack",
        ),
        (
            made(within("zone", "rack"), {"a": None}, {"g": (within("block"), ["a"])}),
            "template.cliques[0].topologyConstraint: Forbidden:"
            " may not be removed once the PodCliqueSet exists",
        ),
    ],
)
def test_validation_rule_1_domains_of_a_deployed_pod_clique_set_do_not_change(after, told):
    assert errors(after, BEFORE) == [f"spec.{told}"]


def test_a_constraint_may_not_be_added_to_a_deployed_pod_clique_set():
    assert errors(made(within("zone")), made()) == [
        "spec.template.topologyConstraint: Forbidden: may not be added once the PodCliqueSet exists"
    ]


def test_the_older_field_may_become_the_newer_one_with_the_same_domain():
    assert errors(made(within("zone")), made(older("zone"))) == []
    assert errors(made(within("rack")), made(older("zone"))) != []


def test_a_topology_may_be_named_later_and_not_be_another():
    named = made(within("zone", name="b"))
    assert errors(named, made(within("zone")), topologies=known(topology("b"))) == []
    assert errors(made(within("zone", name="c")), named) == [
        "spec.template.topologyConstraint.topologyName: Forbidden:"
        " may not change once the PodCliqueSet exists: was b"
    ]


def test_a_topology_that_is_named_later_has_the_domains():
    named = made(within("zone", name="b"))
    assert errors(named, made(within("zone")), topologies=known()) != []


REORDERED = [
    pytest.param(
        made(None, {"a": within("rack"), "b": within("host")}),
        made(None, {"b": within("host"), "a": within("rack")}),
        id="cliques",
    ),
    pytest.param(
        made(None, {"a": None, "b": None}, {"g": (within("rack"), ["a"]), "h": (None, ["b"])}),
        made(None, {"a": None, "b": None}, {"h": (None, ["b"]), "g": (within("rack"), ["a"])}),
        id="groups",
    ),
]


@pytest.mark.parametrize(("before", "after"), REORDERED)
def test_the_order_of_parts_may_change(before, after):
    assert errors(after, before) == []


def test_parts_that_exchange_their_names_have_changed_their_domains():
    before = made(None, {"a": within("rack"), "b": within("host")})
    after = made(None, {"b": within("rack"), "a": within("host")})
    fixed = "may not change once the PodCliqueSet exists"
    assert sorted(errors(after, before)) == [
        f"spec.template.cliques[0].topologyConstraint.pack.required: Forbidden: {fixed}: was host",
        f"spec.template.cliques[1].topologyConstraint.pack.required: Forbidden: {fixed}: was rack",
    ]


def test_topology_configuration_drift_a_change_of_something_else_is_let_by():
    """Levels that are gone since then refuse new PodCliqueSets only."""
    changed = made(within("zone", "rack"), {"a": within("rack")}, {"g": (within("block"), ["a"])})
    changed["spec"]["replicas"] = 5
    assert errors(changed, BEFORE, topologies=known()) == []


def test_topology_configuration_drift_new_ones_with_a_level_that_is_gone_are_rejected():
    deployed = made(within("rack"))
    assert errors(deployed) == []
    gone = known(topology(domains=("zone", "host")))
    (told,) = errors(deployed, topologies=gone)
    assert told.endswith('Unsupported value: "rack": supported values: "zone", "host"')
    assert errors(deployed, deployed, topologies=gone) == []


def test_more_parts_than_are_read_are_refused():
    many = made(None, {f"c{each}": None for each in range(MOST_PARTS + 1)})
    told = f"Too many: {MOST_PARTS + 1}: must have at most {MOST_PARTS} items"
    assert errors(many) == [f"spec.template.cliques: {told}"]


@pytest.mark.parametrize(("scheduler", "are_told"), [("", False), ("default-scheduler", True)])
def test_whose_it_is_is_known_where_its_cliques_name_a_scheduler(scheduler, are_told):
    pods = check_pod_clique_set(msgspec.json.encode(made(scheduler=scheduler))).pods
    assert (pods is not None) == are_told
    assert pods is None or [each.scheduler for each in pods] == [scheduler]

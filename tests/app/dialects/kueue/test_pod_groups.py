"""What members say about their gang's life. Sections are those of KEP-976."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest

from app.dialects.spec import GangKey, Index, LeafSpec, Said
from app.kube.core.objects import PodRecord
from tests.app.dialects.claims import claim_of, flaw_of
from tests.records import (
    BLOCK,
    GPU,
    GROUP,
    PREFERRED,
    RACK,
    REQUIRED,
    SLICE_LEVEL,
    SLICE_SIZE,
    TOTAL,
    group,
    pod,
)
from topology.model.request import Constraint, Slice

PREFIX = "kueue.x-k8s.io/"
SETS = PREFIX + "pod-group-sets"
ROLE = PREFIX + "pod-group-role"
SPARES = "corral.dev/spare-pods"
ABSENT = "corral.dev/absent-seconds"
DISRUPTION = "corral.dev/disruption"
POD_INDEX = PREFIX + "pod-group-pod-index"
JOB_INDEX = "batch.kubernetes.io/job-completion-index"
FLAGS = {
    PREFIX + "retriable-in-group": "is_retriable",
    PREFIX + "pod-group-serving": "is_serving",
    PREFIX + "pod-group-fast-admission": "reserves_all",
}


def container(**requests):
    return {"name": "w", "resources": {"requests": requests}}


def template(*containers, **spec):
    return {"spec": {"containers": list(containers), **spec}}


def driver(sets, **annotations):
    """The driver of KEP-976's story 3, of 0 GPUs; `sets` are text, or what is to be JSON."""
    text = sets if isinstance(sets, str) else json.dumps(sets)
    return pod("driver", gpus=0, annotations={GROUP: "g", SETS: text, **annotations})


def two_sets(workers=3, shape=None):
    return [
        {"name": "driver", "count": 1},
        {
            "name": "workers",
            "count": workers,
            "template": shape or template(container(cpu="1", **{GPU: "8"})),
        },
    ]


def leaves_of(member: PodRecord) -> tuple[LeafSpec, ...]:
    """The pod sets that a driver declares."""
    return claim_of(member).said.leaves


# -- indices -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "index"),
    [
        pytest.param({POD_INDEX: "3"}, Index(3, is_across=True), id="of_the_group"),
        pytest.param({JOB_INDEX: "4"}, Index(4, is_across=True), id="of_the_job"),
        pytest.param({POD_INDEX: "3", JOB_INDEX: "4"}, Index(3, is_across=True), id="of_both"),
        pytest.param({}, None, id="of_neither"),
    ],
)
def test_the_number_of_a_pod_counts_across_its_group(labels, index):
    assert claim_of(pod("p", labels=labels, annotations=group("g", 8))).index == index


# -- flags ---------------------------------------------------------------------------------------


def test_a_pod_that_says_nothing_lives_as_a_job_does():
    size = f"annotation {TOTAL}"
    assert claim_of(pod("p", annotations=group("g", 2))).said == Said(pods=2, where=size)
    lives = {"is_retriable": True, "is_serving": False, "reserves_all": False, "spares": 0}
    assert {each.name: each.default for each in fields(Said) if each.name in lives} == lives


@pytest.mark.parametrize("key", FLAGS)
@pytest.mark.parametrize(
    ("text", "value"), [("true", True), ("false", False), ("True", True), ("0", False)]
)
def test_flags_are_booleans_as_go_spells_them(key, text, value):
    said = claim_of(pod("p", annotations={**group("g", 2), key: text})).said
    assert getattr(said, FLAGS[key]) is value


@pytest.mark.parametrize("key", FLAGS)
@pytest.mark.parametrize("text", ["", "yes", "FALSCH", "2"])
def test_a_flag_that_is_no_boolean_is_told_with_its_value(key, text):
    assert flaw_of(pod("p", annotations={**group("g", 2), key: text})) == (
        f"pod default/p: metadata.annotations[{key}]: "
        f'Invalid value: "{text}": must be a boolean value'
    )


def test_spare_pods_are_a_whole_number():
    said = claim_of(pod("p", annotations={**group("g", 2), SPARES: "2"})).said
    assert said == Said(pods=2, where=f"annotation {TOTAL}", spares=2)


@pytest.mark.parametrize("text", ["0", "86400"])
def test_a_pod_says_how_long_places_wait_for_pods_to_come(text):
    said = claim_of(pod("p", annotations={**group("g", 2), ABSENT: text})).said
    assert said == Said(pods=2, where=f"annotation {TOTAL}", absent_seconds=int(text))


@pytest.mark.parametrize(("text", "ends_together"), [("single", False), ("all", True)])
def test_a_pod_says_what_of_its_gang_ends_when_it_is_preempted(text, ends_together):
    said = claim_of(pod("p", annotations={**group("g", 2), DISRUPTION: text})).said
    assert said == Said(pods=2, where=f"annotation {TOTAL}", ends_together=ends_together)


@pytest.mark.parametrize("text", ["", "-1", "1.5", "two", "٣", "101", "1000000"])
def test_spare_pods_that_are_no_whole_number_are_told_with_their_value(text):
    assert flaw_of(pod("p", annotations={**group("g", 2), SPARES: text})) == (
        f"pod default/p: metadata.annotations[{SPARES}]: "
        f'Invalid value: "{text}": must be a whole number from 0 to 100'
    )


# -- story 3: the driver declares its workers ----------------------------------------------------


def test_story_3_the_group_is_as_large_as_the_declared_sets_together():
    claim = claim_of(driver(two_sets(workers=10)))
    assert claim.gang == GangKey("default", "g", "group")
    assert (claim.said.pods, claim.said.where) == (11, f"annotation {SETS}")


YAML = f"""\
- name: driver
  count: 1
- name: workers
  count: 3
  template:
    spec:
      containers:
      - name: w
        resources:
          requests: {{cpu: 1, {GPU}: 8}}
"""


def test_story_3_yaml_means_what_json_means():
    assert leaves_of(driver(YAML))[1].like.pod.request == ((("cpu", 1000), (GPU, 8), ("pods", 1)))
    from_yaml, from_json = (leaves_of(driver(sets))[1] for sets in (YAML, two_sets()))
    assert (from_yaml.name, from_yaml.pods) == (from_json.name, from_json.pods)
    assert from_yaml.like.pod.request == from_json.like.pod.request


@pytest.mark.parametrize(
    "spelled",
    [
        pytest.param({"requests": {"cpu": "250m"}}, id="short"),
        pytest.param(
            {"requests": {"cpu": "1"}, "resources": {"requests": {"cpu": "250m"}}},
            id="beside_that_of_kubernetes_which_counts",
        ),
    ],
)
def test_story_3_the_keps_own_spelling_of_requests_is_understood(spelled):
    found = leaves_of(driver(two_sets(shape=template({"name": "worker", **spelled}))))[1]
    assert found.like.pod.request == (("cpu", 250), ("pods", 1))


# The manifest in the KEP mixes YAML's two styles, which YAML itself does not allow.
AS_PRINTED = """\
[
  {
    name: workers,
    count: 10,
    template:
      spec:
        containers:
          - name: worker
  }
]
"""


def test_story_3_the_text_printed_in_the_kep_is_no_yaml_and_the_line_is_told():
    assert "neither JSON nor YAML, line 6: " in flaw_of(driver(AS_PRINTED))


@pytest.mark.parametrize("empty", [{}, {"template": {}}, {"template": None}])
def test_story_3_a_template_left_empty_is_like_the_driver_itself(empty):
    member = driver([{"name": "all", "count": 4, **empty}], **{REQUIRED: RACK})
    (found,) = leaves_of(member)
    assert found.like.pod is member
    assert found.constraint == Constraint(required=RACK)


def test_story_3_a_template_without_topology_annotations_takes_the_drivers():
    annotations = {REQUIRED: RACK, SLICE_LEVEL: RACK, SLICE_SIZE: "2"}
    found = leaves_of(driver(two_sets(workers=4), **annotations))[1]
    assert found.constraint == Constraint(required=RACK)
    assert found.slices == (Slice(2, RACK),)


def test_story_3_a_template_with_topology_annotations_keeps_its_own():
    own = {"metadata": {"annotations": {PREFERRED: BLOCK}}, **template(container(cpu="1"))}
    found = leaves_of(driver(two_sets(shape=own), **{REQUIRED: RACK}))[1]
    assert found.constraint == Constraint(preferred=BLOCK)


def test_story_3_a_template_says_where_its_pods_may_run():
    shape = template(container(cpu="1"), nodeSelector={"pool": "gpu"})
    assert leaves_of(driver(two_sets(shape=shape)))[1].like.pod.shape.selector == (("pool", "gpu"),)


def test_story_3_the_driver_is_of_the_set_without_a_template():
    sets = list(reversed(two_sets()))
    assert claim_of(driver(sets)).leaf == "driver"


def test_story_3_where_every_set_has_a_template_the_driver_is_of_the_one_like_it():
    sets = [{**each, "template": template(container(cpu="1"))} for each in two_sets()]
    claim = claim_of(driver(sets))
    assert claim.leaf == "driver"
    assert claim.said.pods == sum(each["count"] for each in sets)


def test_story_3_a_driver_that_declares_its_workers_only_is_beside_them():
    (workers,) = two_sets()[1:]
    claim = claim_of(driver([workers]))
    assert claim.said.pods == workers["count"] + 1
    assert claim.leaf not in (workers["name"], "")
    assert [leaf.pods for leaf in claim.said.leaves] == [1, workers["count"]]


def test_story_3_a_total_count_must_be_what_the_sets_declare():
    sets = two_sets()
    pods = sum(each["count"] for each in sets)
    assert claim_of(driver(sets, **{TOTAL: str(pods)})).said.pods == pods
    assert f'Invalid value: "{pods + 1}": must be {pods}, the pods that' in flaw_of(
        driver(sets, **{TOTAL: str(pods + 1)})
    )


@pytest.mark.parametrize("where", ["labels", "annotations"])
def test_story_3_a_worker_names_its_set_and_no_size(where):
    said = {"labels": {GROUP: "g"}, "annotations": {}}
    said[where] = {**said[where], ROLE: "workers"}
    claim = claim_of(pod("w0", labels=said["labels"], annotations=said["annotations"]))
    assert claim.leaf == "workers"
    assert claim.said.pods is None


def test_a_member_that_names_neither_size_nor_set_is_told_what_is_missing():
    assert flaw_of(pod("w0", labels={GROUP: "g"})) == (
        f"pod default/w0: metadata.annotations[{TOTAL}]: Required value: "
        f"both the '{TOTAL}' annotation and the '{GROUP}' label should be set"
    )


# -- story 3: what cannot be meant ---------------------------------------------------------------


def one(**changes):
    return json.dumps([{"name": "workers", "count": 2, **changes}])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("", "Expected `array`, got `null`", id="nothing"),
        pytest.param("three workers", "Expected `array`, got `str`", id="prose"),
        pytest.param("{}", "Expected `array`, got `object`", id="no_list"),
        pytest.param("[]", "must have 1 to 18 sets", id="no_set"),
        pytest.param("[1]", "$[0]", id="a_set_that_is_a_number"),
        pytest.param('[{"name": "w"}]', "missing required field `count`", id="no_count"),
        pytest.param('[{"count": 1}]', "missing required field `name`", id="no_name"),
        pytest.param(one(count="2"), "$[0].count", id="count_in_quotes"),
        pytest.param(one(count=1.5), "$[0].count", id="half_a_pod"),
        pytest.param(one(count=0), "from 1 to 100000, got 0", id="zero"),
        pytest.param(one(count=-1), "from 1 to 100000, got -1", id="negative"),
        pytest.param(one(count=10**9), "from 1 to 100000, got 1000000000", id="enormous"),
        pytest.param(one(name=""), "must be a DNS label", id="empty_name"),
        pytest.param(one(name="Workers"), "must be a DNS label", id="capital_letters"),
        pytest.param(one(name="w" * 64), "must be a DNS label", id="long_name"),
        pytest.param(one(template="pod"), "template: ", id="template_in_words"),
        pytest.param(one(template={"spec": 1}), "template: ", id="spec_that_is_a_number"),
        pytest.param(
            one(template=template(container(cpu="-5"))), "spec.containers[0]", id="negative_cpu"
        ),
        pytest.param(
            one(template={"metadata": {"annotations": {REQUIRED: "no key"}}}),
            'Invalid value: "no key": must be the key of a node label',
            id="no_level",
        ),
        pytest.param("- name: w\n  count: ]", "line 2: ", id="broken_yaml"),
        pytest.param("- {name: w, count: 1:30}", "$[0].count", id="a_number_in_base_60"),
        pytest.param("- {name: w, count: 0x10}", "$[0].count", id="a_number_in_base_16"),
        pytest.param("- {name: w, count: 1_0}", "$[0].count", id="a_number_with_an_underscore"),
        pytest.param(
            f"- name: w\n  count: 1 # {'x' * 4_096}",
            "characters of YAML: more than 2048 have to be JSON",
            id="long_yaml",
        ),
        pytest.param(
            one(template={"x": "y" * 65_536}), "must have at most 65536 characters", id="too_long"
        ),
        pytest.param(
            one(template={"x": [{}] * 4_096}),
            "must have at most 4096 objects, got 4098",
            id="too_many_objects",
        ),
        pytest.param(
            json.dumps([{"name": "w", "count": 1}] * 2), "two sets have the same name", id="twice"
        ),
        pytest.param(
            json.dumps([{"name": f"w{i}", "count": 50_001} for i in range(2)]),
            "at most 100000 pods together, got 100002",
            id="enormous_together",
        ),
        pytest.param(
            json.dumps([{"name": f"w{i}", "count": 1} for i in range(19)]),
            "must have 1 to 18 sets",
            id="nineteen_sets",
        ),
    ],
)
def test_pod_group_sets_that_cannot_be_meant_name_pod_annotation_and_reason(text, said):
    flaw = flaw_of(driver(text))
    shown = json.dumps(text if len(text) <= 256 else f"{text[:256]}…", ensure_ascii=False)
    where = f"pod default/driver: metadata.annotations[{SETS}]: Invalid value: {shown}: "
    assert flaw.startswith(where)
    assert said in flaw.removeprefix(where)
    assert len(flaw) < 1024


@pytest.mark.parametrize(
    ("text", "pods"),
    [
        pytest.param(one().ljust(65_536), 2, id="the_longest_text"),
        pytest.param(one(count=100_000), 100_000, id="the_most_pods"),
        pytest.param(one(count=1), 1, id="one_pod"),
        pytest.param(one(name="w"), 2, id="a_name_of_one_letter"),
        pytest.param(one(name="w" * 63), 2, id="the_longest_name"),
        pytest.param("- {name: w, count: 2}".ljust(2_048), 2, id="the_longest_yaml"),
    ],
)
def test_as_much_as_a_driver_may_declare_is_read(text, pods):
    assert [leaf.pods for leaf in leaves_of(driver(text))] == [pods]


@pytest.mark.parametrize(
    ("counts", "pods"),
    [
        pytest.param([1] * 18, 18, id="the_most_sets"),
        pytest.param([60_000, 40_000], 100_000, id="the_most_pods_together"),
    ],
)
def test_as_many_sets_and_pods_as_a_group_may_have_are_read(counts, pods):
    sets = [{"name": f"w{at}", "count": count} for at, count in enumerate(counts)]
    leaves = leaves_of(driver(json.dumps(sets)))
    assert [leaf.pods for leaf in leaves] == counts
    assert sum(counts) == pods


def test_as_many_objects_as_templates_may_have_are_read():
    whole = template(container(cpu="1"))
    so_far = one(template={**whole, "x": []}).count("{")
    leaves = leaves_of(driver(one(template={**whole, "x": [{}] * (4_096 - so_far)})))
    assert [leaf.pods for leaf in leaves][-1] == 2
    assert "4096 objects, got 4097" in flaw_of(
        driver(one(template={**whole, "x": [{}] * (4_097 - so_far)}))
    )


def test_yaml_a_character_longer_than_it_may_be_has_to_be_json():
    assert "2049 characters of YAML" in flaw_of(driver("- {name: w, count: 2}".ljust(2_049)))


def laughs(levels):
    """A text of a few lines that means ten to the power of `levels` words."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [
        f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, levels)
    ]
    inner = "\n      ".join(lines)
    return f"- name: w\n  count: 1\n  template:\n    spec:\n      {inner}"


HOSTILE = [
    pytest.param(f"- {{name: w, count: {'1:' * 1_000}1.5}}", id="a_fraction_in_base_60"),
    pytest.param(f"- {{name: w, count: {'1:' * 2_000}1}}", id="a_large_number_in_base_60"),
    pytest.param(f"- {{name: w, count: {'1:' * 100_000}1}}", id="an_enormous_one"),
    pytest.param(laughs(12), id="billions_of_words"),
    pytest.param("- &a [*a]", id="a_list_in_itself"),
    pytest.param(f"- {{name: w, count: {'1' * 5000}}}", id="a_number_of_5000_digits"),
    pytest.param("- {name: !!bool x, count: 1}", id="a_tag_that_does_not_hold"),
    pytest.param("- !!python/object/apply:os.getcwd []", id="a_tag_that_calls"),
    pytest.param("- {name: w, count: 1, template: {spec: {? ~ : 1}}}", id="a_key_that_is_null"),
    pytest.param("- {name: w, count: 1, template: {spec: {? [a] : 1}}}", id="a_key_that_is_a_list"),
    pytest.param("[" * 5_000, id="deep"),
    pytest.param("[" * 5_000 + "]" * 5_000, id="deep_json"),
    pytest.param('[{"name": "w", "count": 1, "template": ' + '{"a":' * 5_000, id="deep_template"),
    pytest.param("--- []\n--- []", id="two_documents"),
    pytest.param("\x00", id="nul"),
    pytest.param('["\ud800"]', id="half_a_character"),
    pytest.param("- {name: w, count: .nan}", id="not_a_number"),
]


@pytest.mark.parametrize("word", ["2026-13-45", "yes", "0o7", "1e3", ".inf", "1:30", "<<"])
def test_what_yaml_has_beyond_json_is_plain_text(word):
    text = f"- {{name: w, count: 2, template: {{metadata: {{name: {word}, annotations: {{}}}}}}}}"
    (leaf,) = leaves_of(driver(f"- {{name: driver, count: 1}}\n{text}"))[1:]
    assert leaf.like.pod.name == word


def nested(levels):
    """YAML with so many collections in each other, the list of sets and its set among them."""
    inner = levels - 3
    return f"- {{name: w, count: 1, template: {{more: {'[' * inner}{']' * inner}}}}}"


def test_yaml_may_nest_a_hundred_deep_and_no_deeper():
    assert [leaf.name for leaf in leaves_of(driver(nested(100)))][1:] == ["w"]
    assert "nested deeper than 100" in flaw_of(driver(nested(101)))


@pytest.mark.timeout(10)
@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_pod_group_sets_are_a_mistake_and_no_crash(text):
    assert len(flaw_of(driver(text))) < 1024

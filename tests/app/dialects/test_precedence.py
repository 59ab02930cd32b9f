"""Whose word counts of a pod that two vocabularies claim: every pair of them, as README's table."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations, product

import msgspec
import pytest

from app.dialects.kai.pod_groups import decode_pod_group as of_kai
from app.dialects.registry import DIALECTS
from app.dialects.volcano.pod_groups import decode_pod_group as of_volcano
from app.kube.core.objects import Owner, PodRecord
from app.settings import EngineOptions
from tests.app.dialects.grove import objects as grove
from tests.app.dialects.kai import objects as kai
from tests.app.dialects.native import objects as native
from tests.app.dialects.volcano import workloads as volcano
from tests.cluster import RACK
from tests.records import pod

ON = native.ON


@dataclass(frozen=True)
class Words:
    """What stands on a pod."""

    where: str
    """The field that a message names."""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    pod_group: str = ""


# By the source of the gang: what a user writes to have pods placed together, …
ASKED = {
    "grove": Words(
        "metadata.labels[grove.io/podgang]",
        {"grove.io/podgang": "gang", "grove.io/podclique": "workers"},
    ),
    "native": Words("spec.schedulingGroup.podGroupName", pod_group="gang"),
    "group": Words(
        "metadata.labels[kueue.x-k8s.io/pod-group-name]",
        {"kueue.x-k8s.io/pod-group-name": "gang"},
        {"kueue.x-k8s.io/pod-group-total-count": "2"},
    ),
    "volcano": Words(
        f"metadata.annotations[{volcano.TOPOLOGY_MODE}]",
        {},
        {volcano.GROUP_NAME: "gang", volcano.TOPOLOGY_MODE: "hard"},
    ),
    "kai": Words(
        "metadata.annotations[kai.scheduler/topology]",
        {},
        {kai.GROUP_NAME: "gang", "kai.scheduler/topology": "net"},
    ),
}
# … and what controllers write on pods whose user has asked for nothing.
NAMED = {
    "native": Words("", pod_group="named"),
    # Kubeflow's operator writes both.
    "volcano": Words("", {}, {volcano.GROUP_NAME: "named", volcano.TASK: "worker"}),
    "kai": Words("", {}, {kai.GROUP_NAME: "named"}),
}
QUEUED = Words("", {"kueue.x-k8s.io/queue-name": "team"})
# Operators of these repeat what they say in the words of others.
SPEAKS_FOR = {"grove": ("native", "volcano", "kai")}


def saying(*words: Words, **more: object) -> PodRecord:
    """A pod with all of these words on it."""
    made = pod(
        "p",
        labels={key: value for each in words for key, value in each.labels.items()},
        annotations={key: value for each in words for key, value in each.annotations.items()},
        **more,
    )
    return msgspec.structs.replace(made, pod_group="".join(each.pod_group for each in words))


LEVEL = {"kueue.x-k8s.io/podset-required-topology": RACK}
NATIVE_GROUP = native.group("gang", 2, key=RACK)


@pytest.mark.parametrize("source", ASKED)
def test_each_vocabulary_alone_has_its_pods(source):
    claim = ON.claim(saying(ASKED[source]))
    assert (claim.gang.source, claim.gang.name) == (source, "gang")


@pytest.mark.parametrize(("first", "second"), list(combinations(ASKED, 2)))
def test_of_two_that_a_user_has_asked_in_neither_counts(first, second):
    claim = ON.claim(saying(ASKED[first], ASKED[second]), (NATIVE_GROUP,))
    assert (claim.gang.source, claim.gang.name) == (first, "gang")
    if second in SPEAKS_FOR.get(first, ()):
        assert claim.flaw == ""
        return
    if (first, second) == ("native", "group"):  # it reads Kueue's words itself
        told = "may not be set together with kueue.x-k8s.io/pod-group-name, which names pod group"
        assert claim.flaw.startswith(f"pod default/p: {ASKED[first].where}: Forbidden: {told} gang")
        return
    assert claim.flaw == (
        f"pod default/p: {ASKED[second].where}: Forbidden:"
        f" may not be set together with {ASKED[first].where}"
    )


@pytest.mark.parametrize(
    ("asked", "named"), [pair for pair in product(ASKED, NAMED) if pair[0] != pair[1]]
)
def test_what_a_user_asks_for_counts_before_what_a_controller_has_written(asked, named):
    claim = ON.claim(saying(ASKED[asked], NAMED[named]))
    if (asked, named) == ("group", "native"):
        assert claim.gang.source == "native"
        assert "may not be set together with kueue.x-k8s.io/pod-group-name" in claim.flaw
        return
    if asked == "native":  # without a level in its PodGroup: a Job of anybody may be in one
        assert (claim.gang.source, claim.flaw) == ("native", "")
        return
    assert (claim.gang.source, claim.gang.name, claim.flaw) == (asked, "gang", "")


@pytest.mark.parametrize(("first", "second"), list(combinations(NAMED, 2)))
def test_of_two_that_controllers_have_written_the_first_counts(first, second):
    claim = ON.claim(saying(NAMED[first], NAMED[second]))
    assert (claim.gang.source, claim.gang.name, claim.flaw) == (first, "named", "")


@pytest.mark.parametrize("others", [ASKED, NAMED])
def test_a_queue_name_alone_counts_last(others):
    assert ON.claim(saying(QUEUED)).gang.source == "pod"
    for source, words in others.items():
        claim = ON.claim(saying(QUEUED, words))
        assert (claim.gang.source, claim.flaw) == (source, "")


def naming(*names):
    """A PodGang that names these pods."""
    return grove.gang("named", grove.pod_group("workers", 1, names=names))


@pytest.mark.parametrize("words", [*ASKED.values(), *NAMED.values()])
def test_what_a_pod_says_itself_counts_before_a_pod_gang_that_names_it(words):
    its = saying(words)
    objects = (NATIVE_GROUP, naming("p"))
    assert ON.claim(its, objects) == ON.claim(its, (NATIVE_GROUP,))
    assert ON.claim(its, objects).gang.name in ("gang", "named")
    assert ON.claim(its, objects).leaf != "workers" or words is ASKED["grove"]


def test_a_pod_gang_has_the_pods_that_it_names_and_that_say_nothing_but_their_queue():
    for its in (saying(), saying(QUEUED)):
        claim = ON.claim(its, (naming("p"),))
        assert (claim.gang.source, claim.leaf, claim.flaw) == ("grove", "workers", "")
        assert ON.may_be_named(its)


def test_a_vcjob_is_what_a_user_asks_for():
    vcjob = Owner("batch.volcano.sh/v1alpha1", "Job", "train", "u")
    claim = ON.claim(saying(NAMED["volcano"], ASKED["group"], owner=vcjob))
    assert "annotations[scheduling.k8s.io/group-name]: Forbidden" in claim.flaw


def test_levels_in_kueues_words_belong_to_a_native_pod_group():
    claim = ON.claim(saying(ASKED["native"], Words("", {}, LEVEL)), (NATIVE_GROUP,))
    assert (claim.gang.source, claim.flaw) == ("native", "")
    assert claim.said.constraint.required == RACK


def test_a_level_in_kueues_words_on_a_pod_that_is_in_a_pod_gang_is_refused():
    claim = ON.claim(saying(ASKED["grove"], Words("", {}, LEVEL)))
    assert claim.gang.source == "grove"
    (key,) = LEVEL
    assert f"metadata.annotations[{key}]: Forbidden" in claim.flaw
    assert "grove.io/podgang" in claim.flaw


def test_a_pod_group_that_requests_a_level_is_no_controllers_doing():
    """Those that controllers make for any pod say how many start, and nothing else."""
    level = Words("", {}, LEVEL)
    tier = volcano.network_topology(1)
    made = {
        "volcano": (
            of_volcano(msgspec.json.encode(_stored(volcano.pod_group("named", 2)))),
            of_volcano(msgspec.json.encode(_stored(volcano.pod_group("named", 2, topology=tier)))),
        ),
        "kai": (
            of_kai(msgspec.json.encode(kai.pod_group("named", 2))),
            of_kai(msgspec.json.encode(kai.pod_group("named", 2, on=kai.within("rack")))),
        ),
    }
    for source, (counting, asking) in made.items():
        its = saying(NAMED[source], level)
        assert ON.claim(its, (counting,)).gang.source == "pod"
        assert ON.claim(its, (counting,)).flaw == ""
        told = ON.claim(its, (asking,)).flaw
        key = next(iter(NAMED[source].annotations))
        assert f"metadata.annotations[{key}]: Forbidden: may not be set together with" in told


def _stored(made: dict) -> dict:
    metadata = {"namespace": "default", "uid": "u", "resourceVersion": "1", **made["metadata"]}
    return {**made, "metadata": metadata}


def test_objects_of_every_vocabulary_that_names_a_pod_are_asked_for():
    its = saying(NAMED["volcano"], NAMED["kai"], QUEUED)
    assert [key.source for key in ON.sorted_by(its)] == ["volcano", "kai"]
    repeated = saying(ASKED["grove"], *NAMED.values())
    assert [key.source for key in ON.sorted_by(repeated)] == ["grove"]


def test_the_webhook_refuses_a_template_in_the_words_of_two():
    template = saying(ASKED["kai"], ASKED["group"])
    paths = [flaw.path for flaw in ON.rules(template, 2)]
    assert paths == [ASKED["kai"].where]
    assert list(ON.rules(saying(ASKED["group"]), 2)) == []
    assert list(ON.rules(saying(ASKED["group"], NAMED["kai"], QUEUED), 2)) == []


# -- by scheduler ----------------------------------------------------------------------------------


def only(*chosen: tuple[str, str]):
    """The vocabularies of an operator who has set this."""
    return DIALECTS.configured(EngineOptions(scheduler_vocabularies=chosen))


def test_pods_of_a_scheduler_that_others_share_are_read_in_what_is_set_alone():
    ours = only(
        ("default-scheduler", "grove"), ("kai-scheduler", "grove"), ("kai-scheduler", "kai")
    )
    for source, words in ASKED.items():
        if source == "native":
            continue  # off: kube-scheduler's own
        assert ours.claim(saying(words)).gang.source == source
        shared = saying(words, scheduler="default-scheduler")
        assert (ours.claim(shared) is not None) == (source == "grove")
        assert bool(ours.sorted_by(shared)) == (source == "grove")
        assert ours.may_be_named(shared) == (source == "grove")
        of_kai = saying(words, scheduler="kai-scheduler")
        assert ours.claim(of_kai).gang.source == (source if source == "grove" else "kai")


def test_rules_of_vocabularies_that_are_not_read_refuse_nothing():
    wrong = Words("", {}, {"kueue.x-k8s.io/podset-slice-size": "x"})
    ours = only(("default-scheduler", "grove"))
    assert list(ours.rules(saying(wrong), 1)) != []
    assert list(ours.rules(saying(wrong, scheduler="default-scheduler"), 1)) == []


VOLCANO_GROUP = ("scheduling.volcano.sh", "PodGroup")
KAI_GROUP = ("scheduling.run.ai", "PodGroup")


@pytest.mark.parametrize(
    ("schedulers", "chosen", "is_checked"),
    [
        pytest.param("corral", (), {VOLCANO_GROUP, KAI_GROUP}, id="nothing_is_set"),
        pytest.param("corral", (("corral", "kai"),), {KAI_GROUP}, id="one_scheduler_and_its_own"),
        pytest.param("corral", (("corral", "native"),), set(), id="one_without_such_objects"),
        pytest.param(
            "corral,kai-scheduler",
            (("corral", "volcano"), ("kai-scheduler", "kai")),
            {VOLCANO_GROUP, KAI_GROUP},
            id="each_has_one",
        ),
        pytest.param(
            "corral, kai-scheduler",
            (("kai-scheduler", "kai"),),
            {VOLCANO_GROUP, KAI_GROUP},
            id="one_of_two_is_read_in_all",
        ),
        pytest.param(
            "corral",
            (("corral", "kai"), ("other", "volcano")),
            {KAI_GROUP},
            id="of_a_scheduler_that_is_not_ours",
        ),
        pytest.param("", (("corral", "kai"),), {VOLCANO_GROUP, KAI_GROUP}, id="any_scheduler"),
    ],
)
def test_objects_are_checked_if_pods_of_some_scheduler_of_ours_are_read_in_their_vocabulary(
    schedulers, chosen, is_checked
):
    options = EngineOptions(scheduler_name=schedulers, scheduler_vocabularies=chosen)
    ours = DIALECTS.configured(options)
    assert {each for each in (VOLCANO_GROUP, KAI_GROUP) if ours.object_rules(*each)} == is_checked


def test_a_vocabulary_that_there_is_not_is_named():
    with pytest.raises(ValueError, match="default-scheduler=groove: expected one of grove, kai"):
        only(("default-scheduler", "groove"))

"""What the core makes of requests that Kueue cuts short or refuses."""

from __future__ import annotations

import pytest

from tests.parity.kueue.cases import read
from tests.parity.kueue.core.answers import answers
from tests.parity.kueue.core.questions import Question, groups_of, has_remainder, workers_of
from tests.parity.kueue.written import as_case, nodes, scenario
from tests.parity.tally import recorded
from topology import InvalidRequest, NoFit, PodSet


@pytest.mark.slow
def test_what_kueue_would_cut_short_is_refused_when_asked_in_full() -> None:
    asked = 0
    for case in read(recorded("kueue", "random_assign.sample.jsonl.gz", 3000)):
        if not has_remainder(case.scenario):
            continue
        question = Question(case.scenario)
        for group in groups_of(case.scenario):
            for member in question.gang([group]).pod_sets():
                count = workers_of(group)["count"]
                if member.slices and count % member.slices[0].pods:
                    asked += 1
                    with pytest.raises(InvalidRequest, match="must evenly divide"):
                        PodSet("w", count, member.request, slices=member.slices)
    assert asked > 100


@pytest.mark.slow
def test_where_kueue_refuses_since_a_second_node_is_gone_both_are_replaced() -> None:
    replaced = refused = 0
    for case in read(recorded("kueue", "random_replace_elastic.sample.jsonl.gz", 800)):
        for name, answer in case.expected.items():
            if not isinstance(answer, str) or not answer.startswith("Cannot replace"):
                continue
            [pod_set] = [one for one in case.scenario["podSets"] if one["name"] == name]
            question = Question(case.scenario)
            domains = question.assigned(pod_set)
            assert domains is not None
            kept = {name: question.on_slots(question.stays(domains))}
            found = question.complete([pod_set | {"count": sum(n for _, n in domains)}], kept)
            if isinstance(found, NoFit):
                refused += 1
                continue
            replaced += 1
            [placed] = found.pod_sets
            here = dict(placed.slots)
            assert all(here[slot] >= pods for slot, pods in kept[name])
            assert all(question.cluster.capacity.is_open[slot] for slot in here)
            assert placed.pods == sum(pods for _, pods in domains)
    assert (replaced > 0, replaced + refused) == (True, 30)


def test_pods_that_one_group_keeps_are_none_of_the_next_ones() -> None:
    """After a group that keeps three pods, four pods in slices of two are four."""
    asked = scenario({"unconstrained": True}, 3, ElasticJobsViaWorkloadSlicesWithTAS=True)
    asked["nodes"] = nodes(k0={"n1": 4}, k1={"n3": 3})
    [first] = asked["podSets"]
    sliced = {"podSetSliceRequiredTopology": "l/k", "podSetSliceSize": 2}
    asked["podSets"] = [
        first | {"previousAssignment": {"Domains": [{"Values": ["n1"], "Count": 3}]}},
        first | {"name": "next", "topologyRequest": sliced, "count": 4},
    ]
    assert answers(as_case(asked, None)) == {
        "p": [(("n1",), 3)],
        "next": 'topology "default" allows to fit only 1 out of 2 slice(s)',
    }

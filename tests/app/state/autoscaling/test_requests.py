"""Which gangs ask by a ProvisioningRequest, and what becomes of it: one rule of 4b a test.

Who serves the request is the test itself; `tests/autoscaling/test_gangs.py` has an autoscaler.
"""

from __future__ import annotations

import pytest

from app.dialects.provisioning import keys
from app.explain.gangs import view
from app.state.autoscaling import requests
from tests.autoscaling.growing import Growing
from tests.autoscaling.objects import ATOMIC_SCALE_UP
from tests.cluster import GPU, RACK, Object, node, pod
from tests.workloads import asking, behind_gate, members

REQUEST, TEMPLATE = "ProvisioningRequest", "PodTemplate"
GKE = "queued-provisioning.gke.io"
PROVISIONED = "True/CapacityIsProvisioned"
ACCEPTED = "True/Accepted"


def gang(name: str = "g", pods: int = 4, **fields: object) -> list[Object]:
    annotations = {**asking(required=RACK), **fields.pop("annotations", {})}  # type: ignore[dict-item]
    return [behind_gate(each) for each in members(name, pods, annotations=annotations, **fields)]


def nodes(rack: str, number: int) -> list[Object]:
    return [node(f"{rack}-{n}", labels={RACK: rack}, gpus=8) for n in range(number)]


def world(*bodies: Object, **settings: object) -> Growing:
    made = Growing(**{"provisioning_class": ATOMIC_SCALE_UP, **settings})
    made.create(*bodies)
    return made


def asked(*bodies: Object, **settings: object) -> Growing:
    """A world whose gang has just made its request."""
    made = world(*(bodies or gang()), **settings)
    made.run(5)
    assert len(made.names(REQUEST)) == 1
    return made


def attempts(made: Growing) -> list[int]:
    return [int(name.rpartition("-")[2]) for name in made.names(REQUEST)]


# -- who asks ----------------------------------------------------------------------------------


def test_a_gang_makes_one_request_for_all_its_pods_and_no_mark():
    made = asked()
    (request,) = made.all(REQUEST)
    assert request["spec"]["provisioningClassName"] == ATOMIC_SCALE_UP
    assert [each["count"] for each in request["spec"]["podSets"]] == [4]
    made.say(Accepted=ACCEPTED)
    made.run(1000)
    assert made.marked() == []
    assert len(made.writes) == 3, made.writes


def test_without_a_class_a_gang_is_marked_and_nothing_is_read_or_written_of_requests():
    made = world(*gang(annotations={keys.CLASS: ATOMIC_SCALE_UP}), provisioning_class="")
    made.run(100)
    assert made.engine.settings.kinds == ("Pod", "Node", "Topology")
    assert made.writes == [f"mark g-{n}" for n in range(4)]


def test_with_needs_nodes_off_there_is_neither():
    made = world(*gang(), needs_nodes="off")
    made.run(100)
    assert made.writes == []


@pytest.mark.parametrize(
    ("default", "said", "class_name"),
    [
        pytest.param("*", None, "", id="any_and_the_pods_name_none"),
        pytest.param("*", "a.example", "a.example", id="any_and_the_pods_name_one"),
        pytest.param("b.example", "a.example", "a.example", id="the_pods_name_another"),
        pytest.param("b.example", "", "", id="the_pods_want_none"),
        pytest.param("b.example", None, "b.example", id="the_pods_say_nothing"),
    ],
)
def test_which_class_a_gang_asks_in(default, said, class_name):
    said = {} if said is None else {keys.CLASS: said}
    made = world(*gang(annotations=said), provisioning_class=default)
    made.run(10)
    found = [each["spec"]["provisioningClassName"] for each in made.all(REQUEST)]
    assert found == ([class_name] if class_name else [])
    assert made.marked() == ([] if class_name else [f"g-{n}" for n in range(4)])


def test_a_gang_that_is_made_again_and_wants_no_request_any_more_is_marked_and_its_request_goes():
    made = asked()
    made.say(Accepted=ACCEPTED, Provisioned="False/CapacityIsNotFound")
    made.run(10)
    for n in range(4):
        made.delete("Pod", f"g-{n}")
    made.create(*gang(annotations={keys.CLASS: ""}))
    made.run(30)
    assert len(made.marked()) == 4
    assert (made.names(REQUEST), made.names(TEMPLATE)) == ([], [])


def test_a_setting_that_asks_for_no_requests_any_more_ends_those_that_stand():
    """Only with no class at all are they not read any more."""
    made = asked()
    made.say(Accepted=ACCEPTED, Provisioned=PROVISIONED)
    made.restart(provisioning_class="*")
    made.run(30)
    assert len(made.marked()) == 4
    assert (made.names(REQUEST), made.names(TEMPLATE)) == ([], [])


def test_pods_that_name_different_classes_are_told_and_marked():
    pods = gang()
    pods[1]["metadata"]["annotations"][keys.CLASS] = "a.example"
    made = world(*pods)
    made.run(10)
    assert made.names(REQUEST) == []
    assert len(made.marked()) == 4
    (told,) = made.told("NodesNotRequested")
    assert "a.example" in told
    assert ATOMIC_SCALE_UP in told


def test_a_class_that_is_no_name_is_told_and_the_gang_marked():
    made = world(*gang(annotations={keys.CLASS: "Not_A_Class"}))
    made.run(10)
    assert (made.names(REQUEST), len(made.marked())) == ([], 4)
    assert "'Not_A_Class'" in made.told("NodesNotRequested")[0]


def test_a_gang_whose_owner_has_made_a_request_himself_is_his():
    made = world(*gang(annotations={keys.CONSUME: "his-own"}))
    made.run(10)
    assert made.names(REQUEST) == []


def test_a_gang_with_a_pod_without_our_gate_is_told_and_marked():
    pods = gang()
    del pods[0]["spec"]["schedulingGates"]
    made = world(*pods)
    made.run(10)
    assert made.names(REQUEST) == []
    assert made.told("NodesNotRequested")


def test_pods_of_two_kinds_are_two_pod_sets_but_for_gke_which_takes_one():
    pods = gang()
    pods[0]["spec"]["tolerations"] = [{"key": "leader", "operator": "Exists"}]
    made = world(*pods)
    made.run(5)
    (request,) = made.all(REQUEST)
    assert sorted(each["count"] for each in request["spec"]["podSets"]) == [1, 3]
    assert len(made.names(TEMPLATE)) == 2
    made = world(*pods, provisioning_class=GKE)
    made.run(5)
    assert (made.names(REQUEST), len(made.marked())) == ([], 4)
    assert GKE in made.told("NodesNotRequested")[0]


def test_an_incomplete_gang_asks_for_nothing():
    made = world(*gang(pods=8)[:7])
    made.run(300)
    assert made.writes == []


def test_so_many_wait_for_an_answer_and_the_first_in_the_queue_come_first():
    pods = [each for n in range(6) for each in gang(f"g{n}", priority=n)]
    made = world(*pods, provisioning_requests=2)
    made.run(5)
    first = made.names(REQUEST)
    assert len(first) == 2
    made.run(60)
    assert made.names(REQUEST) == first
    of = {keys.gang_uid(each.key): each.key.name for each in made.engine.gangs.by_key.values()}
    assert {of[name.split("-")[1]] for name in first} == {"g5", "g4"}
    for each in made.all(REQUEST):
        made.answer(each["metadata"]["name"], Accepted=ACCEPTED, Provisioned=PROVISIONED)
    made.run(5)
    assert {of[name.split("-")[1]] for name in made.names(REQUEST)} == {"g5", "g4", "g3", "g2"}
    assert made.marked() == []


def test_one_that_is_accepted_and_never_answered_keeps_its_turn_no_longer_than_a_refusal():
    """Some wait in a queue of their cloud for days, and say nothing until then."""
    made = asked(*gang("first"), provisioning_requests=1)
    made.say(Accepted=ACCEPTED)
    made.create(*gang("second"))
    made.run(200)
    assert len(made.names(REQUEST)) == 1
    made.run(200)
    assert len(made.names(REQUEST)) == 2
    assert made.marked() == []


# -- what it is made of ------------------------------------------------------------------------


def test_a_request_and_its_templates_end_with_what_makes_the_pods():
    pods = gang()
    job = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u-train"}
    for each in pods:
        each["metadata"]["ownerReferences"] = [{**job, "controller": True}]
    made = asked(*pods)
    (request,), (template,) = made.all(REQUEST), made.all(TEMPLATE)
    assert request["metadata"]["ownerReferences"] == [job]
    (owner,) = template["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == (REQUEST, request["metadata"]["uid"])


def test_bare_pods_own_their_request_all_of_them():
    (request,) = asked().all(REQUEST)
    owners = [(each["kind"], each["name"]) for each in request["metadata"]["ownerReferences"]]
    assert owners == [("Pod", f"g-{n}") for n in range(4)]


def test_free_nodes_of_racks_that_do_not_take_the_gang_are_excluded():
    made = asked(*nodes("r0", 2), *nodes("r1", 1), *gang())
    assert excluded(made) == ["r0-0", "r0-1", "r1-0"]


def test_many_free_nodes_are_excluded_by_their_label():
    many = [each for n in range(50) for each in nodes(f"r{n}", 3)]
    made = asked(*many, *gang())
    (term,) = terms(made)
    (line,) = term["matchExpressions"]
    assert (line["key"], line["operator"], len(line["values"])) == (RACK, "NotIn", 50)


def test_a_gang_without_a_required_level_excludes_nothing():
    pods = [behind_gate(each) for each in members("g", 4)]
    made = asked(*nodes("r0", 2), *pods)
    assert terms(made) == []


def test_taken_nodes_are_not_excluded_for_they_take_no_pod():
    taken = members("other", 1, numbers=[0])[0]
    taken["spec"]["nodeName"] = "r0-0"
    taken["metadata"]["annotations"] = {}
    made = asked(*nodes("r0", 2), taken, *gang())
    assert excluded(made) == ["r0-1"]


def terms(made: Growing) -> list[Object]:
    (template,) = made.all(TEMPLATE)
    affinity = template["template"]["spec"].get("affinity", {}).get("nodeAffinity", {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {})
    return list(required.get("nodeSelectorTerms", []))


def excluded(made: Growing) -> list[str]:
    (term,) = terms(made)
    assert all(line["operator"] == "NotIn" for line in term["matchFields"])
    return [name for line in term["matchFields"] for name in line["values"]]


# -- what becomes of it ------------------------------------------------------------------------


def test_a_request_that_nobody_accepts_is_withdrawn_and_the_gang_marked():
    made = asked()
    made.run(requests.ACCEPT_SECONDS - 10)
    assert (len(made.names(REQUEST)), made.marked()) == (1, [])
    made.run(30)
    assert (made.names(REQUEST), made.names(TEMPLATE)) == ([], [])
    assert made.marked() == [f"g-{n}" for n in range(4)]
    (told,) = made.told("NodesNotRequested")
    assert ATOMIC_SCALE_UP in told
    made.run(1000)
    assert made.names(REQUEST) == []
    first_mark = made.writes.index("mark g-0")
    assert first_mark < made.writes.index(f"delete {REQUEST} {next(iter(made.requests_ever()))}")


def test_where_there_are_no_requests_the_gang_is_marked_after_the_same_time():
    made = world(*gang(), is_served=False)
    made.run(requests.ACCEPT_SECONDS - 10)
    assert made.marked() == []
    made.run(60)
    assert len(made.marked()) == 4
    assert made.names(TEMPLATE) == [], "templates of a request that cannot be made go, too"
    assert max(made.ever.values()) == 1, "and not before"


def test_what_is_not_provisioned_waits_and_its_message_is_shown():
    made = asked()
    made.say(Accepted=ACCEPTED, Provisioned="False/CapacityIsNotFound")
    made.run(2000)
    assert (attempts(made), made.marked()) == ([1], [])
    (one,) = made.engine.gangs.by_key.values()
    shown = view(one, made.now, made.engine.books).needs_nodes
    assert shown is not None
    assert (shown.ask, shown.request) == ("request", made.names(REQUEST)[0])
    assert "CapacityIsNotFound" in shown.message


@pytest.mark.parametrize("answer", [{}, {"Provisioned": "False/CapacityIsNotFound"}])
def test_what_is_not_provisioned_for_long_is_told_once_and_what_helps(answer):
    """Of a gang on several racks, each a node group of its own, that is so for ever."""
    made = asked()
    made.say(Accepted=ACCEPTED, **answer)
    made.run(280)
    assert made.told("NodesNotProvided") == []
    made.run(2000)
    (told,) = made.told("NodesNotProvided")
    assert "one node group" in told
    assert keys.CLASS in told
    assert ("CapacityIsNotFound" in told) == bool(answer)


def all_fail(made: Growing) -> list[float]:
    """Every attempt fails as soon as it is there; how long it takes until the next one is."""
    times = []
    for attempt in range(1, requests.MOST_ATTEMPTS):
        made.say(Accepted=ACCEPTED, Failed="True/Expired")
        began = made.now
        while attempts(made) != [attempt + 1]:
            made.run(5)
            assert made.now < began + 2000
        times.append(made.now - began)
    made.say(Accepted=ACCEPTED, Failed="True/Expired")
    made.run(5)
    return times


def test_one_that_failed_is_followed_by_another_later_each_time_and_then_by_none():
    made = asked()
    assert [round(each / requests.RETRY_SECONDS) for each in all_fail(made)] == [1, 2, 4]
    before = len(made.writes)
    made.run(10_000)
    assert (attempts(made), made.marked()) == ([requests.MOST_ATTEMPTS], [])
    assert len(made.writes) == before
    assert len(made.names(TEMPLATE)) == 1
    assert len(made.told("NodesNotProvided")) == requests.MOST_ATTEMPTS


def test_one_that_failed_for_good_is_made_anew_once_somebody_deletes_it():
    made = asked()
    all_fail(made)
    made.run(600)
    made.delete(REQUEST, made.names(REQUEST)[0])
    made.run(30)
    assert attempts(made) == [1]


def test_one_that_somebody_deletes_before_it_is_answered_is_made_anew_and_holds_no_turn():
    made = asked(provisioning_requests=1)
    made.delete(REQUEST, made.names(REQUEST)[0])
    made.run(30)
    assert attempts(made) == [1]
    made.delete(REQUEST, made.names(REQUEST)[0])
    for n in range(4):
        made.delete("Pod", f"g-{n}")
    made.create(*gang("second"))
    made.run(60)
    assert attempts(made) == [1]


def test_a_booking_that_is_over_is_followed_by_another_attempt():
    made = asked()
    made.say(Accepted=ACCEPTED, Provisioned=PROVISIONED)
    made.run(600)
    assert attempts(made) == [1]
    made.say(Accepted=ACCEPTED, Provisioned=PROVISIONED, BookingExpired="True/TimeExpired")
    made.run(20)
    assert attempts(made) == [2]
    assert len(made.names(TEMPLATE)) == 1


def test_revoked_capacity_is_told_and_nothing_is_done():
    made = asked()
    made.say(Accepted=ACCEPTED, Provisioned=PROVISIONED, CapacityRevoked="True/Spot")
    before = len(made.writes)
    made.run(300)
    assert len(made.writes) == before
    assert "Spot" in made.told("NodesNotProvided")[0]


def test_conditions_that_are_not_known_mean_nothing():
    made = asked()
    made.say(Accepted=ACCEPTED, Sparkling="True/Why", Queued="False/Not")
    before = len(made.writes)
    made.run(1000)
    assert len(made.writes) == before


def test_found_nodes_in_two_racks_are_told_and_the_next_attempt_excludes_them():
    made = asked()
    made.create(*nodes("r0", 2), *nodes("r1", 2))
    made.say(Accepted=ACCEPTED, Provisioned="True/CapacityIsFound")
    made.run(100)
    assert attempts(made) == [2]
    assert excluded(made) == ["r0-0", "r0-1", "r1-0", "r1-1"]
    assert f"not in one {RACK}" in made.told("NodesNotProvided")[0]


def test_nodes_place_the_gang_whose_pods_say_that_they_take_them_and_the_request_goes():
    made = asked()
    (name,) = made.names(REQUEST)
    made.say(Accepted=ACCEPTED, Provisioned=PROVISIONED)
    made.create(*nodes("r0", 4))
    made.run(4)
    assert len(made.bound()) == 4
    for each in made.all("Pod"):
        said = each["metadata"]["annotations"]
        assert (said[keys.CONSUME], said[keys.CONSUME_CLASS]) == (name, ATOMIC_SCALE_UP)
    assert (made.names(REQUEST), made.names(TEMPLATE)) == ([], [])


def test_a_gang_that_makes_none_says_nothing_of_requests_on_its_pods():
    made = world(*nodes("r0", 4), *gang())
    made.run(20)
    assert len(made.bound()) == 4
    assert not any(keys.CONSUME in each["metadata"]["annotations"] for each in made.all("Pod"))


def test_a_gang_that_goes_takes_its_request_and_templates_with_it():
    made = asked()
    made.say(Accepted=ACCEPTED, Provisioned=PROVISIONED)
    for n in range(4):
        made.delete("Pod", f"g-{n}")
    made.run(3 * requests.AUDIT_SECONDS)
    assert (made.names(REQUEST), made.names(TEMPLATE)) == ([], [])


def test_a_pod_that_is_made_anew_at_once_leaves_the_request_and_one_that_is_not_ends_it():
    made = asked()
    made.say(Accepted=ACCEPTED)
    again = next(each for each in gang() if each["metadata"]["name"] == "g-3")
    made.delete("Pod", "g-3")
    made.run(requests.LINGER_SECONDS / 2)
    made.create(again)
    made.run(100)
    assert made.ever[f"{REQUEST}/{made.names(REQUEST)[0]}"] == 1
    made.delete("Pod", "g-3")
    made.run(2 * requests.LINGER_SECONDS)
    assert (made.names(REQUEST), made.names(TEMPLATE)) == ([], [])


def test_a_strangers_mark_on_a_gang_with_an_accepted_request_is_taken_back():
    made = asked()
    made.say(Accepted=ACCEPTED)
    made.run(5)
    made.mark("g-0")
    made.run(30)
    assert (made.marked(), attempts(made)) == ([], [1])


def test_what_others_have_made_is_left_alone():
    his = {"apiVersion": keys.API_VERSION, "kind": REQUEST, "spec": {"podSets": []}}
    made = world({**his, "metadata": {"name": "corral-like-1", "namespace": "default"}})
    made.create({"kind": TEMPLATE, "metadata": {"name": "mine-0", "namespace": "default"}})
    made.run(100)
    assert (made.writes, made.names(REQUEST)) == ([], ["corral-like-1"])


def test_templates_and_requests_of_a_gang_that_never_was_are_deleted():
    labels = {"labels": {keys.GANG_UID: "00ff00ff00ff00ff"}, "namespace": "default"}
    name = keys.request_name("00ff00ff00ff00ff", 1)
    made = world(
        {"kind": REQUEST, "metadata": {"name": name, **labels}, "spec": {"podSets": []}},
        {"kind": TEMPLATE, "metadata": {"name": f"{name}-0", **labels}},
    )
    made.run(3 * requests.AUDIT_SECONDS)
    assert (made.names(REQUEST), made.names(TEMPLATE)) == ([], [])


def test_thousands_that_belong_to_no_gang_are_deleted_a_few_hundred_at_a_time(monkeypatch):
    """Anybody may make what looks like ours in his namespace."""
    monkeypatch.setattr("app.state.autoscaling.shown_requests.MOST_LOOKED_AT", 16)
    uids = [f"{number:016x}" for number in range(100)]
    made = world(
        *(
            {
                "kind": REQUEST,
                "metadata": {"name": keys.request_name(uid, 1), "labels": {keys.GANG_UID: uid}},
                "spec": {},
            }
            for uid in uids
        ),
        *gang(),
    )
    for _ in range(60):
        before = len(made.names(REQUEST))
        made.run(1)
        assert before - len(made.names(REQUEST)) <= 16
    assert len(made.names(REQUEST)) == 1, "that of the gang"


def test_what_does_not_reach_the_api_server_is_sent_again_ever_later():
    made = world(*gang())
    made.is_away = True
    made.run(60)
    assert made.calls == 3, "at once, after 10 s, after 20 s more"
    made.is_away = False
    made.run(50)
    assert (len(made.names(REQUEST)), made.marked()) == (1, [])
    made.say(Accepted=ACCEPTED, Provisioned=PROVISIONED)
    made.is_away, made.calls = True, 0
    made.create(*nodes("r0", 4))
    made.run(300)
    assert len(made.bound()) == 4
    assert 4 <= made.calls <= 12
    made.is_away = False
    made.run(80)
    assert (made.names(REQUEST), made.names(TEMPLATE)) == ([], [])


def test_a_corral_that_follows_for_a_while_asks_once_it_leads_again():
    """Nothing of what it wants written is, and none of it was ever refused."""
    made = world(*gang())
    made.is_away = True
    made.run(3)
    made.engine.lead(is_leading=False, now=made.now)
    made.run(2 * requests.ACCEPT_SECONDS)
    assert made.told("NodesNotRequested") == []
    made.is_away = False
    made.engine.lead(is_leading=True, now=made.now)
    made.run(30)
    assert (attempts(made), made.marked()) == ([1], [])


def test_a_request_whose_making_was_cut_off_is_made_whole_and_no_more_than_a_few_times():
    made = asked()
    made.say(Accepted=ACCEPTED)
    made.delete(TEMPLATE, made.names(TEMPLATE)[0])
    made.run(30)
    (template,) = made.all(TEMPLATE)
    assert [each["kind"] for each in template["metadata"]["ownerReferences"]] == [REQUEST]
    for _ in range(20):
        if made.names(TEMPLATE):
            made.delete(TEMPLATE, made.names(TEMPLATE)[0])
        made.run(70)
    assert made.ever[f"{TEMPLATE}/{template['metadata']['name']}"] == 1 + requests.MOST_MENDED


def test_a_gang_that_is_placed_while_it_waits_for_its_turn_makes_none():
    made = world(*gang("first", priority=5), *gang("second"), provisioning_requests=1)
    made.run(5)
    made.is_scheduling = False
    made.create(*nodes("r0", 4), *nodes("r1", 4))
    made.run(5)
    for n in range(4):
        made.delete("Pod", f"first-{n}")
    made.run(5)
    assert len(made.requests_ever()) == 1


def test_the_turn_of_a_gang_that_goes_is_the_next_ones():
    made = world(*gang("first", priority=5), *gang("second"), provisioning_requests=1)
    made.run(20)
    assert len(made.requests_ever()) == 1
    for n in range(4):
        made.delete("Pod", f"first-{n}")
    made.run(3)
    assert len(made.requests_ever()) == 2


def test_nothing_is_remembered_of_gangs_that_are_gone():
    made = world()
    for turn in range(3):
        made.create(*gang(f"g{turn}"))
        made.run(20)
        for n in range(4):
            made.delete("Pod", f"g{turn}-{n}")
        made.run(100)
    held = made.engine.requests
    assert not held.shown
    assert (held._gang_at, held._turns._waiting, held._turns._unanswered) == ({}, {}, {})
    assert (held.shown._ending, held.shown._requests, held.shown._templates) == ({}, {}, {})


def test_a_request_for_fewer_pods_than_wait_is_followed_by_one_for_all():
    """A group of the same name is made again at once, and is larger."""
    made = asked()
    made.say(Accepted=ACCEPTED, Provisioned=PROVISIONED)
    for n in range(4):
        made.delete("Pod", f"g-{n}")
    made.create(*gang(pods=6))
    made.run(100)
    (request,) = made.all(REQUEST)
    assert [each["count"] for each in request["spec"]["podSets"]] == [6]
    assert "it is for 4 pods, and 6 need a node" in made.told("NodesNotProvided")[0]


def test_a_corral_that_begins_when_the_nodes_are_there_says_whose_they_are():
    made = asked()
    made.say(Accepted=ACCEPTED, Provisioned=PROVISIONED)
    made.create(*nodes("r0", 4))
    made.restart()
    (known,) = made.engine.gangs.by_key.values()
    assert known.ask.request, "before any gang is planned"
    made.run(20)
    assert len(made.bound()) == 4
    assert all(keys.CONSUME in each["metadata"]["annotations"] for each in made.all("Pod"))


def test_a_corral_that_begins_leaves_a_request_of_a_gang_that_waits_for_others_to_leave():
    """By its own clock that gang has not waited for long."""
    others = [pod(f"on-r0-{n}", requests={GPU: 8}, nodeName=f"r0-{n}") for n in range(4)]
    made = asked(*nodes("r0", 4), *others, *gang(), needs_nodes_seconds=1.0)
    made.say(Accepted=ACCEPTED)
    made._settings["needs_nodes_seconds"] = 500.0
    made.restart()
    made.run(200)
    assert made.ever[f"{REQUEST}/{made.names(REQUEST)[0]}"] == 1


def test_nodes_that_were_ordered_and_came_are_not_excluded_from_the_next_attempt():
    made = asked(*nodes("r1", 2), *gang())
    made.say(Accepted=ACCEPTED, Provisioned=PROVISIONED)
    made.create(*nodes("r0", 3))
    made.run(100)
    made.say(Accepted=ACCEPTED, Provisioned=PROVISIONED, BookingExpired="True/TimeExpired")
    made.run(10)
    assert attempts(made) == [2]
    assert excluded(made) == ["r1-0", "r1-1"]

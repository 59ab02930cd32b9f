"""What Corral writes on pods, and reads back after a restart."""

from __future__ import annotations

import pytest
from msgspec import structs

from app.dialects.corral import (
    BORN,
    GATE,
    MOST_LISTED,
    MOST_POD_SETS_TEXT,
    MOST_ROOM_TEXT,
    MOST_STUCK,
    MOST_SUCCEEDED_TEXT,
    NARROWED,
    NODES,
    is_narrowed,
    own_shape,
    pod_sets_from_text,
    pod_sets_text,
    room_from_text,
    room_text,
    stuck_from_text,
    succeeded_from_text,
    succeeded_text,
)
from app.kube.core.objects import Requirement, Shape, Term, Toleration
from tests.records import BLOCK, RACK, pod

OWN = Shape(
    selector=(("pool", "gpu"),),
    tolerations=(Toleration("k", "Exists", "", ""),),
    preferred=((1, Term(expressions=(Requirement("zone", "In", ("a",)),))),),
)
ZONE = Term(expressions=(Requirement("zone", "In", ("a", "b")),))
ON_NODES = tuple(Term(fields=(Requirement("metadata.name", "In", (on,)),)) for on in ("n1", "n2"))
# Not `<pod set>=<pods>`, separated by commas.
NO_PODS = [
    pytest.param("", id="empty"),
    pytest.param("workers", id="no_number"),
    pytest.param("=1", id="no_name"),
    pytest.param("workers=1,driver=one", id="a_word"),
    pytest.param("workers=-1", id="a_sign"),
    pytest.param("workers=٤", id="a_digit_of_another_script"),
    pytest.param("workers=1234567890", id="ten_digits"),
]


@pytest.mark.parametrize(
    ("own", "more", "how", "nodes"),
    [
        pytest.param(OWN, {}, None, None, id="not_narrowed"),
        pytest.param(OWN, {"terms": ON_NODES}, NODES, {"n1", "n2"}, id="to_nodes"),
        pytest.param(
            structs.replace(OWN, terms=(ZONE,)),
            {"selector": ((BLOCK, "b1"), (RACK, "r1"), ("pool", "gpu"))},
            f"{BLOCK},{RACK}",
            None,
            id="to_the_labels_of_a_domain",
        ),
    ],
)
def test_a_narrowed_pod_is_read_back_with_the_shape_its_owner_gave_it(own, more, how, nodes):
    annotations = {} if how is None else {NARROWED: how}
    narrowed = pod("p", shape=structs.replace(own, **more), annotations=annotations)
    assert own_shape(narrowed) == (own, nodes)


@pytest.mark.parametrize(
    ("annotations", "gates", "is_ours"),
    [
        pytest.param({}, (), False, id="by_no_one"),
        pytest.param({NARROWED: NODES}, (), True, id="as_its_gate_was_taken_off"),
        pytest.param({NARROWED: RACK}, (), True, id="to_a_domain"),
        pytest.param({NARROWED: NODES}, (GATE,), False, id="not_behind_its_gate"),
        pytest.param({BORN: NODES}, (), True, id="at_its_creation"),
        pytest.param({BORN: "other"}, (), False, id="not_by_a_word_that_is_none"),
    ],
)
def test_a_pod_is_narrowed_by_us_where_our_words_say_so(annotations, gates, is_ours):
    shape = structs.replace(OWN, terms=ON_NODES)
    said = pod("p", shape=shape, annotations=annotations, gates=gates)
    assert is_narrowed(said) is is_ours


def test_the_pods_of_each_pod_set_are_read_back_as_they_were_written():
    pods = {"workers": 999_999_999, "driver": 1, "a=b": 0}
    assert dict(pod_sets_from_text(pod_sets_text(pods))) == pods


@pytest.mark.parametrize(
    "text", [*NO_PODS, pytest.param("w" * MOST_POD_SETS_TEXT + "=1", id="too_long")]
)
def test_a_text_that_is_not_ours_names_no_pod_sets(text):
    assert pod_sets_from_text(text) == ()


def test_texts_as_long_as_they_may_be_are_read():
    name = "w" * (MOST_POD_SETS_TEXT - 2)
    assert pod_sets_from_text(f"{name}=1") == ((name, 1),)
    assert pod_sets_from_text(f"{name}w=1") == ()
    longest = "w" * (MOST_SUCCEEDED_TEXT - 2)
    assert succeeded_text({longest: 1}, {}) == f"{longest}=1"
    assert succeeded_from_text(f"{longest}=1") == ({longest: 1}, {})
    assert succeeded_text({f"{longest}w": 1}, {}) == ""
    assert succeeded_from_text(f"{longest}w=1") == ({}, {})


def test_the_text_of_succeeded_pods_is_by_pod_set_and_leaves_out_those_without_any():
    assert succeeded_text({"b": 2, "a": 0}, {}) == "b=2"
    assert succeeded_text({"b": 2, "a": 0}, {"22": "a", "11": "a"}) == "a=0/11.22,b=2"
    assert succeeded_text({}, {}) == ""
    assert succeeded_from_text("") == ({}, {})


def test_the_succeeded_pods_are_read_back_as_they_were_written():
    gone = {"workers": 999_999_999, "a=b": 1}
    present = {"9f86d081": "driver", "1a2b3c4d": "workers", "5e6f7a8b": "workers"}
    assert succeeded_from_text(succeeded_text(gone, present)) == ({**gone, "driver": 0}, present)


def test_of_a_great_many_succeeded_pods_as_many_are_listed_as_can_be():
    present = {f"{number:08x}": "workers" for number in range(2 * MOST_LISTED)}
    gone, listed = succeeded_from_text(succeeded_text({}, present))
    assert gone == {"workers": 0}
    assert len(listed) == MOST_LISTED
    assert listed.items() <= present.items()


@pytest.mark.parametrize(
    "text",
    [
        *NO_PODS,
        pytest.param("=1/9f86d081", id="no_name_of_listed_pods"),
        pytest.param("w" * MOST_SUCCEEDED_TEXT + "=1", id="too_long"),
    ],
)
def test_a_text_that_is_not_ours_names_no_succeeded_pods(text):
    assert succeeded_from_text(text) == ({}, {})


def test_names_of_pod_sets_too_long_for_an_annotation_are_not_written():
    assert succeeded_text({"w" * MOST_SUCCEEDED_TEXT: 1}, {}) == ""


@pytest.mark.parametrize("domain", ["", "cloud.provider.com/topology-rack=b0/r1"])
def test_a_place_is_read_back_as_it_was_written(domain):
    seats = ((0, "n1.example.com", 2), (1, "n1.example.com", 1))
    text = f"{domain};0/n1.example.com=2,1/n1.example.com=1"
    assert room_text(domain, seats) == text
    assert room_from_text(text) == (domain, seats)


@pytest.mark.parametrize("seats", [(), ((0, "n1", 2), (1, "n1", 1))])
def test_pods_that_do_not_end_are_read_back_by_the_place_that_they_were_to_go_from(seats):
    text = room_text("rack=r1", seats, [["a", "b"], ["c"]])
    assert text == f"rack=r1;{'0/n1=2,1/n1=1' if seats else ''};a+b,c"
    assert stuck_from_text(text) == (("a", "b"), ("c",))
    assert room_from_text(text)[1] == seats


def test_of_many_pods_that_do_not_end_the_first_are_noted():
    uids = [f"u{at}" for at in range(MOST_STUCK + 1)]
    assert stuck_from_text(room_text("", (), [uids])) == (tuple(uids[:MOST_STUCK]),)


@pytest.mark.parametrize("text", ["", "rack=r1", "rack=r1;0/n1=2", ";;", ";;a;b", ";;+,"])
def test_a_text_that_is_not_ours_names_no_pods_that_do_not_end(text):
    assert [uid for uids in stuck_from_text(text) for uid in uids] == []


def test_no_more_is_read_of_pods_that_do_not_end_than_was_written():
    many = ",".join("+".join(["a"] * (MOST_STUCK + 1)) for _ in range(MOST_STUCK + 1))
    assert stuck_from_text(f";;{many}") == (("a",) * MOST_STUCK,) * MOST_STUCK
    assert stuck_from_text(f";;{'a' * MOST_ROOM_TEXT}") == ()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("rack=r1", id="no_nodes"),
        pytest.param(";0/=1", id="no_name"),
        pytest.param(";0/n1=x", id="no_number_of_pods"),
        pytest.param(";x/n1=1", id="no_pod_set"),
        pytest.param(";0/n1=-1", id="fewer_than_none"),
        pytest.param(";0/n1=1,", id="one_is_missing"),
        pytest.param(f";0/{'n' * MOST_ROOM_TEXT}=1", id="too_long"),
    ],
)
def test_a_text_that_is_not_ours_names_no_place(text):
    assert room_from_text(text)[1] == ()


def test_a_place_too_long_for_an_annotation_is_not_written():
    assert room_text("", [(0, "n" * MOST_ROOM_TEXT, 1)]) == ""


def test_a_pod_that_says_it_was_born_narrowed_and_requires_no_node_may_go_anywhere() -> None:
    """Narrowed to no node at all it would never be placed; its creator may write the annotation."""
    said = pod("p", annotations={BORN: NODES})
    assert own_shape(said) == (said.shape, None)
    assert not is_narrowed(said)

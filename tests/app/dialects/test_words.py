"""A pod that is a member by its own word says one that the webhook's conditions look for."""

from __future__ import annotations

import msgspec
import pytest

from app.dialects import corral
from app.dialects.grove import keys as grove
from app.dialects.kai import keys as kai
from app.dialects.kueue import annotations, in_charge, pod_groups
from app.dialects.registry import DIALECTS
from app.dialects.volcano import keys as volcano
from app.settings import EngineOptions
from tests.records import pod

KEYS = {
    *(*grove.KEPT, *kai.KEPT, *volcano.KEPT, *corral.KEPT),
    *(*annotations.KEPT, *pod_groups.KEPT, *in_charge.KEPT),
}
ON = DIALECTS.configured(EngineOptions(native_pod_groups="on"))
EVERY = tuple(word for each in ON.words().values() for word in each)


@pytest.mark.parametrize("key", sorted(KEYS))
@pytest.mark.parametrize("where", ["labels", "annotations"])
def test_a_key_that_makes_a_member_begins_with_a_word(where, key):
    assert ON.keeps(key)
    if ON.claim(pod("p", **{where: {key: "1"}})) is not None:
        assert key.startswith(EVERY)


def test_each_word_makes_a_member_of_some_pod():
    claims = [
        claim
        for where in ("labels", "annotations")
        for key in KEYS
        if (claim := ON.claim(pod("p", **{where: {key: "1"}}))) is not None
    ]
    assert {each.gang.source for each in claims} >= {"grove", "kai", "volcano", "pod"}
    native = ON.claim(msgspec.structs.replace(pod("p"), pod_group="g"))
    assert native is not None
    assert native.gang.source == "native"
    assert ON.words()["native"] == ("schedulingGroup",)


def test_vocabularies_that_pods_are_not_read_in_have_no_words():
    assert "native" not in DIALECTS.words()
    of_two = {"scheduler_name": "a,b", "scheduler_vocabularies": (("a", "grove"), ("b", "kai"))}
    assert DIALECTS.configured(EngineOptions(**of_two)).words().keys() == {"grove", "kai"}

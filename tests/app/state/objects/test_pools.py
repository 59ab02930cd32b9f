"""Who gets something of a pool, and who waits for it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable

from app.dialects.declared import Draw, Pool
from app.dialects.dialect import Dialect
from app.dialects.registry import Dialects
from app.dialects.spec import GangKey
from app.kube.core.objects import ObjectRecord
from app.state.objects.pools import MOST_FREED, Pools


class _Pool(ObjectRecord, frozen=True, gc=False):
    pool: Pool = Pool("", ())


class _Wish(ObjectRecord, frozen=True, gc=False):
    draw: Draw | None = None


class Toy(Dialect):
    def pool(self, record: ObjectRecord) -> Pool | None:
        return record.pool if isinstance(record, _Pool) else None

    def draw(self, record: ObjectRecord) -> Draw | None:
        return record.draw if isinstance(record, _Wish) else None

    def keys_of(self, record: ObjectRecord) -> Iterable[GangKey]:
        if isinstance(record, _Wish):
            yield key(record.name)


def key(name: str) -> GangKey:
    return GangKey("a", name, "toy")


def pool(cpu: int | None = None, *, uid: str = "q", is_open: bool = True) -> _Pool:
    most = () if cpu is None else (("cpu", cpu),)
    return _Pool("Pool", "", "q", uid, "1", Pool("q", most, is_open))


def wish(
    name: str, cpu: int = 1, *, is_drawn: bool = False, since: str = "", uid: str = ""
) -> _Wish:
    draw = Draw("q", (("cpu", cpu), ("gpu", 1)), is_drawn, since or name)
    return _Wish("Wish", "a", name, uid or f"uid-{name}", "1", draw)


def shown(*records: ObjectRecord) -> Pools:
    pools = Pools(Dialects((Toy(),)))
    for record in records:
        pools.put(record)
    return pools


def asks(pools: Pools, *names: str) -> list[bool]:
    """Whether each gets what it wants."""
    found = []
    for name in names:
        found.append(not pools.refusal(key(name)))
        if found[-1]:
            pools.grant(key(name))
    assert list(pools.differences()) == []
    return found


def freed(pools: Pools) -> list[str]:
    return [each.name for each in pools.taken_freed()]


def test_those_that_came_in_the_same_second_ask_again_by_name() -> None:
    pools = shown(pool(1), wish("a", since="1"), *(wish(name, since="2") for name in "cb"))
    assert asks(pools, "a", "c", "b") == [True, False, False]
    pools.put(pool(3))
    assert freed(pools) == ["b", "c"]


def test_what_is_granted_counts_before_it_shows() -> None:
    pools = shown(pool(2), wish("a"), wish("b"), wish("c"))
    assert asks(pools, "a", "b", "c") == [True, True, False]
    assert pools.refusal(key("c")) == "q has no 1m cpu left"
    pools.put(wish("a", is_drawn=True))
    assert asks(pools, "c") == [False]


def test_a_gang_without_a_wish_or_with_a_pool_that_is_not_there_has_room() -> None:
    pools = shown(wish("a", 1_000))
    assert asks(pools, "a", "nobody") == [True, True]
    assert asks(shown(pool(), wish("a", 1_000)), "a") == [True]


def test_a_closed_pool_keeps_what_it_gave_and_gives_no_more() -> None:
    pools = shown(pool(is_open=False), wish("a", is_drawn=True), wish("b"))
    assert asks(pools, "a", "b") == [True, False]
    assert pools.refusal(key("b")) == "q is closed"
    pools.put(pool())
    assert freed(pools) == ["b"]


def test_those_that_fit_ask_again_when_something_gets_free_the_oldest_first() -> None:
    waiting = (wish("large", 3, since="1"), wish("young", since="3"), wish("old", since="2"))
    pools = shown(pool(3), wish("a", 3, is_drawn=True), *waiting)
    assert asks(pools, "young", "old", "large") == [False] * 3
    freed(pools)
    assert freed(pools) == []
    pools.put(wish("a", 1, is_drawn=True))
    assert freed(pools) == ["old", "young"]
    assert asks(pools, "old", "young") == [True, True]
    pools.drop("uid-a")
    assert freed(pools) == []
    assert asks(pools, "large") == [False]


def test_so_many_ask_again_in_one_tick_and_the_rest_in_the_next() -> None:
    names = [f"g{at:03}" for at in range(2 * MOST_FREED + 1)]
    pools = shown(pool(0), *map(wish, names))
    assert not any(asks(pools, *names))
    freed(pools)
    pools.put(pool(len(names)))
    rounds = [freed(pools) for _ in range(4)]
    assert list(map(len, rounds)) == [MOST_FREED, MOST_FREED, 1, 0]
    assert [name for some in rounds for name in some] == names


def test_a_pool_that_goes_holds_nobody_back() -> None:
    pools = shown(pool(0), wish("a"))
    assert asks(pools, "a") == [False]
    pools.drop("q")
    assert freed(pools) == ["a"]
    assert asks(pools, "a") == [True]


def test_a_pool_and_a_wish_that_are_made_anew_are_not_dropped_with_the_old_ones() -> None:
    pools = shown(pool(1), wish("a", is_drawn=True), wish("b"))
    pools.put(pool(1, uid="q2"))
    pools.put(wish("a", is_drawn=True, uid="again"))
    pools.drop("q")
    pools.drop("uid-a")
    assert asks(pools, "b") == [False]


def test_of_two_objects_of_one_name_either_may_go_first() -> None:
    """No API server shows them, but a list of what there was before may be late."""
    pools = shown(pool(1), wish("a", is_drawn=True), wish("b"))
    pools.put(pool(0, uid="q2"))
    pools.put(wish("a", is_drawn=True, uid="again"))
    for uid in ("again", "q2", "q", "uid-a", "again"):
        pools.drop(uid)
    assert asks(pools, "b") == [True]


def test_an_object_that_takes_another_name_leaves_nothing_under_the_old_one() -> None:
    pools = shown(pool(1), wish("a", is_drawn=True), wish("b"))
    pools.put(wish("c", is_drawn=True, uid="uid-a"))
    pools.put(_Pool("Pool", "", "r", "q", "2", Pool("r", ())))
    pools.drop("uid-a")
    assert list(pools.differences()) == []
    pools.put(pool(1, uid="q2"))
    assert asks(pools, "b") == [True]


def test_what_another_corral_gave_to_others_is_taken_back() -> None:
    pools = shown(pool(1), wish("a"), wish("b"))
    assert asks(pools, "a") == [True]
    pools.put(wish("b", is_drawn=True))
    assert asks(pools, "a") == [False]


def test_what_is_taken_wrongly_is_found_and_healed() -> None:
    pools = shown(pool(1), wish("a"))
    pools._taken["q"] = Counter(cpu=1)
    assert list(pools.differences()) == ["{'cpu': 1} is taken of q, and {} counts"]
    assert pools.refusal(key("a")) == "q has no 1m cpu left"
    freed(pools)
    pools.heal()
    assert freed(pools) == ["a"]
    assert asks(pools, "a") == [True]


def test_a_wish_that_is_over_frees_what_it_had() -> None:
    pools = shown(pool(1), wish("a", is_drawn=True), wish("b"))
    assert asks(pools, "b") == [False]
    over = _Wish("Wish", "a", "a", "uid-a", "2", None)
    pools.put(over)
    assert freed(pools) == ["b"]


def test_no_pool_gives_more_than_it_has_whatever_happens() -> None:
    rng = random.Random(7)
    for _ in range(50):
        pools, wanted, drawn = shown(pool(6)), dict[str, int](), dict[str, int]()
        for step in range(60):
            name = f"g{rng.randrange(8)}"
            if rng.random() < 0.3:
                pools.drop(f"uid-{name}")
                drawn.pop(name, None)
            elif name not in drawn:
                wanted[name] = rng.randint(1, 4)
                pools.put(wish(name, wanted[name], since=str(step)))
                if asks(pools, name) == [True]:
                    drawn[name] = wanted[name]
                    pools.put(wish(name, wanted[name], is_drawn=True, since=str(step)))
            for again in freed(pools):
                if asks(pools, again) == [True]:
                    drawn[again] = wanted[again]
            assert sum(drawn.values()) <= 6
            assert list(pools.differences()) == []

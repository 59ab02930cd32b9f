"""Keys that objects name as levels: which of them are used, in what order, and how many."""

from __future__ import annotations

from app.state.domains.named_levels import MOST_NAMED, MOST_PER_NAMESPACE, NamedLevels


def named(**by_namespace: str) -> NamedLevels:
    """Objects of these namespaces, each naming one key: a="k1 k2"."""
    levels = NamedLevels()
    for namespace, keys in by_namespace.items():
        for key in keys.split():
            levels.put(f"{namespace}-{key}", "K", namespace, [key])
    return levels


def test_what_a_topology_has_is_no_level_of_its_own():
    levels = named(a="rack place")
    assert levels.choose({"rack"})
    assert levels.used == {"place": "a"}
    assert not levels.choose({"rack"})
    assert levels.choose({"rack", "place"})
    assert levels.used == {}


def test_each_namespace_has_as_many_as_it_may_name_first():
    levels = named(a="k1 k2 k3 k4", b="k1 k5")
    levels.choose(())
    assert levels.used == {"k1": "a", "k2": "a", "k5": "b"}
    assert len([each for each in levels.used.values() if each == "a"]) == MOST_PER_NAMESPACE


def test_there_are_no_more_than_so_many_and_the_first_stay():
    levels = named(**{f"n{at:02}": f"k{at:02}" for at in range(20)})
    levels.choose(())
    first = dict(levels.used)
    assert list(first) == [f"k{at:02}" for at in range(MOST_NAMED)]
    levels.put("more", "K", "n00", ["another"])  # of the namespace that came first
    assert not levels.choose(())
    levels.drop("n03-k03")
    assert levels.choose(())
    assert levels.used == {**{k: n for k, n in first.items() if k != "k03"}, "another": "n00"}


def test_a_key_counts_for_another_namespace_once_the_first_names_it_no_more():
    levels = named(a="k", b="k")
    levels.choose(())
    assert levels.used == {"k": "a"}
    assert levels.drop("a-k")
    assert levels.choose(())
    assert levels.used == {"k": "b"}


def test_an_object_that_names_what_it_named_changes_nothing():
    levels = named(a="k")
    assert not levels.put("a-k", "K", "a", ["k", "k"])
    assert not levels.put("other", "K", "a", [])
    assert levels.put("a-k", "K", "a", ["l"])
    assert levels.put("a-k", "K", "a", [])
    assert not levels.drop("a-k")
    assert not levels.choose(())


def test_of_a_list_what_is_not_in_it_is_gone():
    levels = named(a="k l")
    levels.put("other", "Other", "a", ["m"])
    assert levels.keep("K", {"a-l"})
    assert not levels.keep("K", {"a-l"})
    levels.choose(())
    assert list(levels.used) == ["l", "m"]

"""Which namespaces a selector selects: by name at once, by other labels once the watch shows them.

Section: KEP-976 "Pods subject to queueing".
"""

from __future__ import annotations

import json

import pytest

from app.admission.namespaces import METADATA_NAME, NamespaceRecord, Namespaces
from app.errors import DecodeError
from app.kube.watch.events import Applied, Deleted, Listed
from app.labels import selector_from_text


def selecting(text: str) -> Namespaces:
    return Namespaces(selector_from_text(text))


def namespace(name: str, **labels: str) -> NamespaceRecord:
    return NamespaceRecord(
        kind="Namespace", namespace="", name=name, uid=f"uid-{name}", version="1", labels=labels
    )


def listed(*records: NamespaceRecord) -> Listed:
    return Listed("Namespace", records)


# -- by name -------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", f"{METADATA_NAME} notin (kube-system)"])
def test_a_selector_of_names_watches_nothing_and_knows_every_namespace(text):
    namespaces = selecting(text)
    assert namespaces.resources() == ()
    assert namespaces.selects("never-heard-of")


def test_a_namespace_is_excluded_by_its_name():
    assert not selecting(f"{METADATA_NAME} notin (kube-system)").selects("kube-system")


# -- by other labels -----------------------------------------------------------------------------


def test_any_other_key_needs_the_watch_of_namespaces():
    (resource,) = selecting("team").resources()
    assert (resource.kind, resource.path) == ("Namespace", "/api/v1/namespaces")
    assert resource.is_optional


def test_a_namespace_that_has_not_been_read_is_not_selected():
    namespaces = selecting("!legacy")
    assert not namespaces.selects("new")
    namespaces.apply(Applied(namespace("new")))
    assert namespaces.selects("new")


def test_labels_and_name_count_together():
    namespaces = selecting(f"team in (a,b),{METADATA_NAME}!=kube-system")
    namespaces.apply(
        listed(namespace("one", team="a"), namespace("two"), namespace("kube-system", team="a"))
    )
    assert namespaces.selects("one")
    assert not namespaces.selects("two")
    assert not namespaces.selects("kube-system")


def test_a_namespace_that_loses_its_label_is_selected_no_more():
    namespaces = selecting("team")
    namespaces.apply(listed(namespace("one", team="a")))
    namespaces.apply(Applied(namespace("one")))
    assert not namespaces.selects("one")


def test_a_namespace_that_is_deleted_is_forgotten():
    namespaces = selecting("team")
    namespaces.apply(listed(namespace("one", team="a")))
    namespaces.apply(Deleted(namespace("one", team="a")))
    assert not namespaces.selects("one")


def test_a_relist_drops_namespaces_it_does_not_have():
    namespaces = selecting("team")
    namespaces.apply(listed(namespace("one", team="a"), namespace("two", team="a")))
    namespaces.apply(listed(namespace("two", team="a")))
    assert not namespaces.selects("one")
    assert namespaces.selects("two")


def test_only_the_labels_that_matter_are_decoded():
    (resource,) = selecting("team").resources()
    metadata = {"name": "one", "uid": "u", "resourceVersion": "7"}
    raw = json.dumps({"metadata": {**metadata, "labels": {"team": "a", "cost-center": "4711"}}})
    assert resource.decode(raw.encode()) == NamespaceRecord(
        kind="Namespace", namespace="", name="one", uid="u", version="7", labels={"team": "a"}
    )


@pytest.mark.parametrize("raw", [b"{}", b'{"metadata":null}', b'{"metadata":{"labels":null}}'])
def test_a_namespace_that_says_nothing_is_one_without_labels(raw):
    (resource,) = selecting("team").resources()
    assert resource.decode(raw) == NamespaceRecord(
        kind="Namespace", namespace="", name="", uid="", version="", labels={}
    )
    assert resource.is_optional


def test_what_is_no_namespace_is_a_decode_error():
    (resource,) = selecting("team").resources()
    with pytest.raises(DecodeError):
        resource.decode(b'{"metadata":{"labels":[]}}')

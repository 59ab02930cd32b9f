"""The port over real TLS: reviews in and out, and whatever else arrives there."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from structlog.testing import capture_logs

from app.admission.namespaces import METADATA_NAME, Namespaces
from app.admission.routes import MOST_CHANGED_BYTES, MOST_CHECKED_BYTES
from app.admission.scope import Scope
from app.dialects.kueue.pod_groups import INDEX_LABEL
from app.kube.core.objects import PodRecord
from app.labels import selector_from_text
from tests.app.admission.port import UID, Running, patch_of, patched, review, running_port
from tests.app.polling import until
from tests.certificates import HOST, pair
from tests.cluster import RACK, Object, job, pod
from tests.workloads import MANAGED, REQUIRED, asking, member

JSON = {"Content-Type": "application/json"}
BROKEN = {REQUIRED: "my rack"}


async def post(running: Running, path: str, body: object) -> dict[str, Any]:
    """The response in the review that comes back."""
    async with running.client(pair("first")) as client:
        answer = await client.post(path, json=body)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    whole = answer.json()
    assert (whole["apiVersion"], whole["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response: dict[str, Any] = whole["response"]
    assert response["uid"] == UID
    return response


async def test_a_member_is_let_in_gated(tmp_path: Path):
    thing = member("g", 0, 2)
    async with running_port(tmp_path) as running:
        response = await post(running, "/mutate", review(thing))
        assert response["allowed"] is True
        changed = patched(thing, patch_of(response))
        assert changed["spec"]["schedulingGates"] == [{"name": "corral.dev/gang"}]
        assert running.value("corral_pods_gated_total") == 1
        assert running.value("corral_admissions_total", outcome="changed") == 1
        assert running.value("corral_admission_seconds_count", route="mutate") == 1


async def test_a_dry_run_is_changed_but_not_counted_as_gated(tmp_path: Path):
    async with running_port(tmp_path) as running:
        response = await post(running, "/mutate", review(member("g", 0, 2), dryRun=True))
        assert patch_of(response)
        assert running.value("corral_pods_gated_total") == 0


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(review(pod("p")), id="ordinary_pod"),
        pytest.param(
            review(member("g", 0, 2), before=member("g", 0, 2), operation="UPDATE"), id="update"
        ),
        pytest.param(review(None, before=member("g", 0, 2), operation="DELETE"), id="delete"),
        pytest.param(review(member("g", 0, 2), subResource="status"), id="subresource"),
        pytest.param(review(job("j", pods=2, annotations=asking(required=RACK))), id="job"),
    ],
)
async def test_everything_else_is_let_in_as_it_is(tmp_path: Path, asked):
    async with running_port(tmp_path) as running:
        for path in ("/mutate", "/validate"):
            assert await post(running, path, asked) == {"uid": UID, "allowed": True}


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param({"kind": "Job", "group": "batch"}, id="another_kind"),
        pytest.param({"kind": "Pod", "group": "example.com"}, id="another_groups_pod"),
    ],
)
async def test_only_pods_are_changed_whatever_an_object_looks_like(tmp_path: Path, kind):
    async with running_port(tmp_path) as running:
        response = await post(running, "/mutate", review(member("g", 0, 2), **kind))
        assert response == {"uid": UID, "allowed": True}
        assert running.value("corral_admissions_total", outcome="passed") == 1


async def test_a_pod_that_has_our_gate_is_changed_but_not_counted_as_gated_by_us(tmp_path: Path):
    thing = member("g", 0, 2)
    thing["spec"]["schedulingGates"] = [{"name": "corral.dev/gang"}]
    async with running_port(tmp_path) as running:
        assert patch_of(await post(running, "/mutate", review(thing)))
        assert running.value("corral_pods_gated_total") == 0
        assert running.value("corral_admissions_total", outcome="changed") == 1


async def test_a_refusal_names_every_field_in_text_and_in_causes(tmp_path: Path):
    thing = pod("p", annotations={**BROKEN, "kueue.x-k8s.io/podset-slice-size": "0"})
    async with running_port(tmp_path) as running:
        response = await post(running, "/validate", review(thing))
        assert response["allowed"] is False
        status = response["status"]
        assert (status["code"], status["reason"], status["status"]) == (422, "Invalid", "Failure")
        fields = {cause["field"] for cause in status["details"]["causes"]}
        assert fields == {
            f"metadata.annotations[{REQUIRED}]",
            "metadata.annotations[kueue.x-k8s.io/podset-slice-size]",
        }
        for cause in status["details"]["causes"]:
            assert f"{cause['field']}: {cause['message']}" in status["message"]
        assert status["message"].startswith('Pod "p" is invalid: [metadata.annotations[')
        assert status["message"].endswith("]")
        assert running.value("corral_admission_rejected_total", kind="Pod") == 1
        assert running.value("corral_admissions_total", outcome="refused") == 1


async def test_a_refusal_is_in_the_log_with_its_first_error_and_how_many_there_are(tmp_path: Path):
    thing = pod("p", annotations={**BROKEN, "kueue.x-k8s.io/podset-slice-size": "0"})
    async with running_port(tmp_path) as running:
        with capture_logs() as logged:
            await post(running, "/validate", review(thing))
    (line,) = (each for each in logged if each["event"] == "admission refused")
    assert (line["kind"], line["name"], line["log_level"]) == ("Pod", "default/p", "info")
    assert line["first"].startswith(f"metadata.annotations[{REQUIRED}]: Invalid value: ")
    assert line["errors"] >= 2


async def test_a_job_is_refused_with_the_path_of_its_template(tmp_path: Path):
    async with running_port(tmp_path) as running:
        asked = review(job("j", pods=2, annotations=BROKEN))
        response = await post(running, "/validate", asked)
        assert response["status"]["message"].startswith(
            f'Job.batch "j" is invalid: spec.template.metadata.annotations[{REQUIRED}]: Invalid'
        )
        assert running.value("corral_admission_rejected_total", kind="Job") == 1


async def test_only_new_errors_refuse_an_update(tmp_path: Path):
    before = pod("p", annotations=BROKEN)
    async with running_port(tmp_path) as running:
        same = review(before, before=before, operation="UPDATE")
        assert (await post(running, "/validate", same))["allowed"] is True
        worse = pod("p", annotations={**BROKEN, "kueue.x-k8s.io/podset-slice-size": "0"})
        asked = review(worse, before=before, operation="UPDATE")
        assert (await post(running, "/validate", asked))["allowed"] is False


async def test_the_scope_of_the_settings_holds(tmp_path: Path):
    scope = Scope("corral", Namespaces(selector_from_text(f"{METADATA_NAME}!=team")))
    thing = member("g", 0, 2, namespace="team")
    async with running_port(tmp_path, scope=scope) as running:
        assert not patch_of(await post(running, "/mutate", review(thing)))
        other = review(thing, namespace="elsewhere")
        assert patch_of(await post(running, "/mutate", other))


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
@pytest.mark.parametrize(
    ("body", "text"),
    [
        pytest.param(b"", "no AdmissionReview", id="empty"),
        pytest.param(b"{", "no AdmissionReview", id="cut_off"),
        pytest.param(b"null", "no AdmissionReview", id="null"),
        pytest.param(b"[]", "no AdmissionReview", id="array"),
        pytest.param(b"[" * 100_000, "no AdmissionReview", id="deep"),
        pytest.param(b"{}", "expected admission.k8s.io/v1 AdmissionReview", id="nothing_said"),
        pytest.param(b'{"request":{"uid":7}}', "$.request.uid", id="uid_that_is_a_number"),
        pytest.param(b"\xff\xfe{}", "no AdmissionReview", id="not_utf_8"),
        pytest.param(
            b'{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview",'
            b'"request":{"uid":"a"}}',
            "got 'admission.k8s.io/v1beta1 AdmissionReview'",
            id="older_version",
        ),
        pytest.param(
            b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}',
            "request.uid",
            id="no_request",
        ),
        pytest.param(
            b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":""}}',
            "request.uid",
            id="empty_uid",
        ),
    ],
)
async def test_what_is_no_review_is_a_400_that_says_why(tmp_path: Path, path, body, text):
    async with running_port(tmp_path) as running, running.client(pair("first")) as client:
        answer = await client.post(path, content=body, headers=JSON)
        assert answer.status_code == 400
        assert text in answer.text
        assert running.value("corral_broken_requests_total", reason="malformed") == 1


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
@pytest.mark.parametrize(
    "thing",
    [
        pytest.param({"metadata": 7, "spec": "x"}, id="wrong_types"),
        pytest.param([], id="array"),
        pytest.param("pod", id="string"),
        pytest.param(None, id="null"),
        pytest.param({"metadata": {"labels": {"a": 1}, "annotations": None}}, id="odd_labels"),
        pytest.param({"spec": {"containers": [None, 3]}, "metadata": {}}, id="odd_containers"),
        pytest.param(
            {"metadata": {"annotations": {f"k{n}": "v" for n in range(20_000)}}}, id="large"
        ),
    ],
)
async def test_an_object_of_any_form_is_let_in_with_its_uid(tmp_path: Path, path, thing):
    async with running_port(tmp_path) as running:
        response = await post(running, path, review(thing, kind="Pod", group=""))
        assert response["allowed"] is True
        assert not patch_of(response)
        assert running.value("corral_admissions_total", outcome="failed") == 0


@pytest.mark.parametrize("name", ["p", "p" * 1_000], ids=["short", "long"])
async def test_an_object_that_cannot_be_read_is_told_in_a_warning_of_the_usual_length(
    tmp_path: Path, name: str
):
    thing = {"metadata": {"name": name}, "spec": {"schedulingGates": {}}}
    async with running_port(tmp_path) as running, running.client(pair("first")) as client:
        answer = await client.post("/mutate", json=review(thing))
    (warning,) = answer.json()["response"]["warnings"]
    assert warning.startswith("Corral: Pod p")
    assert len(warning) <= 256  # kube-apiserver cuts longer ones


async def test_an_object_that_is_too_deep_is_no_review(tmp_path: Path):
    body = json.dumps(review({})).encode().replace(b'"object": {}', b'"object": ' + b"[" * 90_000)
    async with running_port(tmp_path) as running, running.client(pair("first")) as client:
        answer = await client.post("/validate", content=body, headers=JSON)
        assert answer.status_code == 400


@pytest.mark.parametrize(("more", "may_be_cut"), [(1, ()), (100_000, httpx.HTTPError)])
async def test_a_body_over_the_limit_is_refused_and_the_port_goes_on(
    tmp_path: Path, more: int, may_be_cut: Any
):
    fits = json.dumps(review(pod("p"))).encode()
    async with running_port(tmp_path, most_body_bytes=len(fits)) as running:
        async with running.client(pair("first")) as client:
            with contextlib.suppress(may_be_cut):  # the guard cuts off what is far too large
                answer = await client.post("/mutate", content=fits + b" " * more)
                assert answer.status_code == 413
                assert "admission_body_bytes" in answer.text
        async with running.client(pair("first")) as client:
            assert (await client.post("/mutate", content=fits)).status_code == 200


@pytest.mark.parametrize("encoding", ["identity", "Identity"])
async def test_a_body_that_says_it_is_not_compressed_is_read(tmp_path: Path, encoding):
    async with running_port(tmp_path) as running, running.client(pair("first")) as client:
        headers = {**JSON, "Content-Encoding": encoding}
        answer = await client.post("/mutate", json=review(pod("p")), headers=headers)
        assert answer.status_code == 200


async def test_a_compressed_body_is_refused(tmp_path: Path):
    body = gzip.compress(json.dumps(review(pod("p"))).encode())
    async with running_port(tmp_path) as running, running.client(pair("first")) as client:
        headers = {**JSON, "Content-Encoding": "gzip"}
        answer = await client.post("/mutate", content=body, headers=headers)
        assert answer.status_code == 415


async def test_a_slow_body_is_cut_off_and_others_are_answered_meanwhile(tmp_path: Path):
    async with running_port(tmp_path, receive_seconds=0.2) as running:
        port = int(running.url.rpartition(":")[2])
        _, writer = await asyncio.open_connection(
            HOST, port, ssl=pair("first").client(), server_hostname=HOST
        )
        writer.write(b"POST /mutate HTTP/1.1\r\nHost: corral\r\nContent-Length: 100\r\n\r\n{")
        await writer.drain()
        assert (await post(running, "/mutate", review(pod("p"))))["allowed"] is True
        await until(lambda: running.value("corral_broken_requests_total", reason="late") == 1)
        writer.close()


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        pytest.param("GET", "/mutate", 405, id="get"),
        pytest.param("POST", "/mutate/", 404, id="another_slash"),
        pytest.param("POST", "/filter", 404, id="a_verb"),
        pytest.param("GET", "/metrics", 404, id="metrics"),
        pytest.param("GET", "/docs", 404, id="docs"),
    ],
)
async def test_the_port_serves_nothing_else(tmp_path: Path, method, path, status):
    async with running_port(tmp_path) as running, running.client(pair("first")) as client:
        assert (await client.request(method, path)).status_code == status


async def test_a_hundred_reviews_at_once_are_all_answered_with_their_own_uid(tmp_path: Path):
    async with running_port(tmp_path) as running, running.client(pair("first")) as client:
        asked = [review(member("g", n, 100), uid=f"uid-{n}") for n in range(100)]
        answers = await asyncio.gather(*(client.post("/mutate", json=each) for each in asked))
        uids = [answer.json()["response"]["uid"] for answer in answers]
        assert uids == [f"uid-{n}" for n in range(100)]
        assert running.value("corral_pods_gated_total") == 100


LARGE = {"image": "a", "name": "c", "args": ["x" * MOST_CHANGED_BYTES]}


@pytest.mark.parametrize(
    ("path", "thing", "most"),
    [
        pytest.param(
            "/mutate", member("g", 0, 2, containers=[LARGE]), MOST_CHANGED_BYTES, id="a_pod_to_gate"
        ),
        pytest.param(
            "/validate",
            job("train", pods=2, annotations=BROKEN, containers=[LARGE]),
            MOST_CHECKED_BYTES,
            id="a_job_to_check",
        ),
    ],
)
async def test_a_large_object_is_let_in_as_it_is_and_its_user_told(
    tmp_path: Path, path: str, thing: dict[str, Any], most: int
):
    async with running_port(tmp_path) as running:
        response = await post(running, path, review(thing))
        assert running.value("corral_admissions_total", outcome="unread") == 1
    assert response["allowed"] is True
    assert "patch" not in response
    (warning,) = response["warnings"]
    metadata = thing["metadata"]
    assert warning.startswith(f"Corral: {thing['kind']} {metadata['namespace']}/{metadata['name']}")
    assert f"more than the {most} that are checked" in warning


@pytest.mark.parametrize(
    ("more", "is_gated"),
    [
        pytest.param(0, True, id="as_large_as_it_may_be"),
        pytest.param(1, False, id="one_byte_larger"),
    ],
)
async def test_a_pod_is_gated_up_to_the_size_that_is_checked(tmp_path: Path, more, is_gated):
    def of_size(filling: int) -> dict[str, Any]:
        return member("g", 0, 2, annotations={"filling": "x" * filling})

    empty = len(json.dumps(of_size(0), separators=(",", ":")))  # as httpx writes it
    thing = of_size(MOST_CHANGED_BYTES - empty + more)
    async with running_port(tmp_path) as running:
        response = await post(running, "/mutate", review(thing))
    assert bool(patch_of(response)) is is_gated


async def test_nobody_is_told_of_a_large_object_that_says_nothing_to_corral(tmp_path: Path):
    thing = job("theirs", pods=2, scheduler="theirs", containers=[LARGE])
    async with running_port(tmp_path) as running:
        response = await post(running, "/validate", review(thing))
    assert response == {"uid": UID, "allowed": True}


async def test_a_small_change_of_what_was_large_is_not_checked_either(tmp_path: Path):
    before = job("train", pods=2, annotations=BROKEN, containers=[LARGE])
    after = job("train", pods=2, annotations=BROKEN)
    async with running_port(tmp_path) as running:
        asked = review(after, before=before, operation="UPDATE")
        response = await post(running, "/validate", asked)
    assert response["allowed"] is True


# One call does what two did: what is wrong with a new pod is told where it is changed.
WRONG_PODS = [
    pytest.param(pod("p", annotations=BROKEN), id="ordinary"),
    pytest.param(member("g", 0, 2, annotations=BROKEN), id="member"),
    pytest.param(pod("p", annotations=BROKEN, labels={MANAGED: "false"}), id="opted_out"),
    pytest.param(pod("p", annotations=BROKEN, nodeName="n"), id="bound"),
    pytest.param(
        member("g", 0, 2, annotations={INDEX_LABEL: "example.com/rank"}), id="index_without_source"
    ),
]


@pytest.mark.parametrize("thing", WRONG_PODS)
async def test_a_new_pod_that_breaks_a_rule_is_refused_by_the_call_that_would_change_it(
    tmp_path: Path, thing: dict[str, Any]
):
    async with running_port(tmp_path) as running:
        response = await post(running, "/mutate", review(thing))
        assert response["allowed"] is False
        assert response["status"]["code"] == 422
        assert running.value("corral_pods_gated_total") == 0
        assert running.value("corral_admission_rejected_total", kind="Pod") == 1


@pytest.mark.parametrize("thing", WRONG_PODS[:4])
async def test_both_routes_refuse_a_pod_with_the_same_words(tmp_path: Path, thing: dict[str, Any]):
    async with running_port(tmp_path) as running:
        told = [await post(running, path, review(thing)) for path in ("/mutate", "/validate")]
    assert told[0] == told[1]


@pytest.mark.parametrize(
    ("label", "namespace"),
    [pytest.param("queue", "team", id="kueues"), pytest.param("", "kube-system", id="not_ours")],
)
async def test_mistakes_of_pods_that_are_not_ours_are_let_in(
    tmp_path: Path, label: str, namespace: str
):
    labels = {"kueue.x-k8s.io/managed": "true"} if label else {}
    thing = pod("p", annotations=BROKEN, labels=labels, namespace=namespace)
    scope = Scope("corral", Namespaces(selector_from_text(f"{METADATA_NAME}!=kube-system")))
    async with running_port(tmp_path, scope=scope) as running:
        assert (await post(running, "/mutate", review(thing)))["allowed"] is True


async def test_a_pod_too_large_to_be_checked_is_gated_and_its_user_told(tmp_path: Path):
    thing = member("g", 0, 2, annotations={**BROKEN, "filling": "x" * MOST_CHECKED_BYTES})
    async with running_port(tmp_path) as running:
        response = await post(running, "/mutate", review(thing))
    assert patch_of(response)
    (warning,) = response["warnings"]
    assert f"more than the {MOST_CHECKED_BYTES} that are checked" in warning


@pytest.mark.parametrize(
    "thing",
    [
        pytest.param(member("g", 0, 2, containers=[LARGE]), id="of_kueues"),
        pytest.param(
            pod("p", annotations={"scheduling.k8s.io/group-name": "g"}, containers=[LARGE]),
            id="of_volcanos",
        ),
        pytest.param(
            pod("p", annotations={"pod-group-name": "g"}, containers=[LARGE]), id="of_kais"
        ),
        pytest.param(
            pod("p", labels={"grove.io/podgang": "g"}, containers=[LARGE]), id="of_groves"
        ),
    ],
)
async def test_a_pod_that_is_too_large_to_be_marked_is_refused(tmp_path: Path, thing: Object):
    async with running_port(tmp_path, marks=True) as running:
        response = await post(running, "/mutate", review(thing))
    assert response["allowed"] is False
    assert f"spec: Too long: may not be more than {MOST_CHANGED_BYTES}" in str(response["status"])


async def test_a_large_pod_of_no_gang_is_let_in_where_members_are_marked(tmp_path: Path):
    async with running_port(tmp_path, marks=True) as running:
        response = await post(running, "/mutate", review(pod("p", containers=[LARGE])))
    assert response["allowed"] is True


UNREADABLE = [
    pytest.param({"priority": "high"}, id="in_the_spec"),
    pytest.param(
        {"containers": [{"name": "c", "image": "a", "resources": {"limits": ["cpu"]}}]},
        id="where_the_marker_goes",
    ),
]


@pytest.mark.parametrize("wrong", UNREADABLE)
@pytest.mark.parametrize(
    ("thing", "marks", "is_let_in"),
    [
        pytest.param(member("g", 0, 2), True, False, id="member"),
        pytest.param(pod("p", labels={"grove.io/podgang": "g"}), True, False, id="groves"),
        pytest.param(pod("p"), True, True, id="ordinary"),
        pytest.param(member("g", 0, 2), False, True, id="member_that_needs_none"),
    ],
)
async def test_a_member_that_cannot_be_read_is_refused_where_it_would_start_alone(
    tmp_path: Path, wrong: Object, thing: Object, marks: bool, is_let_in: bool
):
    broken = {**thing, "spec": {**thing["spec"], **wrong}}
    async with running_port(tmp_path, marks=marks) as running:
        response = await post(running, "/mutate", review(broken))
        assert response["allowed"] is is_let_in
        assert [each["path"] for each in patch_of(response) if "resources" in each["path"]] == []
    if not is_let_in:
        assert "spec: Forbidden: Corral cannot read it" in response["status"]["message"]
        assert running.value("corral_admissions_total", outcome="refused") == 1


@pytest.mark.parametrize(("marks", "status"), [(False, 200), (True, 500)])
async def test_a_bug_lets_no_member_in_without_its_marker(tmp_path: Path, marks, status):
    def broken(_pod: PodRecord, _namespace: str) -> tuple[str, ...] | None:
        raise RuntimeError("a bug")

    async with (
        running_port(tmp_path, marks=marks, place=broken) as running,
        running.client(pair("first")) as client,
    ):
        answer = await client.post("/mutate", json=review(member("g", 0, 2)))
    assert answer.status_code == status

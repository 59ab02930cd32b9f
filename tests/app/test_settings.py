"""Knobs: who wins, and what a wrong one is told."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from app.dialects.spec import TierPacking
from app.errors import SettingsError
from app.labels import selector_from_text
from app.process.engine_settings import engine_settings
from app.setting_values import Address, address_from_text
from app.settings import Settings, load
from app.state.settings import EngineSettings


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch):
    import os

    for name in [name for name in os.environ if name.upper().startswith("CORRAL_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def settings_file(tmp_path):
    def write(text):
        path = tmp_path / "corral.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_defaults_fit_kube_schedulers_timeouts():
    settings = load({})
    assert settings.extender_listen == Address("127.0.0.1", 8888)
    assert settings.scheduler_name == "corral"
    assert settings.gang_bind_seconds + settings.bind_seconds < 300  # the httpTimeout of /bind
    assert settings.keep_alive_seconds > 90  # how long Go's client keeps an idle connection


def test_the_engine_runs_with_what_the_operator_has_set():
    settled = engine_settings(load({"narrow_nodes": 7, "owed_seconds": "0"}))
    assert settled == EngineSettings(narrow_nodes=7, owed_seconds=0.0)


@pytest.fixture
def scheduler_conf(tmp_path):
    def write(*arguments):
        path = tmp_path / "volcano-scheduler.conf"
        lines = ["tiers:", "- plugins:", "  - name: network-topology-aware", "    arguments:"]
        path.write_text("\n".join([*lines, *(f"      {each}" for each in arguments)]), "utf-8")
        return path

    return write


def test_the_engine_reckons_as_volcanos_scheduler_has_been_told(scheduler_conf):
    path = scheduler_conf("hypernode.binpack.cpu: 5", "hypernode.binpack.normal-pod.fading: 0")
    settled = engine_settings(load({"volcano_scheduler_conf": path}))
    assert settled.packing == TierPacking((("cpu", 5), ("memory", 1)), fading=0.0)
    assert engine_settings(load({})).packing == TierPacking(None, 0.8, for_ordinary_pods=True)


def test_an_argument_of_volcanos_plugin_that_is_wrong_is_told_with_its_file(scheduler_conf):
    path = scheduler_conf("hypernode.binpack.cpu: lots")
    with pytest.raises(SettingsError) as error:
        engine_settings(load({"volcano_scheduler_conf": path}))
    assert str(error.value) == (
        f"volcano_scheduler_conf {path}: network-topology-aware: hypernode.binpack.cpu: 'lots'"
        " is not a whole number from 0 to 1000000"
    )


def test_a_file_of_volcanos_scheduler_that_is_not_there_is_told(tmp_path):
    path = tmp_path / "volcano-scheduler.conf"
    with pytest.raises(SettingsError, match=f"^volcano_scheduler_conf {path}: cannot be read: "):
        engine_settings(load({"volcano_scheduler_conf": str(path)}))
    path.write_bytes(b"\xff")
    with pytest.raises(SettingsError, match=f"^volcano_scheduler_conf {path}: cannot be read: "):
        engine_settings(load({"volcano_scheduler_conf": str(path)}))


def test_the_engine_alone_reads_no_environment(monkeypatch):
    monkeypatch.setenv("CORRAL_HOLD_SECONDS", "2")
    assert EngineSettings().hold_seconds == Settings.model_fields["hold_seconds"].default
    assert Settings().hold_seconds == 2


def test_a_setting_the_engine_does_not_have_is_refused():
    with pytest.raises(ValidationError, match="speed"):
        EngineSettings(speed=9)


def test_a_flag_wins_over_environment_file_and_default(monkeypatch, settings_file):
    path = settings_file("scheduler_name: file\nhold_seconds: 1\nwake_burst: 7\n")
    monkeypatch.setenv("CORRAL_SCHEDULER_NAME", "environment")
    monkeypatch.setenv("CORRAL_HOLD_SECONDS", "2")
    settings = load({"scheduler_name": "flag", "settings": path, "levels": None})
    assert settings.scheduler_name == "flag"
    assert settings.hold_seconds == 2
    assert settings.wake_burst == 7
    assert settings.wake_per_second == Settings().wake_per_second


def test_the_environment_may_name_the_file(monkeypatch, settings_file):
    monkeypatch.setenv("CORRAL_SETTINGS", str(settings_file("wake-burst: 9\n")))
    assert load({}).wake_burst == 9


@pytest.mark.parametrize(
    "given",
    [
        pytest.param("team-a=512, team-b=0", id="text"),
        pytest.param({"team-a": 512, "team-b": 0}, id="mapping"),
        pytest.param((("team-a", 512), ("team-b", 0)), id="pairs"),
    ],
)
def test_a_namespace_has_a_number_of_pods_of_its_own(given):
    assert load({"absent_pods_in": given}).absent_pods_in == (("team-a", 512), ("team-b", 0))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("team-a", "team-a=: expected a namespace and a number of pods"),
        ("=5", "=5: expected a namespace and a number of pods"),
        ("team-a=-1", "team-a=-1: expected a namespace and a number of pods"),
        ("team-a=٣", "team-a=٣: expected a namespace and a number of pods"),
        ("team-a=1000000", "team-a=1000000: expected a namespace and a number of pods"),
        (5, "expected NAMESPACE=PODS,…, such as team-a=512,team-b=0"),
    ],
)
def test_a_number_of_pods_by_namespace_that_is_none_is_told(given, told):
    with pytest.raises(SettingsError) as error:
        load({"absent_pods_in": given})
    assert str(error.value) == f"flag --absent-pods-in: {given!r} is not valid: {told}"


@pytest.mark.parametrize(
    "given",
    [
        "example.com/milli=1000, example.com/mib=24",
        {"example.com/milli": 1000, "example.com/mib": "24"},
    ],
)
def test_parts_of_devices_are_read_from_text_and_from_a_mapping(given: object) -> None:
    found = load({"device_parts": given}).device_parts
    assert found == (("example.com/milli", 1000), ("example.com/mib", 24))


@pytest.mark.parametrize(
    "given",
    [
        pytest.param("cpu=1000", id="no_device"),
        pytest.param("example.com/milli=1", id="one_part"),
        pytest.param("example.com/milli=half", id="no_number"),
        pytest.param("example.com/milli", id="no_parts"),
        pytest.param("a/a=2,b/b=2,c/c=2,d/d=2,e/e=2", id="too_many"),
        pytest.param(7, id="no_pairs"),
    ],
)
def test_parts_of_devices_that_cannot_be_are_refused(given: object) -> None:
    with pytest.raises(SettingsError, match=r"--device-parts: .* is not valid"):
        load({"device_parts": given})


@pytest.mark.parametrize(
    "given",
    [
        "default-scheduler=grove,kai-scheduler=grove, kai-scheduler=kai",
        {"default-scheduler": "grove", "kai-scheduler": ["grove", "kai"]},
        [["default-scheduler", "grove"], ["kai-scheduler", "grove"], ["kai-scheduler", "kai"]],
    ],
)
def test_schedulers_have_vocabularies_of_their_own(given):
    assert load({"scheduler_vocabularies": given}).scheduler_vocabularies == (
        ("default-scheduler", "grove"),
        ("kai-scheduler", "grove"),
        ("kai-scheduler", "kai"),
    )


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("grove", "grove=: expected a schedulerName and a vocabulary"),
        ("=grove", "=grove: expected a schedulerName and a vocabulary"),
        ({"a": 5}, "a=5: expected a schedulerName and a vocabulary"),
        ({"a": [""]}, "a=: expected a schedulerName and a vocabulary"),
        (["grove"], "expected NAME=VOCABULARY,…, such as default-scheduler=grove"),
        (5, "expected NAME=VOCABULARY,…, such as default-scheduler=grove"),
    ],
)
def test_a_vocabulary_of_no_scheduler_is_told(given, told):
    with pytest.raises(SettingsError) as error:
        load({"scheduler_vocabularies": given})
    assert str(error.value) == f"flag --scheduler-vocabularies: {given!r} is not valid: {told}"


def test_service_variables_of_kubernetes_are_no_settings(monkeypatch):
    monkeypatch.setenv("CORRAL_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("CORRAL_PORT", "tcp://10.0.0.1:80")
    assert load({}) == Settings()


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("block,rack", ("block", "rack")),
        (" a.b/block , a.b/rack ,", ("a.b/block", "a.b/rack")),
        ("gke", ("gke",)),
        ("", ()),
    ],
)
def test_levels_are_a_list_separated_by_commas(monkeypatch, settings_file, text, levels):
    assert load({"levels": text}).levels == levels
    monkeypatch.setenv("CORRAL_LEVELS", text)
    assert load({}).levels == levels
    monkeypatch.delenv("CORRAL_LEVELS")
    assert load({"settings": settings_file(f"levels: {list(levels)}\n")}).levels == levels


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8888", Address("127.0.0.1", 8888)),
        ("localhost:0", Address("localhost", 0)),
        ("[::1]:65535", Address("::1", 65535)),
    ],
)
def test_addresses(text, address):
    assert load({"extender_listen": text}).extender_listen == address
    assert str(address) == text


@pytest.mark.parametrize("text", ["", "8888", ":8888", "host", "host:", "host:x", "::1:80", "h:٣"])
def test_what_is_no_address(text):
    with pytest.raises(ValueError, match="HOST:PORT"):
        address_from_text(text)


@pytest.mark.parametrize("text", [",", "corral,", "corral,,kai-scheduler", " "])
def test_an_empty_name_of_a_scheduler_is_none(text):
    with pytest.raises(SettingsError, match="expected names between commas"):
        load({"scheduler_name": text})


@pytest.mark.parametrize("text", ["team in (a,b),!legacy", ""])
def test_selectors_are_written_as_for_kubectl(monkeypatch, settings_file, text):
    selector = selector_from_text(text)
    assert load({"admission_pod_selector": text}).admission_pod_selector == selector
    monkeypatch.setenv("CORRAL_ADMISSION_POD_SELECTOR", text)
    assert load({}).admission_pod_selector == selector
    monkeypatch.delenv("CORRAL_ADMISSION_POD_SELECTOR")
    path = settings_file(f'admission_pod_selector: "{text}"\n')
    assert load({"settings": path}).admission_pod_selector == selector


def test_a_wrong_selector_is_named_with_its_value_and_what_is_wrong_with_it():
    with pytest.raises(SettingsError) as error:
        load({"admission_pod_selector": "team is a"})
    assert str(error.value) == (
        "flag --admission-pod-selector: 'team is a' is not valid:"
        " expected '=' or '==' or '!=' or 'in' or 'notin', found 'is'"
    )


def test_a_wrong_flag_is_named_with_its_value():
    with pytest.raises(SettingsError) as error:
        load({"extender_listen": "nowhere"})
    assert str(error.value).startswith("flag --extender-listen: 'nowhere' is not valid: expected")


def test_a_wrong_variable_is_named_with_its_value(monkeypatch):
    monkeypatch.setenv("CORRAL_GANG_BIND_SECONDS", "soon")
    with pytest.raises(SettingsError, match="variable CORRAL_GANG_BIND_SECONDS: 'soon' is not"):
        load({})


def test_a_wrong_line_is_named_with_its_file_and_value(settings_file):
    path = settings_file("bind_concurrency: 0\n")
    with pytest.raises(SettingsError, match=f"settings file {path}, bind_concurrency: 0 is not"):
        load({"settings": path})


def test_a_name_that_does_not_exist_is_no_setting(settings_file):
    with pytest.raises(SettingsError, match=r"no setting 'levles'; known: .*levels"):
        load({"settings": settings_file("levles: a\n")})


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("- a\n- b\n", "setting: value", id="a_list"),
        pytest.param("a: [", "not YAML", id="broken"),
        pytest.param("a: !!python/object:os.system x", "not YAML", id="code"),
    ],
)
def test_a_file_that_holds_no_settings(settings_file, text, complaint):
    with pytest.raises(SettingsError, match=complaint) as told:
        load({"settings": settings_file(text)})
    assert len(str(told.value).splitlines()) == 1


@pytest.mark.parametrize("name", ["native_pod_groups", "backfill", "preempt", "needs_nodes"])
def test_off_and_on_need_no_quotes_in_a_file(settings_file, name):
    assert getattr(load({"settings": settings_file(f"{name}: off\n")}), name) == "off"


def test_a_switch_that_cannot_be_on_says_so(settings_file):
    with pytest.raises(SettingsError, match=r"backfill: True is not valid: Input should be 'off'"):
        load({"settings": settings_file("backfill: on\n")})


def test_an_empty_file_changes_nothing(settings_file):
    assert load({"settings": settings_file("")}) == Settings()


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(SettingsError, match="cannot be read"):
        load({"settings": tmp_path / "absent.yaml"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tick_seconds", 0),
        ("hold_seconds", -1),
        ("hold_seconds", float("nan")),
        ("refusal_seconds", float("inf")),
        ("keep_alive_seconds", 90),
        ("filter_body_bytes", 10),
        ("percentage_of_nodes_to_score", 101),
        ("log_level", "loud"),
        ("extender_listen", "127.0.0.1:70000"),
        ("full_nodes", "maybe"),
        ("neighbour_lease", "no-namespace"),
        ("neighbour_lease", "one/two/three"),
        ("own_lease", "no-namespace"),
        ("pod_ip", "corral.example.com"),
        ("leader_service", "corral-extender"),  # of no Lease
        ("admission_namespace_selector", "team in (a"),
        ("admission_pod_selector", 7),
        ("levels", [7]),
        ("levels", 7),
        ("absent_pods_in", 7),
        ("absent_pods_in", "team-a"),
        ("absent_pods_in", "=7"),
    ],
)
def test_values_that_cannot_be_meant(name, value):
    with pytest.raises(SettingsError, match=f"--{name.replace('_', '-')}: .* is not valid"):
        load({name: value})


def test_one_lease_decides_who_acts():
    both = {"neighbour_lease": "home/scheduler", "own_lease": "home/corral"}
    with pytest.raises(SettingsError, match=r"own-lease: .*neighbour_lease says already who acts"):
        load(both)
    led = {"own_lease": "home/corral", "pod_ip": "fd00::1", "leader_service": "corral-extender"}
    assert load(led).leader_service == "corral-extender"


@pytest.mark.parametrize(
    ("others", "said"),
    [
        pytest.param({}, "needs_nodes", id="marks_for_autoscalers_by_default"),
        pytest.param({"needs_nodes": "never"}, "needs_nodes", id="marks_for_autoscalers"),
        pytest.param(
            {"needs_nodes": "off", "provisioning_class": "*"}, "provisioning_class", id="requests"
        ),
        pytest.param(
            {"needs_nodes": "off", "scheduler_name": "corral,kai-scheduler"},
            "kai_grouped_schedulers",
            id="members_made_later",
        ),
        pytest.param(
            {"needs_nodes": "off", "scheduler_name": ""}, "kai_grouped_schedulers", id="of_any"
        ),
    ],
)
def test_markers_are_refused_beside_what_they_do_not_go_with(others, said):
    with pytest.raises(SettingsError, match=f"--marker-resource: True is not valid: .*{said}"):
        load({"marker_resource": True, **others})


def test_markers_go_without_autoscalers():
    settings = load({"marker_resource": True, "needs_nodes": "off"})
    assert settings.marker_resource

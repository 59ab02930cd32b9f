"""`corral doctor` as it is called: its files, its output, its exit codes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from typing import Any

import pytest
import yaml
from typer.main import get_command
from typer.testing import CliRunner

from app.cli import main
from app.cli.doctor import checks
from tests.app.cli.doctor.installation import CONFIG, ROOT, edited


def run(*arguments: Any, stdin: str | None = None) -> Any:
    return CliRunner().invoke(main, ["doctor", *map(str, arguments)], input=stdin)


def checked(document: Any, *arguments: Any) -> Any:
    """What it says of a configuration, without a cluster."""
    text = document if isinstance(document, str) else yaml.safe_dump(document)
    return run("--no-cluster", "--config", "-", *arguments, stdin=text)


IGNORABLE = edited(CONFIG, ("extenders", 0, "ignorable"), True)
NO_PREEMPT = edited(CONFIG, ("extenders", 0, "preemptVerb"), "")


@pytest.mark.parametrize(
    ("document", "options", "code"),
    [
        pytest.param(CONFIG, [], 0, id="nothing_wrong"),
        pytest.param(CONFIG, ["--strict"], 0, id="nothing_wrong_strictly"),
        pytest.param(NO_PREEMPT, [], 0, id="a_warning"),
        pytest.param(NO_PREEMPT, ["--strict"], 1, id="a_warning_strictly"),
        pytest.param(IGNORABLE, [], 1, id="an_error"),
    ],
)
def test_the_exit_code_says_how_serious_it_is(document, options, code):
    ran = checked(document, *options)
    assert ran.exit_code == code, ran.output


def test_the_table_says_what_is_wrong_and_what_mends_it():
    lines = checked(IGNORABLE).stdout.splitlines()
    at, line = next((at, each) for at, each in enumerate(lines) if each.startswith("error"))
    assert line.split()[1] == "ignorable"
    assert "stdin: extenders[0].ignorable is true: " in line
    assert lines[at + 1].strip() == "→ ignorable: false"
    assert lines[-1].startswith("1 error, ")


@pytest.mark.parametrize(("output", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_a_machine_gets_the_same_as_data(output, read):
    ran = checked(IGNORABLE, "-o", output)
    assert ran.exit_code == 1
    document = read(ran.stdout)
    assert document["worst"] == "error"
    (wrong,) = [each for each in document["findings"] if each["level"] == "error"]
    assert (wrong["check"], wrong["thing"], wrong["field"]) == (
        "ignorable",
        "stdin",
        "extenders[0].ignorable",
    )
    assert wrong["value"] is True
    assert wrong["mend"] == "ignorable: false"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param(["--config", "/no/file"], "/no/file", id="no_config"),
        pytest.param(["--settings", "/no/file"], "/no/file", id="no_settings"),
        pytest.param(["--config", "-", "--settings", "-"], "only one file", id="stdin_twice"),
        pytest.param(["--mode", "beside"], "--write-config", id="mode_alone"),
        pytest.param(["--write-config", "1.2"], "'1.2' is not one of 1.34, 1.35", id="old_minor"),
        pytest.param(["--write-config", "../x"], "'../x' is not one of", id="no_minor"),
        pytest.param(["--write-config", "1.36", "--mode", "x"], "sidecar, beside", id="mode"),
        pytest.param(["--canary"], "--no-cluster", id="canary_nowhere"),
        pytest.param([], "--config", id="nothing_to_check"),
    ],
)
def test_options_that_cannot_be_are_said_in_one_sentence(options, said):
    ran = run("--no-cluster", *options)
    assert ran.exit_code == 2
    assert said in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert ran.stdout == ""


def test_an_output_that_there_is_not_names_those_that_there_are():
    ran = run("--no-cluster", "-o", "xml")
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert "'xml' is not one of 'table', 'json', 'yaml', 'name'" in ran.stderr


def test_by_name_the_checks_are_written_that_found_something():
    assert checked(CONFIG, "-o", "name").stdout == ""
    assert checked(IGNORABLE, "-o", "name").stdout == "ignorable\n"


@pytest.mark.parametrize(
    ("option", "text", "code", "said"),
    [
        pytest.param("--config", "kind: Pod", 2, "no KubeSchedulerConfiguration", id="no_config"),
        pytest.param("--config", "a: [", 2, "stdin: ", id="no_yaml_config"),
        pytest.param("--settings", "levles: gke", 2, "no setting 'levles'; known: ", id="name"),
        pytest.param("--settings", "gang_bind_seconds: -1", 2, "gang_bind_seconds: -1", id="value"),
        pytest.param("--settings", "a: [", 2, "stdin: ", id="no_yaml"),
        pytest.param("--settings", "text", 2, "`setting: value` lines", id="no_mapping"),
    ],
)
def test_files_that_cannot_be_read_are_named(option, text, code, said):
    ran = run("--no-cluster", option, "-", stdin=text)
    assert ran.exit_code == code
    assert said in ran.stderr


def test_checks_that_were_not_made_for_one_reason_are_one_line():
    lines = checked(CONFIG).stdout.splitlines()
    reason = "no cluster was read"
    (at,) = (at for at, each in enumerate(lines) if reason in each)
    level, number, rest = re.split(r"\s{2,}", lines[at])
    assert (level, rest) == ("not checked", reason)
    data = json.loads(checked(CONFIG, "-o", "json").stdout)["findings"]
    alike = [each["check"] for each in data if each["text"] == reason]
    assert number == f"{len(alike)} checks"
    below = " ".join(lines[at + 1 :])
    assert all(name in below for name in alike)
    assert not any(line.startswith("not checked") and reason in line for line in lines[at + 1 :])


def test_the_environment_of_doctor_is_not_corrals(monkeypatch):
    monkeypatch.setenv("CORRAL_GANG_BIND_SECONDS", "nonsense")
    ran = run("--no-cluster", "--settings", "-", stdin="levels: gke")
    assert ran.exit_code == 0, ran.output


@pytest.mark.parametrize(
    ("mode", "suffix"),
    [
        ("sidecar", ""),
        ("beside", "-mtls"),
        ("marker", "-marker"),
        ("beside-marker", "-mtls-marker"),
    ],
)
def test_what_it_writes_passes_with_no_finding(mode, suffix):
    written = run("--write-config", "1.36", "--mode", mode)
    assert written.exit_code == 0
    ran = checked(written.stdout, "--strict", "-o", "json")
    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.stdout)["worst"] in ("ok", "not checked")
    assert written.stdout == (ROOT / f"scheduler-config/1.36{suffix}.yaml").read_text()


def test_every_option_has_an_example_that_is_an_option():
    command = get_command(main).commands["doctor"]
    options = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
    for each in command.params:
        _, marker, example = each.help.partition("Example: ")
        assert marker, each.name
        used = {word for word in example.split() if word.startswith("-") and word != "-"}
        assert used & {*each.opts, *each.secondary_opts}, each.name
        assert used <= options, each.name


@pytest.mark.slow
def test_an_installed_package_has_the_files_it_writes(tmp_path):
    # As hatchling puts a wheel together: packages, and what is included beside them.
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    for package in wheel["packages"]:
        shutil.copytree(ROOT / package, tmp_path / package)
    for source, target in wheel["force-include"].items():
        (tmp_path / target).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copy
        copy(ROOT / source, tmp_path / target)
    code = "from app.cli import main; main(['doctor', '--write-config', '1.36'])"
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.decode() == (ROOT / "scheduler-config/1.36.yaml").read_text()


def test_every_line_that_readme_shows_is_one_of_a_check():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"(?m)^    (ok|error|warning|not checked) +([a-z-]+)  ", text)
    assert len(shown) > 3
    assert {name for _, name in shown} <= {each.name for each in checks.CHECKS}


def test_findings_are_counted():
    wrong = edited(IGNORABLE, ("extenders", 0, "nodeCacheCapable"), False)
    assert checked(wrong).stdout.splitlines()[-1].startswith("2 errors, ")


def test_a_value_moves_no_cursor_and_begins_no_line():
    hostile = edited(CONFIG, ("kind",), "\x1b[2J\nok   everything")
    lines = checked({**hostile}).stdout.splitlines()
    assert not any("\x1b" in line or line.startswith("ok   everything") for line in lines)
    assert any("[2J ok   everything" in line for line in lines)

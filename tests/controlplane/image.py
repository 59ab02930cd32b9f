"""What deploy/Dockerfile makes, in a folder: its own instructions, carried out there.

    COPY, RUN of the stage `build`   in FOLDER/src, with FOLDER/opt for /opt
    FROM ${BASE}                     the Python of the tests; src and the tools that built go away
    ENV, USER, ENTRYPOINT, CMD       how `command` starts it

There is no container around it: it sees the machine's files, but may write none of its own.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path

from tests.controlplane.plane import ROOT

RUN_SECONDS = 240  # of one instruction: forty packages are fetched and checked
INSTRUCTION = re.compile(r"(?m)^([A-Z]+) ((?:\\\n|.)*)")
# As .dockerignore says; and of a Python what no image of one has, or what Corral brings itself.
LEFT_OUT = shutil.ignore_patterns("__pycache__")
NOT_OF_PYTHON = shutil.ignore_patterns("__pycache__", "site-packages", "test", "config-*")


@dataclass
class Image:
    """A folder that is becoming an image; `arguments` are those of the build."""

    folder: Path
    arguments: dict[str, str]
    environment: dict[str, str] = field(default_factory=dict)
    user: str = "0:0"
    entrypoint: list[str] = field(default_factory=list)
    arguments_of_run: list[str] = field(default_factory=list)
    _python: Path = Path()
    _stage: int = 0

    def build(self) -> None:
        """Carry out the Dockerfile. Raises: AssertionError with what an instruction has said."""
        self.folder.chmod(0o755)
        (self.folder / "src").mkdir()
        self._python = self._base()
        text = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
        for name, said in INSTRUCTION.findall(text):
            getattr(self, f"_{name.lower()}")(said.replace("\\\n", " ").strip())
        for left in ("src", "opt/build"):
            shutil.rmtree(self.folder / left)
        # Nobody may write, and all may read.
        subprocess.run(["chmod", "-R", "a-w,a+rX", self.folder], check=True)

    def command(self, *arguments: str, **settings: str) -> list[str]:
        """A run of it by its user, with nothing in its environment that it does not set itself.

        arguments: instead of CMD. settings: of Corral.
        """
        set_ = self.environment | {f"CORRAL_{name.upper()}": v for name, v in settings.items()}
        user, group = self.user.split(":")
        as_user = ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups"]
        return [
            *(as_user if os.geteuid() == 0 else ()),
            *("env", "--ignore-environment", "--chdir=/"),
            *(f"{name}={value}" for name, value in set_.items()),
            *(self.entrypoint + (list(arguments) or self.arguments_of_run)),
        ]

    def remove(self) -> None:
        """Delete it."""
        if os.geteuid() != 0:
            subprocess.run(["chmod", "-R", "u+w", self.folder], check=True)
        shutil.rmtree(self.folder)

    # -- instructions

    def _arg(self, said: str) -> None:
        name, _, default = said.partition("=")
        self.arguments.setdefault(name, default)

    def _from(self, _said: str) -> None:
        self._stage += 1

    def _workdir(self, said: str) -> None:
        assert said == "/src"

    def _copy(self, said: str) -> None:
        *sources, target = said.split()
        if sources[0] == "--from=build":
            assert sources[1] == target  # it is there already
            return
        for source in sources:
            to = self.folder / "src" / target
            to = to / Path(source).name if target.endswith("/") else to
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, to, ignore=LEFT_OUT)
            else:
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / source, to)

    def _run(self, said: str) -> None:
        assert self._stage == 1, "what runs is built before"
        script = self._here(said).replace("python -m venv", f"{self._python} -m venv")
        outside = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV")
        given = {name: value for name, value in os.environ.items() if name not in outside}
        ran = subprocess.run(
            ["sh", "-ec", script],
            cwd=self.folder / "src", env=given | self.environment, timeout=RUN_SECONDS,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, f"{said}\n{ran.stdout[-2000:]}{ran.stderr[-2000:]}"

    def _env(self, said: str) -> None:
        known = {"PATH": "/usr/bin:/bin", **self.arguments}
        for name, value in (each.split("=", 1) for each in shlex.split(self._here(said))):
            self.environment[name] = re.sub(r"\$(\w+)", lambda found: known[found[1]], value)

    def _label(self, _said: str) -> None:
        """What only those read who look at an image."""

    def _user(self, said: str) -> None:
        self.user = said

    def _entrypoint(self, said: str) -> None:
        self.entrypoint = json.loads(said)

    def _cmd(self, said: str) -> None:
        self.arguments_of_run = json.loads(said)

    def _here(self, said: str) -> str:
        return re.sub(r"(?<![\w.])/opt/", f"{self.folder}/opt/", said)

    def _base(self) -> Path:
        """A Python that the image's user may run: the tests' own, or a copy of it."""
        python = Path(sys._base_executable)  # type: ignore[attr-defined]
        python = python.resolve()
        if os.geteuid() != 0 or all(each.stat().st_mode & stat.S_IXOTH for each in python.parents):
            return python
        home, version = self.folder / "usr", f"python{sysconfig.get_python_version()}"
        (home / "bin").mkdir(parents=True)
        shutil.copy(python, home / "bin" / version)
        library = Path(sysconfig.get_path("stdlib", vars={"base": sys.base_prefix}))
        shutil.copytree(library, home / "lib" / version, ignore=NOT_OF_PYTHON)
        for shared in (Path(sys.base_prefix) / "lib").glob("libpython*.so*"):
            shutil.copy(shared, home / "lib")
        self.environment["LD_LIBRARY_PATH"] = str(home / "lib")
        return home / "bin" / version

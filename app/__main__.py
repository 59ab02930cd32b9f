"""`python -m app` is the `corral` command."""

from __future__ import annotations

from app.cli import main

main(prog_name="corral")

"""Random small changes to the code; a change that no test notices shows what the tests do not hold.

    python -m tests.mutants --count 50 --seed 1 --resume found.jsonl

Order to read: `syntax.py`, which changes there are; `trial.py`, how one is tried; `__main__.py`,
which are drawn and what is printed. `tests/sim/planted_bugs.py` are bugs that were thought of.
"""

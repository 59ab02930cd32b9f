"""Random small changes to the code; a change that no test notices shows what the tests do not hold.

    pytest -m 'not e2e' --cov --cov-context=test --cov-report=
    python -m tests.mutants --count 50 --seed 1 --covered .coverage --resume found.jsonl

Order to read: `syntax.py`, which changes there are; `covering.py`, which tests run a line;
`trial.py`, how one is tried; `__main__.py`, which are drawn and what is printed.
`tests/sim/planted_bugs.py` are bugs that were thought of.
"""

"""Whatever a tenant can store and a stranger can send, changed at random: nothing breaks.

    python -m tests.hostile --seed 1 --count 100000

Order to read: `mutations.py`, how an input is changed and made small again; `rig.py`, what it is
given to, and what must hold afterwards; `__main__.py`. Inputs that were thought of are with the
tests of the readers: `tests/app/extender`, `tests/app/admission`, `tests/app/kube`.
"""

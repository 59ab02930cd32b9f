"""What moves a gang on and what throws it back.

`ledger.py` (members come and go, plans are made and lost) over `reservations.py`; the
permit at /bind is `permit.py`. `placeholders.py` and `replacements.py` reserve places for
pods that do not exist; `invalidation.py` and `repair.py` follow nodes that change or fail;
`audit.py` compares the books with the records.
"""

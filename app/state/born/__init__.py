"""Gangs that are planned when their first pod is created: born in place.

    /mutate ──▶ births: a plan for all pods, by placeholders ──▶ the pod is stored narrowed, no gate
    watch, /filter ──▶ the pods take the places over, one by one ──▶ /bind, together as any gang's

`births.py` plans such gangs and ends those of which not all pods come. `giving_back.py` gives pods
back to their controller whose gang could start elsewhere only, `kept_places.py` keeps that place,
and `suspended.py` has Jobs go on that were suspended for it.
"""

"""Why a gang is where it is, and what would change that: computed when it is read.

    engine ──gangs.py──▶ GangView                    a word and a sentence, without a search
    engine ──asking.py─▶ Asking, a copy ──answering.py, in a thread──▶ Explanation
    engine ──topology/map.py──▶ Known, a copy ──drawn, in a thread──▶ MapPage

`view.py` is what people and programs get; `app.api` and `app.cli` render it. `advice.py` says for
each reason what makes Corral try again and what to do, `decisions.py` tells of what was decided
last, `elsewhere.py` of gangs that this Corral does not place, and `topology` of domains and nodes.
`finding.py` says which gangs are meant. Nothing here changes the engine.
"""

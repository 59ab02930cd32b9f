"""Why a gang is where it is, and what would change that: computed when it is read.

    engine ──gangs.py──▶ GangView                    a word and a sentence, without a search
    engine ──asking.py─▶ Asking, a copy ──answering.py, in a thread──▶ Explanation
    engine ──map.py────▶ Known, a copy ──drawn, in a thread──▶ MapPage, every node and its gangs

`view.py` is what people and programs get; `app.api` and `app.cli` render it. `advice.py` says for
each reason what makes Corral try again and what to do; `usage.py` adds domains up, `node.py` tells
of one node, and `decisions.py` of what was decided last. Nothing here changes the engine.
"""

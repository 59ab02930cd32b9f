"""Who has to go so that a gang has room: of the least importance, and as few as possible.

A victim is one pod, or all bound pods of one gang wherever they are: a gang that does not run in
part goes as a whole. Which set of them is the least is decided by `Cost`, in every domain that
could take the gang, and what is answered has been placed by the search itself.

Read in this order: `victim` (who may go, what that costs, the answers), `trial` (whether a domain
takes the gang without some of them), `outlook` (which domains could, and what it costs there at
least), `branch` (the cheapest set in one domain), `choose` (the cheapest of all).
"""

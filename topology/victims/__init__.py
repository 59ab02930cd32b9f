"""Who has to go so that a gang has room: of the least importance, and as few as possible.

A victim is one pod, or all bound pods of one gang wherever they are: a gang that does not run in
part goes as a whole. Which set of them is the least is decided by `Loss`, in every domain that
could take the gang, and what is answered has been placed by the search itself.

Read in this order: `victim` (who may go, what is lost with them, the answers), `table` (those who
may go, as arrays), `trial` (whether a domain takes the gang without some of them), `outlook` (which
domains could, and what is lost there at least), `branch` (the least set in one domain), `thin`
(who of a set may stay after all), `choose` (the least of all).
"""

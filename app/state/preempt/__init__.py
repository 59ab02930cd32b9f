"""A gang that waits, and the pods of lower priority that would have to go for it.

    waits for long enough ─▶ SeekRoom ─▶ RoomRequest, on a copy of the books ─▶ RoomAnswer ─▶ event

The search may take a tenth of a second, so the engine does not make it: it says that it is wanted,
hands out all that the answer depends on, and takes the answer as an input. Where the settings let
pods be evicted, the place that was found is kept, and they are.

Read in this order: `standing` (who is where), `room` (the request and its answer), `making_room`
(which gangs ask, when, and what is said of the answer), `plans` (the answer carried out),
`left_alone` (who goes for no gang for a while).
"""

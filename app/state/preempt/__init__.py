"""A gang that waits, and the pods of lower priority that would have to go for it.

    waits for long enough ─▶ SeekRoom ─▶ RoomRequest, on a copy of the books ─▶ RoomAnswer ─▶ event

The search may take a tenth of a second, so the engine does not make it: it says that it is wanted,
hands out all that the answer depends on, and takes the answer as an input. Where the settings let
pods be evicted, the place that was found is kept, and they are.

Read in this order: `standing` (who is where), `room` (the request and its answer), `making_room`
(which gangs ask, when, and what is said of the answer), `room_plan` and `room_plans` (the answer
carried out, step by step), `victims` (whom it has evicted), `kept_room` (whether its place is still
enough), `noted_room` (what is known of it after a restart), `limits` (how many may go), `in_vain`
(gangs that others have gone for, and that have not started), `left_alone` (who goes for no gang for
a while).
"""

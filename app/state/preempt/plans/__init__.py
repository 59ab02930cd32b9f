"""The answer to a request for room carried out, step by step: one plan for a gang at a time.

Read in this order: `room_plan`, `room_plans` (what becomes of it), `limits` (how many may go at one
time), `victims` (whom it has evicted), `kept_room` (whether its place is still enough),
`noted_room` (what is known of it after a restart), `in_vain` (gangs that others have gone for, and
that have not started).
"""

"""What is known of every domain at once, before and between the steps of a walk.

`headroom` (how many pods each still takes), `bounds` (which certainly do not take a group),
`scores` (how full a group would leave them).
"""

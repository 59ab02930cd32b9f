"""Rows that say what a sum cannot: a pod that requests a part of a device stands on one device.

    2 devices, a pod of 0.6 on each      0.8 are free, and no device has 0.5
    row "over 1/2": 2 to a device        of 4 the two take 2 each; one of 0.5 would take 1
    row "over 1/3": 6 to a device        of 12 the two take 3 each; one of 0.5 would take 3

Which device a pod has is not known to all alike. So these rows refuse only what no way to put the
pods on devices has room for. The row "over 1/(k+1)" offers k(k+1) to a device. A pod of a share x
takes k(k+1)x if (k+1)x is a whole number, else k+1 for each whole number below: what stands on one
device never takes more than that has. Rows add up like any resource, for what runs, what is held,
and all the pods of a gang.

Of equal shares of more than 1/(ROWS+1) just as many fit by these rows as on the devices.
Source: the dual feasible functions u(k) of Fekete and Schepers, "New classes of fast lower bounds
for bin packing problems", Mathematical Programming 91 (2001).
"""

from __future__ import annotations

# On recorded clusters of shares these find 42 to 88 % of the nodes that a sum alone is wrong about,
# three rows 17 to 60 %, and eight no more than 90 %.
ROWS = 4
AMOUNT_MAX = 2**61  # as `topology.model.resources`


def names(resource: str) -> tuple[str, ...]:
    """What the rows of a resource are called; no resource has a name with blanks."""
    return tuple(f"{resource} on one device (over 1/{row + 1})" for row in _NUMBERS)


def taken(amount: int, parts: int) -> tuple[int, ...]:
    """What a pod takes in each row. Units: of `parts` to a device.

    One that requests whole devices has them alone. What else is more than one device may be spread
    in many ways, and takes nothing here.
    """
    if amount <= parts:
        return tuple(_of_share(row, amount, parts) for row in _NUMBERS)
    return offered(amount, parts) if amount % parts == 0 else _NOTHING


def _of_share(row: int, amount: int, parts: int) -> int:
    whole, rest = divmod((row + 1) * max(0, amount), parts)
    return (row + 1 if rest else row) * whole


def offered(amount: int, parts: int) -> tuple[int, ...]:
    """What a node with so many parts offers in each row; a part of a device counts as one."""
    devices = max(0, -(-amount // parts))
    return tuple(min(row * (row + 1) * devices, AMOUNT_MAX) for row in _NUMBERS)


_NUMBERS = range(1, ROWS + 1)
_NOTHING = (0,) * ROWS

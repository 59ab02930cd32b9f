"""Sentences about gangs that wait for nodes to be made."""

from __future__ import annotations

from dataclasses import replace

from app.dialects.provisioning import keys
from app.dialects.spec import GangKey
from topology.model.answer import NoFit


def needs_nodes(key: GangKey, lack: NoFit | None) -> str:
    """The gang lacks nothing but capacity: what the condition of its pods says to autoscalers."""
    if lack is None:
        return f"gang {key} needs nodes"
    return f"gang {key} needs nodes: {replace(lack, excluded=(), leader='', beside=())}"


def fragmented(key: GangKey, level: str) -> str:
    """The gang asks for nodes, and none will come."""
    return (
        f"gang {key} gets no new nodes: its pods would fit if they need not be in one {level}, and"
        " node autoscalers see no more than that; a node group or NodePool for each domain of that"
        " level lets them add what is missing"
    )


def others_come_later(key: GangKey, absent: int) -> str:
    """The gang asks for nodes, and none will come before there are more pods of it."""
    pods, do, those = ("1 pod", "does", "it") if absent == 1 else (f"{absent} pods", "do", "them")
    return (
        f"gang {key} gets no new nodes: {pods} of it {do} not exist yet, the others fit on free"
        f" nodes, and node autoscalers see no more than that; have its controller make {those} at"
        " once, a StatefulSet by podManagementPolicy Parallel"
    )


def no_nodes_for_narrowed(key: GangKey) -> str:
    """The gang needs nodes, and none would be made for its pods, nor serve them."""
    return (
        f"gang {key} gets no new nodes: its pods are narrowed to nodes where it has no place any"
        " more, and node autoscalers make no others for such pods; it starts there once there is"
        " room again; else delete them and create them anew"
    )


def new_nodes_released(key: GangKey, nodes: int, level: str = "", unplaced: int = 0) -> str:
    """Too few nodes have come for a gang that asked for some; so many are in no domain of a level.

    Then it is the node group that lacks a label.
    """
    came, are, have = ("node", "is", "has") if nodes == 1 else (f"{nodes} nodes", "are", "have")
    if unplaced == nodes:
        what = f"that came {have} no {level} and {are}"
    elif unplaced:
        what = f"that came, {unplaced} of them without {level}, {are} too few and"
    else:
        what = f"that came {are} too few and"
    return f"gang {key} needs more nodes: the {came} {what} kept for it no longer"


def not_accepted(key: GangKey, name: str, class_name: str, seconds: float) -> str:
    """No controller serves the class of a gang's request."""
    return (
        f"ProvisioningRequest {name} of gang {key} was not accepted in {seconds:.0f} s, so no"
        f" controller serves class {class_name}: its pods are marked for node autoscalers instead"
    )


def not_requested(key: GangKey, why: str) -> str:
    """The gang cannot ask by a request."""
    return (
        f"gang {key} makes no ProvisioningRequest: {why}; its pods are marked for node"
        " autoscalers instead"
    )


def not_provisioned(key: GangKey, name: str, why: str) -> str:
    """A gang's request has brought no nodes for long, and is not over."""
    return (
        f"ProvisioningRequest {name} of gang {key} has no nodes yet: {why}; who serves it tries"
        " again; a request is for nodes of one node group, and where none may have so many, pods"
        f" with an empty annotation {keys.CLASS} are marked instead"
    )


def request_ended(key: GangKey, name: str, why: str, *, is_last: bool) -> str:
    """A gang's request brings no nodes any more."""
    next_step = "delete it to have another one made" if is_last else "another one is made"
    return f"ProvisioningRequest {name} of gang {key} brings no nodes: {why}; {next_step}"


def capacity_revoked(key: GangKey, name: str, why: str) -> str:
    """The nodes of a gang's request may be taken away; its pods that run are not moved."""
    return f"the nodes of ProvisioningRequest {name} of gang {key} are withdrawn: {why}"

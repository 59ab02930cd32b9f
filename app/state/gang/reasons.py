"""Why a gang is where it is, as one word: the reason codes that people and programs read.

They are a closed set. README says of each what it means and what to do.
"""

from __future__ import annotations

import enum


class Reason(enum.StrEnum):
    """One of these holds for every gang at every time, and for every answer about one."""

    # It waits for others than Corral.
    INCOMPLETE = "Incomplete"  # pods are missing
    GATED = "Gated"  # a scheduling gate that is not Corral's
    UNREAD = "Unread"  # what declares the gang, or labels of its pods, has not been read yet
    INVALID = "Invalid"  # what its objects and pods say contradicts itself, or cannot be kept
    UNKNOWN_TOPOLOGY = "UnknownTopology"  # no topology has the levels that it names
    # It waits for a place.
    QUEUED = "Queued"  # complete, and not tried yet
    BACKING_OFF = "BackingOff"  # its plan was lost, and the next search is put off
    SEARCHING = "Searching"  # the search for a place takes long, and goes on
    DOES_NOT_FIT = "DoesNotFit"
    NARROWED_APART = "NarrowedApart"  # its pods may go to nodes only that cannot serve it together
    NAMESPACE_BUDGET = "NamespaceBudget"  # too many places for pods that do not exist yet
    QUOTA = "Quota"  # a ResourceQuota would keep some of its pods from being made
    SEARCH_FAILED = "SearchFailed"  # an error of Corral's own
    # It has a place.
    AWAITING_SCHEDULER = "AwaitingScheduler"  # kube-scheduler has not brought every pod to /bind
    REFUSED_BY_SCHEDULER = "RefusedByScheduler"  # it did not bring some pod at all
    STARTING = "Starting"  # its pods are being bound
    RUNNING = "Running"
    ENDED = "Ended"
    # This Corral does not place it.
    OTHER_SCHEDULER = "OtherScheduler"  # its pods name a scheduler that Corral does not serve
    NOT_LEADING = "NotLeading"  # another pod of Corral's acts, or none
    NOT_READY = "NotReady"  # this Corral has not read the cluster, or is stopping

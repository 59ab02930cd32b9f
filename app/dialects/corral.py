"""Our own annotations: written by Corral only, never read to decide anything."""

from __future__ import annotations

PREFIX = "corral.dev/"
GANG = PREFIX + "gang"  # in the Binding: the gang this pod started with
DOMAIN = PREFIX + "domain"  # in the Binding: the domain the gang's pod set was placed in
WAKE = PREFIX + "wake"  # changes whenever we want kube-scheduler to look at the pod again

"""Whether what a gang requires to be together is together, by what a journal says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from app.dialects import corral
from app.dialects.spec import GangKey, GangSpec, GroupSpec, LeafSpec, Within
from app.kube.core.objects import PodRecord
from app.state.journal.checking.belonging import Belonging, parts_of
from app.state.journal.checking.findings import Findings
from app.state.journal.checking.places import Places
from topology.model.request import Slice


@dataclass(slots=True)
class Together:
    """Judges the domains of gangs."""

    belonging: Belonging
    places: Places
    findings: Findings

    def judge(self, key: GangKey, uid: str, *, is_whole: bool) -> None:
        """Judge each domain that a part of the gang with this pod requires.

        `is_whole`: no pod of it was lost since it started, so that its slices are whole, too.
        """
        spec = self.belonging.spec(key)
        if spec is None:
            return
        live = [each for each in self.belonging.live(key) if each.uid in self.places.place_of]
        by_leaf: dict[str, list[str]] = {}
        for each in live:
            by_leaf.setdefault(self.belonging.claims[each.uid].leaf, []).append(each.uid)
        together: dict[tuple[int, str, str], list[str]] = {}
        tiered: dict[tuple[int, str], tuple[Within, list[str]]] = {}
        for leaf, parts in parts_of(spec, by_leaf).items():
            groups = [part for part in parts if isinstance(part, GroupSpec)]
            declared = next((part for part in parts if isinstance(part, LeafSpec)), None)
            for each_uid in by_leaf[leaf]:
                for part in groups:
                    if level := part.constraint.required:
                        together.setdefault((id(part), part.name, level), []).append(each_uid)
                    if part.within is not None and not part.within.is_soft:
                        its = tiered.setdefault((id(part), part.name), (part.within, []))
                        its[1].append(each_uid)
                name, level = self._of_leaf(each_uid, declared)
                if level:
                    together.setdefault((0, name, level), []).append(each_uid)
        for (_, name, level), uids in together.items():
            if uid in uids:
                self._judge_together(key, name, level, uids)
        for (_, name), (within, uids) in tiered.items():
            if uid in uids:
                self._judge_tier(key, name, within, uids)
        if is_whole:
            self._judge_slices(key, spec, self.belonging.live(key))

    def _judge_slices(self, key: GangKey, spec: GangSpec, live: Sequence[PodRecord]) -> None:
        """Of a pod set that runs as a whole, each domain has whole slices.

        `live`: the gang's pods with and without a node.
        """
        leaves = {leaf.name: leaf for leaf in spec.leaves()}
        pod_sets: dict[str, list[str]] = {}
        cut: dict[str, tuple[Slice, ...]] = {}
        for each in live:
            claim = self.belonging.claims[each.uid]
            leaf = leaves.get(claim.leaf) or leaves.get("")
            name, _ = self._of_leaf(each.uid, leaf)
            pod_sets.setdefault(name, []).append(each.uid)
            is_declared = leaf is not None and leaf.constraint is not None
            cut[name] = leaf.slices if leaf is not None and is_declared else claim.said.slices
        for name, uids in pod_sets.items():
            if not cut[name] or any(uid not in self.places.bound for uid in uids):
                continue  # it does not run as a whole, or was not started by what is judged
            for each_slice in cut[name]:
                self._judge_slice(key, name, each_slice, uids)

    def _judge_slice(self, key: GangKey, name: str, cut: Slice, uids: list[str]) -> None:
        if len(uids) % cut.pods:
            return
        paths = [self.places.path(uid, cut.level, self.places.path_at.get(uid, {})) for uid in uids]
        if any(path is None for path in paths):
            return
        self.findings.found.domains += 1
        counts = Counter("/".join(path) for path in paths if path is not None)
        torn = sorted(f"{domain} has {pods}" for domain, pods in counts.items() if pods % cut.pods)
        if torn:
            part = f"{name}: " if name and not name.startswith("(") else ""
            said = f"slices of {cut.pods} pods, each in one {cut.level}: {', '.join(torn)}"
            self.findings.of_gang("in its domains", key, f"{part}{said}")

    def _of_leaf(self, uid: str, leaf: LeafSpec | None) -> tuple[str, str | None]:
        """What tells a pod's set from others, and the level that it requires."""
        if leaf is not None and leaf.constraint is not None:
            return leaf.name, leaf.constraint.required
        pod, claim = self.places.records[uid], self.belonging.claims[uid]
        # Where objects do not tell pods apart, what they request does.
        name = claim.leaf or f"({pod.request}, {corral.own_shape(pod)[0]})"
        return name, claim.said.constraint.required

    def _judge_together(self, key: GangKey, name: str, level: str, uids: list[str]) -> None:
        domains: dict[tuple[str, ...], list[str]] = {}
        for uid in uids:
            path = self.places.path(uid, level, self.places.path_at.get(uid, {}))
            there = self.places.nodes.get(self.places.place_of[uid])
            if path is None:
                self.findings.found.unjudged[f"pods on nodes without a value at {level}"] += 1
                return
            if there is not None and self.places.path(uid, level, there.labels) != path:
                self.findings.found.unjudged[
                    "gangs of which a node has moved to another domain"
                ] += 1
                return
            domains.setdefault(path, []).append(uid)
        self.findings.found.domains += 1
        # Others may have put them apart before; Corral has to follow none of these.
        before = [
            d for d, its in domains.items() if any(uid not in self.places.bound for uid in its)
        ]
        if len(domains) > 1 and len(before) <= 1:
            where = ", ".join(sorted("/".join(each) for each in domains))
            part = f"{name}: " if name and not name.startswith("(") else ""
            self.findings.of_gang("in its domains", key, f"{part}one {level} is required: {where}")

    def _judge_tier(self, key: GangKey, name: str, within: Within, uids: list[str]) -> None:
        try:
            tier = self.places.tiered.widest(within)
        except KeyError:
            self.findings.found.unjudged["groups in a tier that no domain has"] += 1
            return
        if tier is None:
            return
        for uid in uids:
            there = self.places.nodes.get(self.places.place_of[uid])
            if there is not None and self.places.tiered.around(there) != self.places.around.get(
                uid
            ):
                self.findings.found.unjudged[
                    "gangs of which a node has moved to another domain"
                ] += 1
                return
        self.findings.found.domains += 1
        around = {uid: self.places.around.get(uid, frozenset()) for uid in uids}
        before = [its for uid, its in around.items() if uid not in self.places.bound]
        if self.places.tiered.are_together([*around.values()], tier):
            return
        # Others may have put them apart before; Corral has to follow none of these.
        if not before or self.places.tiered.are_together(before, tier):
            part = f"{name}: " if name and not name.startswith("(") else ""
            where = ", ".join(sorted({self.places.place_of[uid] for uid in uids}))
            said = f"one domain of at most tier {tier} is required, and none has {where}"
            self.findings.of_gang("in its domains", key, f"{part}{said}")

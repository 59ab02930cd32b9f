"""All that the options ask to be read, put together."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from app.cli.common.api_server import connected
from app.cli.common.options import HOME_KUBECONFIG
from app.cli.doctor import installed, shipped
from app.cli.doctor.configuration import SchedulerConfig, config_in
from app.cli.doctor.findings import Problem, error
from app.cli.doctor.reading import cluster, files
from app.cli.doctor.reading.handshakes import handshakes
from app.cli.doctor.seen import Object, OwnSettings, Seen, Unread
from app.errors import ApiError, CorralError, DecodeError, NotFound, SettingsError
from app.kube.client.transport import Transport
from app.settings import Settings

NO_CONFIG = Unread("no KubeSchedulerConfiguration was read: --config FILE names one")
NO_SETTINGS = Unread("no settings of Corral were read: --settings FILE names them")


@dataclass(frozen=True, slots=True)
class Asked:
    """What the options say."""

    config: str | None
    settings: str | None
    kubeconfig: str | None
    context: str | None
    namespace: str
    cluster: bool
    canary: str
    """The namespace of the canary; "": no canary."""


def read(asked: Asked) -> Seen:
    """Read files first, then the cluster.

    Raises: DecodeError, SettingsError, OSError for a file that cannot be read.
    """
    seen = Seen(
        config=files.config_of(asked.config) if asked.config else NO_CONFIG,
        settings=files.settings_of(asked.settings) if asked.settings else NO_SETTINGS,
        shipped=shipped.minors(),
    )
    if not asked.cluster:
        return seen
    has_own = Path(HOME_KUBECONFIG).expanduser().exists()
    return asyncio.run(_with_cluster(asked, seen, has_own=has_own))


async def _with_cluster(asked: Asked, seen: Seen, *, has_own: bool) -> Seen:
    """`has_own`: the user has a kubeconfig where kubectl looks for one."""
    try:
        transport = await connected(asked.kubeconfig, asked.context)
    except SettingsError as wrong:
        if asked.kubeconfig or asked.context or has_own:
            raise
        return _unread(seen, Unread(f"no cluster is named: {wrong}"))
    try:
        try:
            skew = await cluster.skew(transport)
        except ApiError as wrong:
            problem = error("the API server", str(wrong))
            return replace(
                _unread(seen, Unread("the API server did not answer")), faults=(problem,)
            )
        return await _read(asked, transport, replace(seen, skew=skew))
    finally:
        await transport.close()


def _unread(seen: Seen, why: Unread) -> Seen:
    """The same without anything of the cluster."""
    return replace(
        seen,
        deployment=why,
        pods=why,
        denied=why,
        topology=why,
        members=why,
        webhooks=why,
        policies=why,
        handshakes=why,
        skew=why,
        version=why,
        readiness=why,
        canary=why,
    )


async def _read(asked: Asked, transport: Transport, seen: Seen) -> Seen:
    part = cluster.part
    deployment = await part(
        f"Deployments of {asked.namespace}", cluster.deployment(transport, asked.namespace)
    )
    seen = replace(seen, deployment=deployment)
    if isinstance(deployment, dict):
        seen = await _configured(transport, seen, deployment)
    own = seen.settings
    settings = (files.settings_from({}, "") if isinstance(own, Unread) else own).values
    seen = replace(
        seen,
        version=await part("version", cluster.version(transport)),
        webhooks=await part("webhooks", cluster.webhooks(transport)),
        policies=await part("policies", cluster.policies(transport)),
        topology=await part("nodes", cluster.topology(transport, settings)),
        members=await part("pods", cluster.members(transport, settings)),
    )
    webhooks = seen.webhooks
    tried = webhooks if isinstance(webhooks, Unread) else await handshakes(webhooks)
    seen = replace(seen, handshakes=tried)
    if isinstance(deployment, dict):
        seen = await _running(transport, seen, deployment, settings)
    else:
        why = deployment
        seen = replace(seen, pods=why, denied=why, readiness=why)
    if not asked.canary:
        return replace(seen, canary=Unread("--canary was not given"))
    scheduler = settings.scheduler_name.split(",")[0].strip()
    canary = await part("canary", cluster.canary(transport, asked.canary, scheduler))
    return replace(seen, canary=canary)


async def _running(
    transport: Transport, seen: Seen, deployment: Object, settings: Settings
) -> Seen:
    """With what the Deployment's pods are and may do."""
    part = cluster.part
    config = seen.config
    lease = None if isinstance(config, Unread) else config.content.leader_election.lease
    pods = await part("pods of Corral", cluster.pods_of(transport, deployment))
    return replace(
        seen,
        pods=pods,
        readiness=pods
        if isinstance(pods, Unread)
        else await cluster.readiness(transport, pods, settings),
        denied=await part("rights", cluster.denied(transport, deployment, settings, lease)),
    )


async def _configured(transport: Transport, seen: Seen, deployment: Object) -> Seen:
    """With the configuration and the settings that the Deployment names, where no file was."""
    faults: list[Problem] = []
    if seen.config is NO_CONFIG:
        seen = replace(seen, config=await _config(transport, deployment, faults))
    if seen.settings is NO_SETTINGS:
        seen = replace(seen, settings=await _settings(transport, deployment, faults))
    return replace(seen, faults=tuple(faults))


async def _config(
    transport: Transport, deployment: Object, faults: list[Problem]
) -> SchedulerConfig | Unread:
    home, name = deployment["metadata"]["namespace"], deployment["metadata"]["name"]
    place = installed.config_file(deployment)
    if place is None:
        return Unread(
            f"Deployment {home}/{name} has no kube-scheduler with a --config of a ConfigMap:"
            " --config FILE names its configuration"
        )
    where = f"ConfigMap {home}/{place.name}"
    try:
        data = await cluster.config_map(transport, home, place.name)
        if place.key not in data:
            raise DecodeError(f"{where}: data has no {place.key}")
        return config_in(data[place.key], where)
    except (ApiError, DecodeError) as wrong:
        return _fault(where, wrong, faults)


async def _settings(
    transport: Transport, deployment: Object, faults: list[Problem]
) -> OwnSettings | Unread:
    home, name = deployment["metadata"]["namespace"], deployment["metadata"]["name"]
    where = f"Deployment {home}/{name}"
    container = installed.corral_container(deployment)
    if container is None:
        return Unread(f"{where} has no container that runs `corral serve`")
    try:
        maps: dict[str, Mapping[str, str]] = {}
        for each in installed.environment_maps(container):
            try:
                maps[each] = await cluster.config_map(transport, home, each)
            except NotFound:
                continue  # it may be optional; without one that is not the pod does not start
        given = installed.given(container, maps)
        file = installed.settings_file(deployment)
        if file is None:
            return files.settings_from(given, where)
        data = await cluster.config_map(transport, home, file.name)
        return files.settings_in(data.get(file.key, ""), where, given)
    except (ApiError, SettingsError) as wrong:
        return _fault(where, wrong, faults)


def _fault(where: str, wrong: CorralError, faults: list[Problem]) -> Unread:
    faults.append(error(where, str(wrong).removeprefix(f"{where}: ")))
    return Unread(f"{where} could not be read")

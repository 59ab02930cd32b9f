"""ProvisioningRequest: no vocabulary of gangs, but how cluster-autoscaler is asked for nodes.

    keys      names, labels, annotations, classes
    records   what is kept of a request, and of the PodTemplates that it names
    making    the objects that ask, made from a member's own JSON
    dialect   what is watched, and what is wrong with a class that pods name

One request asks for the nodes of one whole gang; Corral makes it and reads it back from the watch.
Source: kubernetes/autoscaler cluster-autoscaler/apis/provisioningrequest/autoscaling.x-k8s.io/v1.
"""

from app.dialects.provisioning.dialect import ProvisioningDialect

DIALECT = ProvisioningDialect()

__all__ = ["DIALECT"]

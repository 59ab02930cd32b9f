"""DeviceClass: no vocabulary of gangs, but which resources kube-scheduler takes from drivers.

A pod may request devices of a class as a resource. No node need offer it: kube-scheduler makes a
claim for the pod, and looks for a device by that.
"""

from app.dialects.devices.dialect import DIALECT

__all__ = ["DIALECT"]

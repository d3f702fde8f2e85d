"""Changing targets: the transaction of one, the roll-out over many, and how both are stopped."""

from fleetctl.execute.context import RunContext
from fleetctl.execute.converge import converge
from fleetctl.execute.rollout import Budget, failure, in_parallel
from fleetctl.execute.signals import stopping_gracefully

__all__ = ["Budget", "RunContext", "converge", "failure", "in_parallel", "stopping_gracefully"]

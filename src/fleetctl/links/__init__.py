"""Connections to nodes: over SSH (Fabric), or to this machine, with the same methods.

Other rooms import from here.
"""

from fleetctl.links.authorize import authorize
from fleetctl.links.connect import Connector
from fleetctl.links.host_keys import Ask, HostKeys, fingerprint
from fleetctl.links.link import (
    Link,
    Process,
    answers,
    collect,
    read_answers,
    send_questions,
    transport,
)
from fleetctl.links.local import LocalLink
from fleetctl.links.reasons import LoginRefused
from fleetctl.links.ssh import SshLink
from fleetctl.links.sudo import root_shell

__all__ = [
    "Ask",
    "Connector",
    "HostKeys",
    "Link",
    "LocalLink",
    "LoginRefused",
    "Process",
    "SshLink",
    "answers",
    "authorize",
    "collect",
    "fingerprint",
    "read_answers",
    "root_shell",
    "send_questions",
    "transport",
]

"""Connections to nodes: over SSH (Fabric), or to this machine, with the same methods.

Other rooms import from here.
"""

import sys
from importlib import import_module
from types import ModuleType

# paramiko and fabric import invoke, which imports unittest.mock and asyncio (30 ms) for its
# class MockContext. Here it gets a function that imports the real Mock when it is called.
if not {"invoke", "unittest.mock"} & sys.modules.keys():
    sys.modules["unittest.mock"] = _mock = ModuleType("unittest.mock")
    vars(_mock)["Mock"] = lambda **options: import_module("unittest.mock").Mock(**options)
    try:
        import_module("invoke")
    finally:
        del sys.modules["unittest.mock"]

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

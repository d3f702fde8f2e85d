"""Where a connection leads, now that ~/.ssh/config was asked."""

from __future__ import annotations

import getpass
import importlib
from dataclasses import dataclass

import paramiko

from fleetctl.errors import Exit, FleetError
from fleetctl.inventory import ssh_config
from fleetctl.model.fleet import Ssh


@dataclass(frozen=True, slots=True)
class Route:
    called: str
    host: str
    port: int
    user: str
    key_name: str
    """What known_hosts files call it."""
    identity_files: tuple[str, ...]
    jump: str | None
    proxy_command: str | None


class Routes:
    """The configuration is read once a run."""

    def __init__(self) -> None:
        text = "\n".join(ssh_config.lines())
        if "exec" in text.lower():
            paramiko.config.invoke = importlib.import_module("invoke")  # type: ignore[attr-defined]
        try:
            self._config = paramiko.SSHConfig.from_text(text)
        except paramiko.ConfigParseError as error:
            raise FleetError(f"~/.ssh/config: {error}", exit_code=Exit.USAGE) from None

    def to(self, ssh: Ssh) -> Route:
        """What the inventory says goes before what the configuration says."""
        said = self._config.lookup(ssh.host)
        host, port = said["hostname"], ssh.port or int(said.get("port", 22))
        files = [ssh.identity_file] if ssh.identity_file else said.get("identityfile", [])
        jump = ssh.jump or said.get("proxyjump", "none")
        return Route(
            called=ssh.host,
            host=host,
            port=port,
            user=ssh.user or said.get("user") or getpass.getuser(),
            key_name=said.get("hostkeyalias") or (host if port == 22 else f"[{host}]:{port}"),
            identity_files=tuple(files),
            jump=None if jump == "none" else jump,
            proxy_command=said.get("proxycommand"),
        )

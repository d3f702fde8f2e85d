"""The network of one lab: a bridge, and rules that keep its traffic inside.

Two rules hold whatever the nodes or the machine do. What arrives over the bridge is for this
machine or is rejected, also with forwarding enabled. And the lab's addresses never follow the
machine's default route, also when the bridge is gone."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.lab.command import LabError, run

CONTROLLER, REGISTRY, FIRST_NODE, LAST_NODE = 1, 2, 10, 254
LAST_RESORT = str(2**32 - 2)  # the metric of the least preferred route


@dataclass(frozen=True, slots=True)
class Network:
    slot: int

    @property
    def bridge(self) -> str:
        return f"fleetlab{self.slot}"

    @property
    def prefixes(self) -> tuple[tuple[str, str], ...]:
        return ("-4", f"10.97.{self.slot}.0/24"), ("-6", f"fd97:{self.slot:x}::/64")

    def ipv4(self, host: int) -> str:
        return f"10.97.{self.slot}.{host}"

    def ipv6(self, host: int) -> str:
        return f"fd97:{self.slot:x}::{host:x}"

    def link_local(self, host: int) -> str:
        """The link-local address that the kernel derives from the MAC address, with the zone of the
        bridge."""
        return f"fe80::97:ff:fe00:{(self.slot << 8) + host:x}%{self.bridge}"

    def mac(self, host: int) -> str:
        """A fixed MAC address, as on real machines, so that ARP caches of peers stay valid when a
        node restarts."""
        return f"02:97:00:00:{self.slot:02x}:{host:02x}"

    def namespace(self, host: int) -> str:
        return f"{self.bridge}-{host}"

    def up(self) -> None:
        for family, prefix in self.prefixes:
            run("ip", family, "rule", "add", "pref", "97", "iif", self.bridge, "unreachable")
            run("ip", family, "route", "add", "unreachable", prefix, "metric", LAST_RESORT)
        batch(
            f"link add {self.bridge} address {self.mac(CONTROLLER)} type bridge",
            f"address add {self.ipv4(CONTROLLER)}/24 dev {self.bridge}",
            f"address add {self.ipv4(REGISTRY)}/24 dev {self.bridge}",
            f"address add {self.ipv6(CONTROLLER)}/64 dev {self.bridge} nodad",
            # deprecated, so that the kernel does not use it as source address
            f"address add {self.ipv6(REGISTRY)}/64 dev {self.bridge} nodad preferred_lft 0",
            f"link set {self.bridge} up",
        )

    def attach(self, host: int, *, ipv4: bool, sees_controller: bool) -> None:
        """Make the network namespace of a node, connected to the bridge and configured."""
        namespace, cable = self.namespace(host), f"{self.bridge}v{host}"
        hidden = () if sees_controller else (self.ipv4(CONTROLLER), self.ipv6(CONTROLLER))
        run("ip", "netns", "add", namespace)
        batch(
            f"link add {cable} type veth peer name eth0 address {self.mac(host)} netns {namespace}",
            f"link set {cable} master {self.bridge} up",
        )
        batch(
            "link set lo up",
            f"address add {self.ipv6(host)}/64 dev eth0 nodad",
            *([f"address add {self.ipv4(host)}/24 dev eth0"] if ipv4 else []),
            "link set eth0 up",
            f"route add default via {self.ipv6(CONTROLLER)}",
            *([f"route add default via {self.ipv4(CONTROLLER)}"] if ipv4 else []),
            *(f"route add blackhole {address}" for address in hidden),
            namespace=namespace,
        )

        # a failed neighbour entry for this address would cause "no route" for a while
        batch(
            *(
                f"neigh replace {address} lladdr {self.mac(host)} dev {self.bridge} nud stale"
                for address in ([self.ipv4(host)] if ipv4 else []) + [self.ipv6(host)]
            )
        )

    def detach(self, host: int) -> None:
        run("ip", "link", "delete", f"{self.bridge}v{host}")
        run("ip", "netns", "delete", self.namespace(host))

    def down(self) -> None:
        """Remove the network, or what a crash has left of it."""
        for cable in Path("/sys/class/net").glob(f"{self.bridge}v*"):
            run("ip", "link", "delete", cable.name)
        for namespace in Path("/run/netns").glob(f"{self.bridge}-*"):
            run("ip", "netns", "delete", namespace.name)
        with suppress(LabError):
            run("ip", "link", "delete", self.bridge)
        for family, prefix in self.prefixes:
            with suppress(LabError):
                run("ip", family, "rule", "delete", "pref", "97", "iif", self.bridge)
            with suppress(LabError):
                run("ip", family, "route", "delete", "unreachable", prefix, "metric", LAST_RESORT)


def batch(*commands: str, namespace: str = "") -> None:
    where = ("-netns", namespace) if namespace else ()
    run("ip", *where, "-batch", "-", stdin="\n".join(commands))

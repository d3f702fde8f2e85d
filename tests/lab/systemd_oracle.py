"""systemd as the reference for a codec: the environment that a process of a real unit gets."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass

from tests.lab.lab import Lab
from tests.lab.node import Node

BATCH = 500  # variables per unit: far below the kernel's limits, and few units to start

COLLECT = """
systemctl daemon-reload
systemctl start $units || systemctl status --no-pager $units >&2
for unit in $units; do
    base64 -w0 "/proc/$(systemctl show -p MainPID --value $unit)/environ"; echo
done
systemctl stop $units
for unit in $units; do rm "/etc/systemd/system/$unit.service" "/etc/$unit.env"; done
"""


@dataclass(frozen=True, slots=True)
class Rendered:
    """The variables of one unit as a codec wrote them; either text, or both."""

    environment_file: str = ""
    unit_lines: str = ""  # `Environment=…` lines


def environments(lab: Lab, node: Node, batches: Sequence[Rendered]) -> list[dict[bytes, bytes]]:
    """For each batch, the environment of a process that systemd started with it.

    What systemd refuses is missing; what it adds itself (PATH, …) is included."""
    units = [f"oracle-{number}" for number in range(len(batches))]
    for unit, batch in zip(units, batches, strict=True):
        node.write(f"/etc/{unit}.env", batch.environment_file)
        node.write(
            f"/etc/systemd/system/{unit}.service",
            f"[Service]\nType=exec\nExecStart=/bin/sleep infinity\nKillSignal=SIGKILL\n"
            f"EnvironmentFile=/etc/{unit}.env\n{batch.unit_lines}\n",
        )
    output = lab.ssh(node, "sh -s", root=True, stdin=f'units="{" ".join(units)}"\n{COLLECT}')
    return [parse_environ(base64.b64decode(line)) for line in output.splitlines()]


def parse_environ(content: bytes) -> dict[bytes, bytes]:
    pairs = (entry.partition(b"=") for entry in content.split(b"\0") if entry)
    return {name: value for name, _, value in pairs}

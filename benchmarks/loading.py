"""How long an inventory takes to load and to select from, by its size."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from fleetctl.inventory import load, select

ROUNDS = 3


def inventory(size: int) -> str:
    nodes = "".join(
        f"  node-{n}:\n    ssh: {{host: 10.{n >> 16}.{n >> 8 & 255}.{n & 255}, user: ada}}\n"
        f"    groups: [racks]\n    tags: [rack-{n % 40}]\n    ollama: {{keep_alive: 24h}}\n"
        for n in range(size)
    )
    model = "models: {coder: {node: node-0, ollama_model: qwen3}}\n"
    return f"groups: {{racks: {{ollama: {{kv_cache_type: q8_0}}}}}}\nnodes:\n{nodes}{model}"


def main() -> None:
    print(f"best of {ROUNDS}, seconds; goal for 10,000 nodes: 3")
    print(f"{'nodes':>8}{'load':>8}{'select':>8}{'µs a node':>11}")
    with tempfile.TemporaryDirectory() as folder:
        for size in (100, 1000, 10_000, 20_000):
            file = Path(folder) / "fleet.yaml"
            file.write_text(inventory(size))
            loading, selecting = [], []
            for _ in range(ROUNDS):
                started = time.perf_counter()
                fleet, _ = load(file)
                loaded = time.perf_counter()
                select(fleet, "node-1*,!node-11,tag:rack-3,@racks")
                loading.append(loaded - started)
                selecting.append(time.perf_counter() - loaded)
            each = min(loading) / size * 1e6
            print(f"{size:8}{min(loading):8.2f}{min(selecting):8.3f}{each:11.0f}")


if __name__ == "__main__":
    main()

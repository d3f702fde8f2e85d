"""The package as others get it: a wheel in a bare environment, and an inventory for Ansible."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from fleetctl import __version__
from tests.conftest import ROOT, FleetctlIn, clean_environment

ANSIBLE = "ansible-core==2.19.14"


def environment(folder: Path, *packages: str) -> Path:
    """A virtual environment with these packages and nothing else; kept while they stay the same."""
    stamp = folder / "installed"
    if not stamp.exists() or stamp.read_text() != " ".join(packages):
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        pip = [str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *packages], check=True, cwd=ROOT)
        stamp.write_text(" ".join(packages))
    return folder / "bin"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.mark.slow
def test_the_wheel_works_in_a_bare_environment(built: Path, fleetctl: FleetctlIn) -> None:
    (wheel,) = built.glob("*.whl")
    program = environment(fleetctl.folder / "bare", str(wheel)) / "fleetctl"

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [program, *arguments],
            cwd=fleetctl.folder,
            env=clean_environment(fleetctl.folder),
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("init")
    assert "valid: 4 nodes" in run("validate", "--strict")
    assert "master_key_env" in run("docs", "gateway")
    assert json.loads(run("schema"))["properties"]
    assert "## Logging in" in run("docs", "troubleshooting")
    assert run("--version").strip() == f"fleetctl, version {__version__}"


def test_wheel_and_sdist_are_complete(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    (sdist,) = built.glob("*.tar.gz")
    in_wheel = set(zipfile.ZipFile(wheel).namelist())
    assert "fleetctl/py.typed" in in_wheel
    for folder in ("docs", "inventory", "playbooks", "templates"):
        for file in (ROOT / folder).rglob("*"):
            if file.is_file():
                assert f"fleetctl/data/{file.relative_to(ROOT)}" in in_wheel
    assert not [name for name in in_wheel if "tests" in name]
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    assert set(tracked.stdout.split()) - names == set()
    assert "Makefile" in names


def test_ansible_reads_our_inventory(fleetctl: FleetctlIn) -> None:
    """In an environment of its own, kept in .cache: installing Ansible takes a while."""
    ansible = environment(ROOT / ".cache" / "ansible", ANSIBLE)
    fleetctl.write((ROOT / "inventory" / "mixed-fleet.yaml").read_text())
    program = (
        f'"{sys.executable}" -m fleetctl inventory --ansible -i "{fleetctl.folder}/fleet.yaml"'
    )
    script = fleetctl.write(f"#!/bin/sh\n{program}\n", "dynamic")
    script.chmod(0o755)
    done = subprocess.run(
        [ansible / "ansible-inventory", "-i", script, "--list"],
        cwd=fleetctl.folder,
        env=clean_environment(fleetctl.folder),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    read = json.loads(done.stdout)
    assert read["minis"]["hosts"] == ["mini-1", "mini-2"]
    assert read["tag_gpu"]["hosts"] == ["workstation"]
    hosts = read["_meta"]["hostvars"]
    assert hosts["macbook"]["ansible_connection"] == "local"
    assert hosts["workstation"]["ansible_port"] == 2222
    assert hosts["mini-1"]["ollama_environment"]["OLLAMA_KV_CACHE_TYPE"] == "q8_0"

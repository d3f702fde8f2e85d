"""Files of the project are replaced whole, and stay whose they were."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fleetctl.project import write_whole


def test_a_new_file_gets_the_usual_mode(tmp_path: Path) -> None:
    file = tmp_path / "new" / "fleet.yaml"
    before = os.umask(0o027)
    try:
        write_whole(file, b"x")
    finally:
        os.umask(before)
    assert file.read_bytes() == b"x"
    assert file.stat().st_mode & 0o7777 == 0o640


def test_a_replaced_file_keeps_its_mode_and_its_owner(tmp_path: Path) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_bytes(b"old")
    file.chmod(0o464)
    if os.getuid() == 0:
        os.chown(file, 12, 34)
    before = file.stat()
    write_whole(file, b"new")
    after = file.stat()
    assert file.read_bytes() == b"new"
    assert (after.st_mode, after.st_uid, after.st_gid) == (
        before.st_mode, before.st_uid, before.st_gid,
    )  # fmt: skip
    assert after.st_ino != before.st_ino
    assert list(tmp_path.iterdir()) == [file]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    target = tmp_path / "shared" / "fleet.yaml"
    target.write_bytes(b"old")
    link = tmp_path / "fleet.yaml"
    link.symlink_to("shared/fleet.yaml")
    write_whole(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_what_fails_in_the_middle_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_bytes(b"old")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(file, b"new")
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]

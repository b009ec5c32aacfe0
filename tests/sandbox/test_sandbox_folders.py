"""Folders that a program filled are measured and removed, and nothing around them is touched."""

from __future__ import annotations

import os

from collabsim.sandbox.folders import remove, usage


def test_usage_counts_bytes_and_entries_beneath(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "file").write_bytes(b"x" * 10_000)
    size, entries = usage(tmp_path, 100)
    assert 10_000 <= size <= 20_000
    assert entries == 2


def test_counting_ends_above_the_limit(tmp_path):
    for number in range(50):
        (tmp_path / str(number)).touch()
    assert usage(tmp_path, 10)[1] == 11


def test_usage_follows_no_links(tmp_path):
    (tmp_path / "big").write_bytes(b"x" * 1_000_000)
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "link").symlink_to(tmp_path / "big")
    (inner / "loop").symlink_to(tmp_path, target_is_directory=True)
    size, entries = usage(inner, 100)
    assert size < 100_000  # a long link may take a block of its own
    assert entries == 2


def test_a_folder_goes_with_what_it_holds_and_links_lose_only_themselves(tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").touch()
    folder = tmp_path / "folder"
    (folder / "closed").mkdir(parents=True)
    (folder / "closed" / "file").touch()
    (folder / "closed").chmod(0)
    (folder / "link").symlink_to(kept, target_is_directory=True)
    remove(folder)
    assert not folder.exists()
    assert (kept / "file").exists()


def test_a_folder_that_is_nested_beyond_all_limits_goes(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    start = os.open(".", os.O_RDONLY)
    try:
        os.chdir(folder)
        for _ in range(3000):
            os.mkdir("d")
            os.chdir("d")
    finally:
        os.fchdir(start)
        os.close(start)
    remove(folder)
    assert not folder.exists()


def test_removing_what_is_not_there_changes_nothing_around_it(tmp_path):
    tmp_path.chmod(0o755)
    remove(tmp_path / "missing")
    assert tmp_path.stat().st_mode & 0o777 == 0o755


def test_removing_what_cannot_be_removed_changes_nothing_around_it(tmp_path, monkeypatch):
    folder = tmp_path / "folder"
    folder.mkdir()
    tmp_path.chmod(0o755)

    def refuse(*arguments, **named):
        raise PermissionError

    monkeypatch.setattr(os, "rmdir", refuse)
    remove(folder)
    assert tmp_path.stat().st_mode & 0o777 == 0o755

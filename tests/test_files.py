"""Files are written whole or stay as they were; links, devices and permissions are respected."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from permdist import _files
from permdist._files import check_place, read_bytes, write_atomically

needs_devices = pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="this system has no /dev/full"
)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_symbolic_link_is_followed(tmp_path):
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "target.txt", tmp_path / "link.txt"
    target.write_text("old")
    link.symlink_to("there/target.txt")
    write_atomically(link, [b"new"])
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert (names(tmp_path), names(target.parent)) == (["link.txt", "there"], ["target.txt"])
    target.unlink()  # a link that leads nowhere yet
    write_atomically(link, [b"again"])
    assert target.read_text() == "again"
    link.unlink()
    link.symlink_to("nowhere/target.txt")
    with pytest.raises(FileNotFoundError, match="nowhere: no such directory"):
        write_atomically(link, [b"lost"])
    link.unlink()
    link.symlink_to("link.txt")
    with pytest.raises(OSError, match=r"symbolic links.*link\.txt"):
        write_atomically(link, [b"lost"])


@pytest.mark.parametrize("kept", [0o600, 0o640, 0o755, 0o664])
def test_permissions_are_kept(tmp_path, kept):
    path = tmp_path / "file.txt"
    path.write_text("old")
    path.chmod(kept)
    write_atomically(path, [b"new"])
    assert (path.read_text(), mode(path)) == ("new", kept)


def test_new_files_have_the_permissions_that_new_files_have(tmp_path):
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "file.txt", [b"new"])
    finally:
        os.umask(before)
    assert mode(tmp_path / "file.txt") == 0o640


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser may give files away")
def test_the_owner_is_kept(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")
    os.chown(path, 12345, 54321)
    path.chmod(0o640)
    write_atomically(path, [b"new"])
    found = path.stat()
    assert (found.st_uid, found.st_gid, mode(path)) == (12345, 54321, 0o640)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_what_must_not_be_written_is_not_replaced(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")
    path.chmod(0o400)
    with pytest.raises(PermissionError, match=r"file\.txt"):
        write_atomically(path, [b"new"])
    path.chmod(0o600)
    tmp_path.chmod(0o500)
    try:
        for refused in (lambda: write_atomically(path, [b"new"]), lambda: check_place(path)):
            with pytest.raises(PermissionError, match=r"file\.txt"):
                refused()
    finally:
        tmp_path.chmod(0o700)
    assert (path.read_text(), names(tmp_path)) == ("old", ["file.txt"])


def test_hard_links_keep_the_old_contents(tmp_path):
    path, other = tmp_path / "file.txt", tmp_path / "other.txt"
    path.write_text("old")
    other.hardlink_to(path)
    write_atomically(path, [b"new"])
    assert (path.read_text(), other.read_text()) == ("new", "old")


@needs_devices
@pytest.mark.parametrize("name", ["full", "full.gz"])
def test_a_device_is_written_to_and_not_replaced(tmp_path, name):
    link = tmp_path / name
    link.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left on device") as caught:
        write_atomically(link, [b"x" * 100_000])
    assert caught.value.filename == str(link)
    assert stat.S_ISCHR(Path("/dev/full").stat().st_mode)
    assert names(tmp_path) == [name]
    write_atomically(Path("/dev/null"), [b"gone"])
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_a_pipe_is_written_to(tmp_path):
    pipe, found = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    write_atomically(pipe, [b"one ", b"two"])
    reader.join(10)
    assert found == [b"one two"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="this system has no /dev/stdout")
def test_the_standard_output_is_shared_with_others(tmp_path):
    script = (
        "import pathlib\nfrom permdist._files import write_atomically\nprint('a', flush=True)\n"
        "write_atomically(pathlib.Path('/dev/stdout'), [b'b\\n'])\nprint('c')\n"
    )
    with (tmp_path / "out.txt").open("w") as target:
        target.write("before\n")
        target.flush()
        subprocess.run([sys.executable, "-c", script], stdout=target, check=True)
    assert (tmp_path / "out.txt").read_text() == "before\na\nb\nc\n"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert found.stdout == b"a\nb\nc\n"


def test_folders_and_missing_folders_are_named(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    for path, kind, message in (
        (tmp_path / "folder", IsADirectoryError, "folder"),
        (tmp_path / "none" / "file.txt", FileNotFoundError, "none: no such directory"),
        (tmp_path / "file" / "below.txt", NotADirectoryError, "below"),
        (tmp_path / ("x" * 300), OSError, "File name too long"),
    ):
        for refused in (
            lambda path=path: write_atomically(path, [b""]),
            lambda p=path: check_place(p),
        ):
            with pytest.raises(kind, match=message):
                refused()
    assert names(tmp_path) == ["file", "folder"]
    longest = tmp_path / ("é" * 125 + ".txt")  # 254 bytes: nothing is added to them
    write_atomically(longest, [b"new"])
    assert longest.read_bytes() == b"new"


FULL = """
import pathlib, resource, signal, sys
from permdist._files import write_atomically
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, resource.RLIM_INFINITY))
try:
    write_atomically(pathlib.Path(sys.argv[1]), (b"x" * 1000 for _ in range(10)))
except OSError as error:
    print(error.strerror, error.filename == sys.argv[1])
"""


@pytest.mark.parametrize("before", [None, "old"])
def test_a_disk_that_fills_up_loses_nothing(tmp_path, before):
    """A limit on the size of files stands for it."""
    path = tmp_path / "file.txt"
    if before is not None:
        path.write_text(before)
    found = subprocess.run(
        [sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, check=True
    )
    assert found.stdout == "File too large True\n"
    assert names(tmp_path) == ([] if before is None else ["file.txt"])
    assert before is None or path.read_text() == before


def test_contents_are_on_disk_before_they_take_their_place(tmp_path, monkeypatch):
    path, done = tmp_path / "file.txt", []
    real = {name: getattr(os, name) for name in ("fsync", "replace")}

    def fsync(handle):
        kind = os.fstat(handle).st_mode
        done.append(("folder" if stat.S_ISDIR(kind) else "file", os.fstat(handle).st_size > 0))
        real["fsync"](handle)

    def replace(source, target):
        done.append(("move", Path(source).read_bytes() == b"new"))
        real["replace"](source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    write_atomically(path, [b"n", b"ew"])
    assert [name for name, _ in done] == ["file", "move", "folder"]
    assert done[0][1]
    assert done[1][1]


def test_an_error_on_the_way_leaves_nothing_behind(tmp_path):
    path = tmp_path / "file.txt.gz"
    write_atomically(path, [b"old"])

    def chunks():
        yield b"new"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, chunks())
    assert (read_bytes(path), names(tmp_path)) == (b"old", ["file.txt.gz"])


def test_nothing_in_the_library_writes_files_by_another_way():
    root = Path(_files.__file__).parents[1]
    ways = (".write_text(", ".write_bytes(", ".to_netcdf(", "savez(", "json.dump(", '"wb")', '"w")')
    allowed = {("_files.py", '"wb")'), ("exchange.py", '"w")')}  # the latter into memory
    allowed |= {("store_writer.py", '"wb")')}  # in a folder that is moved to its place as a whole
    found = set()
    for folder in ("permdist", "samplers", "models"):
        for path in (root / folder).rglob("*.py"):
            for line in path.read_text().splitlines():
                if not line.strip().startswith((">>>", "...")):
                    found |= {(path.name, way) for way in ways if way in line}
    assert found == allowed

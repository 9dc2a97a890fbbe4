"""Files of records that only grow, whatever happens to the process that writes them."""

import errno

import pytest

from permdist._journal import MAGIC, Journal

RECORDS = [b"one", b"", bytes(range(20))]


@pytest.fixture
def path(tmp_path):
    with Journal(tmp_path / "file", {"a": 1}) as file:
        for record in RECORDS:
            file.append(record)
    return tmp_path / "file"


def _reopened(path):
    with Journal(path, {"other": 2}) as file:
        return file.header, file.records, file.torn


def test_records_come_back_and_grow(path):
    assert _reopened(path) == ({"a": 1}, RECORDS, 0)
    with Journal(path, {}) as file:
        file.append(b"more")
    assert _reopened(path)[1] == [*RECORDS, b"more"]


def test_a_torn_end_is_cut_off_wherever_it_is_torn(path):
    whole = path.read_bytes()
    first = whole.index(b"\n", len(MAGIC)) + 1
    ends = [first, first + 11, first + 19, len(whole)]
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        header, records, torn = _reopened(path)
        if cut < first:
            assert (header, records) == ({"other": 2}, [])
        else:
            last = max(k for k, end in enumerate(ends) if end <= cut)
            assert (header, records, torn) == ({"a": 1}, RECORDS[:last], cut - ends[last])
            assert path.read_bytes() == whole[: ends[last]]


def test_a_damaged_record_ends_the_file(path):
    whole = bytearray(path.read_bytes())
    whole[whole.index(b"one")] ^= 1
    path.write_bytes(whole)
    assert _reopened(path)[1] == []
    with Journal(path, {}) as file:
        file.append(b"again")
    assert _reopened(path)[1] == [b"again"]


def test_other_files_are_refused_and_stay_as_they_are(tmp_path, path):
    with pytest.raises(ValueError, match="is no regular file"):
        Journal(tmp_path, {})
    with pytest.raises(ValueError, match="expected a file, got an empty name"):
        Journal("", {})
    with pytest.raises(FileNotFoundError, match="checkpoint: No such file"):
        Journal(tmp_path / "none" / "file", {}, "checkpoint")
    for text in (b"something else", MAGIC + b"[1]\n", MAGIC + b"{\n"):
        path.write_bytes(text)
        with pytest.raises(ValueError, match=r"something else|header is damaged"):
            Journal(path, {})
        assert path.read_bytes() == text


def test_one_process_at_a_time(path):
    with Journal(path, {}), pytest.raises(ValueError, match="in use by another process"):
        Journal(path, {}, "checkpoint")


def test_a_full_disk_is_named_and_leaves_whole_records(path):
    class Full:
        def __init__(self, file):
            self.file = file

        def write(self, data):
            self.file.write(data[:5])
            raise OSError(errno.ENOSPC, "full")

        def __getattr__(self, name):
            return getattr(self.file, name)

    file = Journal(path, {}, "checkpoint")
    file._file = Full(file._file)
    with pytest.raises(OSError, match="checkpoint: No space left on device"):
        file.append(b"lost")
    file.close()
    assert _reopened(path) == ({"a": 1}, RECORDS, 0)

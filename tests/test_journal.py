"""Files of records that only grow, whatever happens to the process that writes them."""

import errno

import numpy as np
import pytest

from permdist import _journal
from permdist._journal import MAGIC, Journal, pack_record, unpack_record

RECORDS = [b"one", b"", bytes(range(20))]


@pytest.fixture
def path(tmp_path):
    with Journal(tmp_path / "file") as file:
        file.begin({"a": 1})
        for record in RECORDS:
            file.append(record)
    return tmp_path / "file"


def _reopened(path):
    with Journal(path) as file:
        if file.header is None:
            file.begin({"other": 2})
        assert len(list(file)) == len(file)
        return file.header, list(file), file.torn


def test_records_come_back_and_grow(path):
    assert _reopened(path) == ({"a": 1}, RECORDS, 0)
    with Journal(path) as file:
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
    with Journal(path) as file:
        file.append(b"again")
    assert _reopened(path)[1] == [b"again"]


def test_other_files_are_refused_and_stay_as_they_are(tmp_path, path):
    with pytest.raises(ValueError, match=r"expected a file, .* is none"):
        Journal(tmp_path)
    with pytest.raises(ValueError, match="expected a file, got an empty name"):
        Journal("")
    with pytest.raises(FileNotFoundError, match="checkpoint: No such file"):
        Journal(tmp_path / "none" / "file", "checkpoint")
    for text in (b"something else", MAGIC + b"[1]\n", MAGIC + b"{\n"):
        path.write_bytes(text)
        with pytest.raises(ValueError, match=r"something else|header is damaged"):
            Journal(path)
        assert path.read_bytes() == text


def test_one_process_at_a_time(path):
    with Journal(path), pytest.raises(ValueError, match="in use by another process"):
        Journal(path, "checkpoint")


def test_a_full_disk_is_named_and_leaves_whole_records(path):
    class Full:
        def __init__(self, file):
            self.file = file

        def write(self, data):
            self.file.write(data[:5])
            raise OSError(errno.ENOSPC, "full")

        def __getattr__(self, name):
            return getattr(self.file, name)

    file = Journal(path, "checkpoint")
    file._file = Full(file._file)
    with pytest.raises(OSError, match="checkpoint: No space left on device"):
        file.append(b"lost")
    file.close()
    assert _reopened(path) == ({"a": 1}, RECORDS, 0)


def test_records_are_forgotten_and_replaced(path, monkeypatch):
    with Journal(path) as file:
        file.keep(1)
        assert list(file) == [b"one"]
        file.append(b"two")
    assert _reopened(path)[1] == [b"one", b"two"]
    monkeypatch.setattr(_journal, "SPARE", 100)
    with Journal(path) as file:
        for number in range(100):
            file.replace(number % 2, b"x" * 10 + bytes([number]))
    header, records, torn = _reopened(path)
    assert (header, torn) == ({"a": 1}, 0)
    assert len(records) < 20
    assert {record[-1] % 2: record[-1] for record in records} == {0: 98, 1: 99}
    assert not list(path.parent.glob(".*"))


def test_facts_and_arrays_come_back():
    arrays = {
        "a": np.arange(6, dtype=np.int32).reshape(2, 3),
        "b": np.zeros((0, 4)),
        "c": np.array(2.5),
    }
    state = np.random.Generator(np.random.MT19937(3)).bit_generator.state
    facts, found = unpack_record(pack_record({"rng": state, "n": 1}, arrays))
    assert facts["n"] == 1
    generator = np.random.Generator(np.random.MT19937(4))
    generator.bit_generator.state = facts["rng"]
    assert generator.random() == np.random.Generator(np.random.MT19937(3)).random()
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)

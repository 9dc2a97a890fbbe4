"""What the tests of stores share: small pieces, a long text, and looks at folders."""

import pytest

LONG = "".join(
    f"{k % 3} qid:{k // 2} 1:{k} 2:{k * k} 3:{k % 3} # docid = d{k}\n" for k in range(40)
)


@pytest.fixture
def small_pieces(monkeypatch):
    """Let a few lines be many pieces."""
    monkeypatch.setattr("permdist.data.store_sources.PIECE", 50)
    monkeypatch.setattr("permdist.data.store_sources.BLOCK", 24)
    monkeypatch.setattr("permdist.data.store_tables.BLOCK", 60)


def write(folder, text, name="file.txt"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def bytes_of(folder):
    """Return the arrays of a store as bytes."""
    return {path.name: path.read_bytes() for path in folder.glob("*.npy")}


def nothing_left(folder):
    return not [path.name for path in folder.iterdir() if path.name.startswith((".", "out"))]

"""Sizes that a file or an argument declares are checked before anything is allocated."""

import bz2
import gzip
import tracemalloc

import numpy as np
import pytest

from permdist import PlackettLuce, WeightedOrders, data, rankings
from permdist.rankings import BucketOrder, TopK

HUGE = 10**12


@pytest.fixture
def limit(monkeypatch):
    return lambda text: monkeypatch.setenv("PERMDIST_MEMORY_LIMIT", text)


def uniform(orders):
    return np.zeros(len(orders))


REQUESTS = {
    "names": lambda: WeightedOrders(10**10, log_weight=uniform).names,
    "top-k as buckets": lambda: TopK([1], 10**9).to_bucket_order(),
    "distance of top-k": lambda: rankings.kendall(TopK([1], 10**9), TopK([2], 10**9)),
    "fit by item numbers": lambda: PlackettLuce.fit(
        [[0, 10**9], [10**9, 0]], subset=True, regularization=1.0
    ),
    "fit by n_items": lambda: PlackettLuce.fit(
        [[0, 1], [1, 0]], n_items=10**10, subset=True, regularization=1.0
    ),
    "fit of top-k": lambda: PlackettLuce.fit([TopK([1], 10**9)], regularization=1.0),
    "make_letor by queries": lambda: data.make_letor(10**9),
    "make_letor by features": lambda: data.make_letor(10, n_features=10**10),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_arguments_that_declare_a_size(name):
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"expected to take at most 4.29e\+09 bytes") as e:
            REQUESTS[name]()
        assert tracemalloc.get_traced_memory()[1] < 2**26
    finally:
        tracemalloc.stop()
    assert "PERMDIST_MEMORY_LIMIT=" in str(e.value)


def test_top_k_lists_need_no_room_for_what_they_leave_out():
    podium = TopK([1], 10**9)
    assert (podium.k, podium.n_items) == (1, 10**9)
    with pytest.raises(ValueError, match="n_extensions: expected up to 20,000 items"):
        _ = podium.n_extensions
    with pytest.raises(ValueError, match=r"items: expected items 0 to 999999999, got 1000000000"):
        TopK([1, 10**9], 10**9)
    with pytest.raises(ValueError, match=r"linear_extensions: limited to 1,000,000, .* about 10"):
        next(BucketOrder([range(30_000)]).linear_extensions())


@pytest.mark.parametrize("ending", [".gz", ".bz2"])
def test_what_a_compressed_file_unfolds_to_is_limited(tmp_path, limit, ending):
    pack = gzip.compress if ending == ".gz" else bz2.compress
    bomb = tmp_path / f"bomb.txt{ending}"
    bomb.write_bytes(pack(b"0 qid:1 1:1\n" * 1_500_000))
    assert bomb.stat().st_size < 200_000
    limit("5e6")
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"unfolds to [\d,]+ bytes or more: .*PERMDIST_MEMORY"):
            data.load_letor(bomb)
        assert tracemalloc.get_traced_memory()[1] < 2**26
    finally:
        tracemalloc.stop()
    votes = tmp_path / f"votes.soc{ending}"
    votes.write_bytes(pack(b"# NUMBER ALTERNATIVES: 1\n" + b"1: 1\n" * 1_500_000))
    with pytest.raises(ValueError, match="unfolds to"):
        data.load_preflib(votes)


def test_plain_files_are_sized_before_they_are_read(tmp_path, limit):
    path = tmp_path / "plain.txt"
    path.write_bytes(b"0 qid:1 1:1\n" * 1000)
    limit("5e3")
    with pytest.raises(ValueError, match=r"a file of 12,000 bytes: expected .* got 1.2e\+04"):
        data.load_letor(path)
    with pytest.raises(ValueError, match="unfolds to"):
        data.load_letor("/dev/zero")


def test_wide_letor_files_are_sized_before_there_is_a_table(tmp_path, limit):
    path = tmp_path / "wide.txt"
    path.write_text("".join(f"0 qid:{q} 1:1 1000000:1\n" for q in range(2500)))
    with pytest.raises(
        ValueError, match=r"2,500 documents x 1,000,000 features: .*got 2.25e\+10; set"
    ):
        data.load_letor(path)
    path.write_text("0 qid:1 1:1\n")
    with pytest.raises(ValueError, match="1 documents x 1,000,000,000,000 features"):
        data.load_letor(path, n_features=HUGE)
    limit("100")
    with pytest.raises(ValueError, match="1 documents x 3 features"):
        data.load_letor(path, n_features=3)
    limit("1e6")
    assert data.load_letor(path, n_features=3).n_features == 3

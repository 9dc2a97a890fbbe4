"""Memory is sized before it is taken: every request beyond the limit is refused in one line."""

import bz2
import gzip
import re
import tracemalloc

import numpy as np
import pytest

from permdist import (
    GaussianScores,
    GoodBad,
    PairSigns,
    PlackettLuce,
    WeightedOrders,
    data,
    rankings,
)
from permdist._limits import DEFAULT_LIMIT, memory_limit, need_memory, size_text
from permdist.rankings import BucketOrder, TopK
from permdist.samplers import RestartSampler, run_chains

HUGE = 10**12


@pytest.fixture
def limit(monkeypatch):
    return lambda text: monkeypatch.setenv("PERMDIST_MEMORY_LIMIT", text)


def test_the_limit_is_read_at_use(limit):
    limit("")
    assert memory_limit() == DEFAULT_LIMIT == 4 * 2**30
    for text, expected in (
        ("1000", 1000),
        ("2K", 2048),
        ("1.5M", 1.5 * 2**20),
        (" 32g ", 32 * 2**30),
        ("1GiB", 2**30),
        ("2TB", 2 * 2**40),
        ("inf", np.inf),
    ):
        limit(text)
        assert memory_limit() == expected
    for wrong in ("0", "-1", "many", "1e9", "9" * 100, "G", "4 gigabytes", "nan"):
        limit(wrong)
        with pytest.raises(ValueError, match="PERMDIST_MEMORY_LIMIT: expected a size such as"):
            memory_limit()


def test_a_refusal_names_the_size_and_a_limit_that_would_do(limit):
    for size in (5 * 2**30 + 1, 7 * 10**12, 2**33 + 0.5):
        limit("")
        with pytest.raises(ValueError, match=r"^x: expected .* \(.* bytes\); use y, or") as caught:
            need_memory("x", size, "use y")
        assert "\n" not in str(caught.value)
        limit(re.search(r"LIMIT=(\w+)", str(caught.value))[1])
        need_memory("x", size, "use y")
    limit("")
    need_memory("x", DEFAULT_LIMIT)
    for size in (10**40, 10**400):
        with pytest.raises(ValueError, match="LIMIT=inf to allow it"):
            need_memory("x", size)
    assert size_text(999) == "999 bytes"
    assert size_text(20 * 10**9) == "18.6 GiB"


def uniform(orders):
    return np.zeros(len(orders))


TWO = [[0, 1], [1, 0]]
PL = PlackettLuce([1.0, 0.0, 2.0])
REQUESTS = {
    "sample": lambda: PL.sample(HUGE),
    "sample of a shape": lambda: PL.sample((10**6, 10**6)),
    "sample beyond int64": lambda: PL.sample(10**30),
    "sample of utilities": lambda: GaussianScores([1.0, 0.0]).sample(HUGE),
    "sample_top_k": lambda: PL.sample_top_k(1, HUGE),
    "sample of orders": lambda: GoodBad([1.0, 0.0, 2.0], [1, 0, 0]).sample(HUGE),
    "sample of interleavings": lambda: GoodBad(
        [1.0, 0.0, 2.0], [1, 0, 0], space="interleavings"
    ).sample(HUGE),
    "sample of signs": lambda: PairSigns([1.0, 0.0, 2.0], [1, 0, 0]).sample(HUGE),
    "sample of a list": lambda: WeightedOrders(3, log_weight=uniform).sample(HUGE),
    "expect": lambda: PL.expect("ap", [1, 0, 1], method="sample", draws=HUGE),
    "entropy": lambda: PL.entropy(method="sample", draws=HUGE),
    "pairwise": lambda: PlackettLuce(np.zeros(40_000)).pairwise(),
    "pairwise of utilities": lambda: GaussianScores(np.zeros(40_000)).pairwise(),
    "rank_marginals": lambda: PlackettLuce(np.zeros(40_000)).rank_marginals(),
    "names": lambda: WeightedOrders(10**10, log_weight=uniform).names,
    "top-k as buckets": lambda: TopK([1], 10**9).to_bucket_order(),
    "distance of top-k": lambda: rankings.kendall(TopK([1], 10**9), TopK([2], 10**9)),
    "distance_matrix": lambda: rankings.distance_matrix(np.tile([1, 0], (30_000, 1))),
    "distances": lambda: rankings.kendall(
        np.tile([1, 0], (100_000, 1, 1)), np.tile([1, 0], (1, 100_000, 1))
    ),
    "random_orders": lambda: rankings.random_orders(3, HUGE),
    "identity": lambda: rankings.identity(HUGE),
    "fit by item numbers": lambda: PlackettLuce.fit(
        [[0, 10**9], [10**9, 0]], subset=True, regularization=1.0
    ),
    "fit by n_items": lambda: PlackettLuce.fit(
        TWO, n_items=10**10, subset=True, regularization=1.0
    ),
    "fit of top-k": lambda: PlackettLuce.fit([TopK([1], 10**9)], regularization=1.0),
    "chains by draws": lambda: run_chains(GoodBad([1.0, 0.0], [1, 0]), HUGE),
    "chains by chains": lambda: run_chains(GoodBad([1.0, 0.0], [1, 0]), 1, chains=10**9),
    "chains by moments": lambda: run_chains(
        GoodBad([1.0, 0.0], [1, 0]), 1, chains=10**8, keep="moments"
    ),
    "restart sample": lambda: RestartSampler().sample([1, 0], HUGE),
    "restart walk": lambda: RestartSampler(walk=HUGE).sample([1, 0], 1),
    "restart rungs": lambda: RestartSampler(rungs=10**9).sample([1, 0], 1),
    "make_letor by queries": lambda: data.make_letor(10**9),
    "make_letor by features": lambda: data.make_letor(10, n_features=10**10),
    "make_letor by grades": lambda: data.make_letor(1, max_grade=10**10),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_arguments_are_sized_first(name):
    tracemalloc.start()
    try:
        with pytest.raises(
            ValueError, match=r"expected to take at most 4 GiB of memory, got "
        ) as e:
            REQUESTS[name]()
        assert tracemalloc.get_traced_memory()[1] < 2**26
    finally:
        tracemalloc.stop()
    assert "\n" not in str(e.value)
    assert "PERMDIST_MEMORY_LIMIT=" in str(e.value)


def test_top_k_lists_need_no_room_for_what_they_leave_out():
    podium = TopK([1], 10**9)
    assert (podium.k, podium.n_items) == (1, 10**9)
    with pytest.raises(ValueError, match="n_extensions: expected up to 20,000 items"):
        _ = podium.n_extensions
    with pytest.raises(ValueError, match=r"items: expected items 0 to 999999999, got 1000000000"):
        TopK([1, 10**9], 10**9)
    with pytest.raises(ValueError, match="items: expected each item once, got item 7 again at"):
        TopK([3, 7, 7], 10**9)
    with pytest.raises(ValueError, match="items: expected items 0 to 8, got -1 at index 1"):
        TopK([3, -1], 9)
    with pytest.raises(ValueError, match=r"linear_extensions: limited to 1,000,000, .* about 10"):
        next(BucketOrder([range(30_000)]).linear_extensions())


def test_a_batch_drawn_in_blocks_has_the_same_bits(monkeypatch):
    from permdist import _interrupts

    signs = {"labels": [1, 0, 0, 1, 0], "scores": [0.1, 0.5, 0.2, 0.9, -1.0]}
    models = (
        PlackettLuce([0.1, 0.5, 0.2, 0.9, -1.0]),
        PlackettLuce([900.0, 0.5, 0.2, 0.9, -1.0]),
        GaussianScores([0.1, 0.5, 0.2, 0.9, -1.0]),
        GoodBad(**signs),
        GoodBad(**signs, space="interleavings"),
        WeightedOrders(5, log_weight=uniform),
    )
    whole = [model.sample((7, 3), rng=1) for model in models]
    tops = models[0].sample_top_k(2, 21, rng=1)
    everything = rankings.random_orders(5, 21, rng=1)
    default = _interrupts.parts.__kwdefaults__
    monkeypatch.setitem(default, "most", 100.0)
    monkeypatch.setattr("permdist.distributions.base.FEW_ENTRIES", 0)
    monkeypatch.setattr("permdist.rankings.orders.FEW_ENTRIES", 0)
    for model, expected in zip(models, whole, strict=True):
        assert np.array_equal(model.sample((7, 3), rng=1), expected)
    assert np.array_equal(models[0].sample_top_k(2, 21, rng=1), tops)
    assert np.array_equal(rankings.random_orders(5, 21, rng=1), everything)


@pytest.mark.parametrize("ending", [".gz", ".bz2"])
def test_what_a_compressed_file_unfolds_to_is_limited(tmp_path, limit, ending):
    pack = gzip.compress if ending == ".gz" else bz2.compress
    bomb = tmp_path / f"bomb.txt{ending}"
    bomb.write_bytes(pack(b"0 qid:1 1:1\n" * 1_500_000))
    assert bomb.stat().st_size < 200_000
    limit("5M")
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"unfolds to [\d,]+ bytes or more: .*PERMDIST_MEMORY"):
            data.load_letor(bomb)
        assert tracemalloc.get_traced_memory()[1] < 2**26
    finally:
        tracemalloc.stop()
    votes = tmp_path / f"votes.soc{ending}"
    votes.write_bytes(pack(b"# NUMBER ALTERNATIVES: 1\n" + b"1: 1\n" * 1_500_000))
    with pytest.raises(ValueError, match="expected to take at most 5 MiB"):
        data.load_preflib(votes)


def test_plain_files_are_sized_before_they_are_read(tmp_path, limit):
    path = tmp_path / "plain.txt"
    path.write_bytes(b"0 qid:1 1:1\n" * 1000)
    limit("5K")
    with pytest.raises(ValueError, match=r"a file of 12,000 bytes: expected .* got 11.7 KiB"):
        data.load_letor(path)
    with pytest.raises(ValueError, match="unfolds to"):
        data.load_letor("/dev/zero")


def test_wide_letor_files_are_sized_before_there_is_a_table(tmp_path, limit):
    path = tmp_path / "wide.txt"
    path.write_text("".join(f"0 qid:{q} 1:1 1000000:1\n" for q in range(2500)))
    with pytest.raises(
        ValueError, match=r"2,500 documents x 1,000,000 features: .*got 21 GiB \(22,508,160,000 byt"
    ):
        data.load_letor(path)
    path.write_text("0 qid:1 1:1\n")
    with pytest.raises(ValueError, match="1 documents x 1,000,000,000,000 features"):
        data.load_letor(path, n_features=HUGE)
    limit("100")
    with pytest.raises(ValueError, match="1 documents x 3 features"):
        data.load_letor(path, n_features=3)
    limit("1M")
    assert data.load_letor(path, n_features=3).n_features == 3

"""Ballots in blocks: counts against a naive count, and the same bits whatever the cut."""

import dataclasses
import gzip
import json

import naive
import numpy as np
import pandas as pd
import pytest

from permdist import Ballots, DavidsonLuce, PlackettLuce
from permdist.ballots.blocks import Tally, merge_blocks
from permdist.data import load_battles, read_battles
from permdist.rating import rate

NAMES = np.array(["tea", "cola", "milk", "water", "juice"])


def cut(ballots, size):
    """Yield blocks of so many ballots."""
    number = np.arange(ballots.n_ballots) // size
    return (ballots.take(number == k) for k in range(number[-1] + 1))


def drinks(rng, number, weights=None):
    """Return named battles with ties, whose names are not in alphabetical order."""
    first = rng.integers(5, size=number)
    second = (first + rng.integers(1, 5, size=number)) % 5
    ties = rng.random(number) < 0.3
    return Ballots.from_pairs(NAMES[first], NAMES[second], ties=ties, weights=weights)


def everything(rng, number=60):
    """Return ballots of many kinds, many of them equal."""
    kinds = [
        Ballots.from_orders(
            [[[0, 1], 2], [2, 0, 1], [[1, 0], 2], [1, 2]] * number, n_items=4, subset=True
        ),
        Ballots.from_choices(
            [1, 1, 0] * number, [[0, 1, 2], [2, 1, 0], [0, 3]] * number, n_items=4
        ),
        Ballots.from_best_worst([2, 2] * number, [0, 1] * number, [[0, 1, 2]] * 2 * number),
        Ballots.from_orders([[2], [2, 3]] * number, n_items=4, subset=False),
        Ballots.from_pairs(
            [0, 1, 3] * number, [1, 0, 2] * number, ties=[True, True, False] * number
        ),
    ]
    whole = sum(
        (dataclasses.replace(kind, names=("0", "1", "2", "3")) for kind in kinds[1:]),
        start=dataclasses.replace(kinds[0], names=("0", "1", "2", "3")),
    )
    return dataclasses.replace(whole, weights=rng.integers(1, 5, len(whole)).astype(float))


def fields_equal(one, two):
    return all(
        np.array_equal(getattr(one, field.name), getattr(two, field.name))
        for field in dataclasses.fields(one)
    )


@pytest.mark.parametrize("size", [1, 17, 10_000])
def test_equal_ballots_of_all_kinds_are_counted(size):
    ballots = everything(np.random.default_rng(0))
    merged = merge_blocks(cut(ballots, size))
    assert naive.counted_ballots(merged) == naive.counted_ballots(ballots)
    assert merged.n_ballots == len(naive.counted_ballots(ballots))
    assert fields_equal(merged, merge_blocks([ballots]))


def test_the_cut_makes_no_difference_to_any_bit():
    rng = np.random.default_rng(1)
    ballots = drinks(rng, 400, rng.random(400))  # sums of weights that do round
    fits = [DavidsonLuce.fit(cut(ballots, size)) for size in (1, 7, 100, 400)]
    whole = DavidsonLuce.fit(ballots)
    for fit in fits:
        assert fit.names == whole.names == tuple(sorted(NAMES))
        assert np.array_equal(fit.scores, whole.scores)
        assert np.array_equal(fit.ties, whole.ties)
    decided = ballots.take(ballots.sizes == 1)
    fits = [PlackettLuce.fit(list(cut(decided, size))).scores for size in (3, 400)]
    assert np.array_equal(*fits)
    assert np.array_equal(fits[0], PlackettLuce.fit(decided).scores)


def test_errors_of_merged_blocks_are_those_of_all_ballots():
    ballots = drinks(np.random.default_rng(2), 300)
    blocks = DavidsonLuce.fit(cut(ballots, 50)).fit_result
    labels = np.arange(300)
    apart = DavidsonLuce.fit(Ballots.of(ballots, clusters=labels)).fit_result
    np.testing.assert_allclose(
        blocks.standard_errors("sandwich") * np.sqrt(300 / 299),
        apart.standard_errors("sandwich"),
        rtol=1e-9,
    )


def test_rated_battles_with_weights_are_drawn_one_by_one(tmp_path):
    rng = np.random.default_rng(8)
    frame = {"a": list("xyz") * 60, "b": list("yzx") * 60, "winner": rng.choice(["a", "b"], 180)}
    path = tmp_path / "battles.csv"
    pd.DataFrame(frame | {"n": [0.5] * 180}).to_csv(path, index=False)
    whole = load_battles(path, weight="n")
    usual = rate(load_battles(frame), bootstrap=200, folds=2)
    for battles in (whole, whole.merged(), read_battles(path, block=50, weight="n")):
        found = rate(battles, bootstrap=200, folds=2)
        assert found.fit.ballots.units()[0].sum() == 180
        for kind in ("sandwich", "bootstrap"):
            errors = [one.fit.standard_errors(kind) for one in (found, usual)]
            np.testing.assert_allclose(*errors, rtol=1e-6)
        assert found.goodness.log_loss == pytest.approx(usual.goodness.log_loss, rel=1e-3)


def test_many_different_ballots_do_not_get_lost():
    rng = np.random.default_rng(3)
    first = rng.integers(300, size=40_000)
    second = (first + rng.integers(1, 300, size=40_000)) % 300
    found = Ballots.from_blocks(
        Ballots.from_pairs(first[k : k + 9000], second[k : k + 9000], n_items=300)
        for k in range(0, 40_000, 9000)
    )
    cells, counts = np.unique(first * 300 + second, return_counts=True)
    pairs = found.items.reshape(-1, 2)
    order = np.argsort(pairs[:, 0] * 300 + pairs[:, 1])
    assert np.array_equal((pairs[:, 0] * 300 + pairs[:, 1])[order], cells)
    assert np.array_equal(found.weights[order], counts)


def test_names_decide_which_items_are_the_same():
    numbered = [Ballots.from_pairs([0], [2]), Ballots.from_pairs([11], [2])]
    assert merge_blocks(numbered).n_items == 12
    assert not merge_blocks(numbered).is_named
    ordered = [Ballots.from_pairs(["b"], ["a"], names=["b", "a"])] * 2
    assert merge_blocks(ordered).names == ("b", "a")
    assert merge_blocks(ordered).weights.tolist() == [2.0]
    mixed = merge_blocks([*numbered[:1], *ordered])
    assert mixed.names == ("0", "1", "2", "a", "b")
    assert naive.counted_ballots(mixed) == naive.counted_ballots(
        numbered[0] + ordered[0] + ordered[0]
    )


def test_what_cannot_be_merged_is_refused():
    plain = Ballots.from_pairs([0, 1], [1, 0])
    for what, values in (("clusters", ["v", "w"]), ("times", [1.0, 2.0])):
        with pytest.raises(ValueError, match=f"ballots with {what} cannot be counted together"):
            PlackettLuce.fit([Ballots.of(plain, **{what: values})])
    with pytest.raises(ValueError, match="covariates make every ballot different"):
        merge_blocks([plain.with_features(np.ones((2, 2, 1)))])
    with pytest.raises(ValueError, match="weights: ballots in blocks bring their own"):
        PlackettLuce.fit([plain], weights=[1.0, 2.0])
    with pytest.raises(ValueError, match="times: ballots in blocks bring their own"):
        DavidsonLuce.fit(iter([plain]), times=[1.0, 2.0])
    with pytest.raises(TypeError, match="expected Ballots in each block, got list"):
        PlackettLuce.fit([plain, [0, 1]])
    with pytest.raises(ValueError, match="at least one block"):
        Tally().ballots()


def test_an_iterator_of_rankings_is_a_list_of_rankings():
    rankings = [["tea", "milk"], ["milk", "tea"], ["tea", "milk"]]
    assert DavidsonLuce.fit(iter(rankings)).names == ("milk", "tea")
    with pytest.raises(ValueError, match="at least one ranking"):
        Ballots.of(iter([]))


# ---- files -------------------------------------------------------------------------------------


def frame(number=60):
    rng = np.random.default_rng(5)
    first = rng.integers(5, size=number)
    second = (first + rng.integers(1, 5, size=number)) % 5
    winner = rng.choice(["model_a", "model_b", "tie", "tie (bothbad)"], number)
    columns = {"model_a": NAMES[first], "model_b": NAMES[second], "winner": winner}
    return pd.DataFrame({**columns, "weight": rng.integers(1, 4, number), "text": "a, b"})


def written(path, table):
    if ".parquet" in path.suffixes:
        table.to_parquet(path)
    elif ".jsonl" in path.suffixes:
        table.to_json(path, orient="records", lines=True)
    else:
        table.to_csv(path, index=False, sep="\t" if ".tsv" in path.suffixes else ",")
    return path


@pytest.mark.parametrize("name", ["b.csv", "b.csv.gz", "b.tsv", "b.jsonl", "b.parquet", "frames"])
@pytest.mark.parametrize("size", [7, 1000])
def test_blocks_of_a_file_hold_what_the_file_holds(tmp_path, name, size):
    if name == "b.parquet":
        pytest.importorskip("pyarrow")
    table = frame()
    whole = load_battles(table, weight="weight").merged()
    source = [table[:25], table[25:]]
    if name != "frames":
        source = written(tmp_path / name, table)
    blocks = read_battles(source, block=size, weight="weight")
    assert sum(map(len, blocks)) == 60
    found = blocks.merged()
    for part in ("names", "first", "second", "outcome", "weights"):
        assert np.array_equal(getattr(found, part), getattr(whole, part))


def test_a_rating_of_blocks_is_that_of_the_whole(tmp_path):
    path = written(tmp_path / "b.csv", frame(300))
    blocks, whole = rate(read_battles(path, block=11)), rate(load_battles(path))
    pd.testing.assert_frame_equal(blocks.leaderboard.to_frame(), whole.leaderboard.to_frame())
    assert blocks.goodness.log_loss == whole.goodness.log_loss


def test_names_that_look_like_numbers_in_some_blocks(tmp_path):
    path = tmp_path / "b.csv"
    path.write_text("\ufeff\nmodel_a,model_b,winner\n01,2,a\n2,01,b\nx,2,a\n2,x,a\n")
    assert read_battles(path, block=2).merged().names == ("01", "2", "x")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("x,y,a\ny,x,b\nx,x,a\n", r"b.csv, line 4: 'x' is matched against itself"),
        ('x,y,a\n"y",x,a\n\nx,y,sideways\n', r"line 5: expected the winner 'x' or 'y'"),
        ("x,y,a\nx,y,b\nx,y,a,more\n", r"line 4: expected 3 fields, got more"),
        ("x,y,a\nx,y,a\nx,,a\n", r"line 4: model_b is missing"),
        # 0 is a loss, unless there is a -1 somewhere, which makes it a tie.
        ("x,y,1\nx,y,0\nx,y,1\nx,y,-1\n", r"line 4, or soon after: the winner '0' means something"),
        # "a" is a name until a row shows that the words for sides are used.
        ("b,a,a\na,b,a\na,b,tie\nb,a,left\n", r"the winner 'a' means something else"),
    ],
)
def test_bad_rows_are_named_in_any_block(tmp_path, rows, message):
    path = tmp_path / "b.csv"
    path.write_text("model_a,model_b,winner\n" + rows)
    with pytest.raises(ValueError, match=message):
        read_battles(path, block=2).merged()


def test_sides_that_names_cannot_explain_stay_sides(tmp_path):
    path = tmp_path / "b.csv"
    path.write_text("model_a,model_b,winner\nb,a,left\na,b,a\nb,a,a\n")
    whole, blocks = load_battles(path).merged(), read_battles(path, block=1).merged()
    assert blocks.weights.tolist() == whole.weights.tolist()
    assert blocks.outcome.tolist() == whole.outcome.tolist()


def test_files_that_cannot_be_read_in_blocks(tmp_path):
    (tmp_path / "b.json").write_text("[]")
    with pytest.raises(ValueError, match="read as a whole"):
        read_battles(tmp_path / "b.json").merged()
    (tmp_path / "latin.csv").write_bytes("model_a,model_b,winner\nx,y\xe9,a\n".encode("latin-1"))
    with pytest.raises(ValueError, match="expected UTF-8; load_battles reads other encodings"):
        read_battles(tmp_path / "latin.csv").merged()
    short = gzip.compress(b"model_a,model_b,winner\n" + b"x,y,a\n" * 9000)[:-20]
    (tmp_path / "b.csv.gz").write_bytes(short)
    with pytest.raises(ValueError, match="truncated"):
        read_battles(tmp_path / "b.csv.gz").merged()
    (tmp_path / "b.parquet").write_text(json.dumps({}))
    pytest.importorskip("pyarrow")
    with pytest.raises(ValueError, match="cannot be read as a Parquet file"):
        read_battles(tmp_path / "b.parquet").merged()
    with pytest.raises(TypeError, match="expected a file name or data frames"):
        read_battles([1, 2]).merged()
    with pytest.raises(ValueError, match="block"):
        read_battles(tmp_path / "b.csv", block=0)

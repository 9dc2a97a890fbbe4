"""One type for all preference data."""

import numpy as np
import pandas as pd
import pytest

from permdist import Ballots, PlackettLuce
from permdist.ballots import fading
from permdist.data import load_preflib
from permdist.rankings import BucketOrder, TopK


def listed(ballots):
    """Return ballots as lists of buckets, then what is below, the sign, by name."""
    result = []
    for r in range(len(ballots.signs)):
        own = [ballots.names[item] for item in ballots.items[ballots.ptr[r] : ballots.ptr[r + 1]]]
        buckets = []
        for size in ballots.sizes[ballots.stages[r] : ballots.stages[r + 1]]:
            buckets.append(own[:size])
            own = own[size:]
        result.append((buckets, own, int(ballots.signs[r])))
    return result


def test_rankings_of_every_kind_mix():
    ballots = Ballots.from_orders(
        [[0, 1, 2, 3], [[3, 1], 0, 2], BucketOrder([[2], [0, 1, 3]]), TopK([3, 0], 4)]
    )
    assert listed(ballots) == [
        ([["0"], ["1"], ["2"], ["3"]], [], 1),
        ([["1", "3"], ["0"], ["2"]], [], 1),
        ([["2"], ["0", "1", "3"]], [], 1),
        ([["3"], ["0"]], ["1", "2"], 1),
    ]
    assert (ballots.n_items, len(ballots), ballots.largest_tie) == (4, 4, 3)
    assert ballots.tie_sizes == (2, 3)
    assert repr(ballots) == "Ballots(4 ballots over 4 items)"


def test_what_is_left_out_is_below_or_not_there():
    lists = [["b", "a"], ["c"], [["a", "c"], "b"]]
    below = Ballots.from_orders(lists, subset=False)
    assert listed(below) == [
        ([["b"], ["a"]], ["c"], 1),
        ([["c"]], ["a", "b"], 1),
        ([["a", "c"], ["b"]], [], 1),
    ]
    among = Ballots.from_orders(lists, subset=True)
    assert listed(among)[:2] == [([["b"], ["a"]], [], 1), ([["c"]], [], 1)]
    with pytest.raises(ValueError, match=r"got 2 item\(s\) in ranking 0; pass subset=True"):
        Ballots.from_orders(lists)


def test_arrays_of_numbers_and_of_names():
    table = np.array([[0, 2, 1], [1, 0, 2]])
    names = np.array([["a", "c", "b"], ["b", "a", "c"]])
    for other in (names, names.astype(object), pd.DataFrame(names), names.tolist()):
        assert listed(Ballots.of(other)) == listed(Ballots.of(table, names=["a", "b", "c"]))
    top = Ballots.of(table[:, :1], n_items=3, subset=False)
    assert listed(top) == [([["0"]], ["1", "2"], 1), ([["1"]], ["0", "2"], 1)]


def test_preflib_ballots_bring_counts_and_names(tmp_path):
    path = tmp_path / "votes.toi"
    path.write_text("# NUMBER ALTERNATIVES: 3\n# ALTERNATIVE NAME 1: Ann\n2: 1,{2,3}\n3: 2\n")
    with pytest.warns(UserWarning, match="names is 1"):
        votes = load_preflib(path)
    ballots = Ballots.of(votes)
    assert listed(ballots) == [
        ([["Ann"], ["alternative 2", "alternative 3"]], [], 1),
        ([["alternative 2"]], ["Ann", "alternative 3"], 1),
    ]
    assert ballots.weights.tolist() == [2.0, 3.0]
    assert listed(Ballots.of(votes, subset=True))[1] == ([["alternative 2"]], [], 1)


def test_ranks_in_wide_and_long_tables():
    wide = pd.DataFrame({"a": [1, 2, np.nan], "b": [2, 1, 3], "c": [2, np.nan, 1]})
    expected = [
        ([["a"], ["b", "c"]], [], 1),
        ([["b"], ["a"]], [], 1),
        ([["c"], ["b"]], [], 1),
    ]
    assert listed(Ballots.from_ranks(wide)) == expected
    long = wide.melt(ignore_index=False).dropna().reset_index()
    shuffled = long.sample(frac=1.0, random_state=0).sort_values("index", kind="stable")
    columns = shuffled["index"], shuffled["variable"], shuffled["value"]
    assert listed(Ballots.from_long(*columns)) == expected


def test_what_a_rank_of_0_means_must_be_said():
    table = [[1, 2, 0], [2, 1, 0], [1, 0, 2]]
    for bad in (table, [[1, 2], [-1, 1]]):
        with pytest.raises(ValueError, match=r"ranks: expected ranks from 1, .* unranked="):
            Ballots.from_ranks(bad)
    with pytest.raises(ValueError, match="expected ranks from 1, got -2 at index"):
        Ballots.from_ranks([[1, 0], [-2, 1]], unranked=0)
    missing = Ballots.from_ranks(np.where(np.array(table) == 0, np.nan, table))
    assert listed(Ballots.from_ranks(table, unranked=0)) == listed(missing)
    first = Ballots.from_ranks([[1, 2, 3], [2, 1, 3]])
    assert listed(Ballots.from_ranks([[0, 1, 2], [1, 0, 2]], unranked=np.nan)) == listed(first)
    frame = pd.DataFrame(table, columns=list("abc")).reset_index().melt("index")
    columns = frame["index"], frame["variable"], frame["value"]
    with pytest.raises(ValueError, match=r"rank: expected ranks from 1, got 0 at index"):
        Ballots.from_long(*columns)
    named = Ballots.from_ranks(table, unranked=0, names=list("abc"))
    assert listed(Ballots.from_long(*columns, unranked=0)) == listed(named)
    with pytest.raises(ValueError, match="rank: expected a rank on every ballot"):
        Ballots.from_long(["v", "w"], ["a", "a"], [1, 0], unranked=0)


def test_items_without_a_rank_may_be_below_the_others():
    ballots = Ballots.from_ranks([[1, np.nan, 1, np.nan], [1, 2, 3, 4]], subset=False)
    orders = Ballots.from_orders([[[0, 2]], [0, 1, 2, 3]], subset=False, n_items=4)
    assert listed(ballots) == listed(orders)


@pytest.mark.parametrize(("column", "remedy"), [("Voter", "clusters"), ("votes", "weights")])
def test_a_column_that_is_no_item(column, remedy):
    frame = pd.DataFrame({column: [7, 9], "a": [1, 2], "b": [2, 1]})
    with pytest.raises(ValueError, match=f"got '{column}'; pass it as {remedy}, or rename it"):
        Ballots.from_ranks(frame)
    assert Ballots.from_ranks(frame.to_numpy(), names=list(frame)).n_items == 3


def test_choices_and_best_and_worst():
    menus = [["a", "b", "c"], ["b", "d"]]
    ballots = Ballots.from_choices(["b", "d"], menus)
    assert listed(ballots) == [([["b"]], ["a", "c"], 1), ([["d"]], ["b"], 1)]
    whole = Ballots.from_choices([1, 0], n_items=3)
    assert listed(whole) == [([["1"]], ["0", "2"], 1), ([["0"]], ["1", "2"], 1)]
    both = Ballots.from_best_worst(["b", "d"], ["c", "b"], menus)
    assert listed(both) == [
        ([["b"]], ["a", "c"], 1),
        ([["c"]], ["a"], -1),
        ([["d"]], ["b"], 1),
        ([["b"]], [], -1),
    ]
    assert both.ballot.tolist() == [0, 0, 1, 1]
    assert both.counts().tolist() == [1.0, 2.0, 1.0, 1.0]


def test_contests_with_ties_and_covariates():
    first, second = np.array([[1.0], [2.0], [3.0]]), np.array([[4.0], [5.0], [6.0]])
    ballots = Ballots.from_pairs(
        ["x", "y", "z"],
        ["y", "z", "x"],
        ties=[False, True, True],
        features=(first, second),
        feature_names=["length"],
        clusters=["v", "w", "v"],
    )
    assert listed(ballots) == [
        ([["x"]], ["y"], 1),
        ([["y", "z"]], [], 1),
        ([["x", "z"]], [], 1),
    ]
    # A covariate stays with its alternative where the members of a tie change places.
    assert ballots.features.ravel().tolist() == [1.0, 4.0, 2.0, 5.0, 6.0, 3.0]
    assert ballots.clusters.tolist() == ["v", "w", "v"]
    assert "covariates    length" in ballots.describe()


def test_equal_ballots_are_counted_together():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 4, 300), rng.integers(4, 8, 300)
    tied = rng.random(300) < 0.3
    ballots = Ballots.from_pairs(np.where(tied, b, a), np.where(tied, a, b), ties=tied)
    merged = ballots.merged()
    assert len(merged) == len(set(map(str, listed(ballots)))) <= 32
    assert merged.weights.sum() == 300.0
    counted = dict(zip(map(str, listed(merged)), merged.weights, strict=True))
    for one in map(str, listed(ballots)):
        counted[one] -= 1.0
    assert not any(counted.values())
    wide = Ballots.of(np.tile(np.arange(70), (3, 1)))  # too many items for one number
    assert wide.merged().weights.tolist() == [3.0]
    grouped = Ballots.from_pairs([0, 0], [1, 1], clusters=[1, 2])
    assert len(grouped.merged()) == 2


@pytest.mark.parametrize("merge", [Ballots.merged, lambda each: Ballots.from_blocks([each])])
def test_ballots_of_different_weights_are_different_unless_these_are_counts(merge):
    ballots = Ballots.from_pairs(
        [0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 1, 1, 0, 1], weights=[3, 0.5, 1, 0.5, 2.5, 0.5, 0]
    )
    merged = merge(ballots)
    assert merged.items.tolist() == [0, 1, 0, 1, 0, 1, 1, 0]
    assert merged.weights.tolist() == [4.0, 1.0, 2.5, 0.5]
    counts, unit = merged.units()
    assert (counts.tolist(), unit.tolist()) == ([4, 2, 1, 1], [1.0, 0.5, 2.5, 0.5])
    assert [each.tolist() for each in merge(merged).units()] == [counts.tolist(), unit.tolist()]
    some = merged.take([False, True, True, False]) + Ballots.from_pairs([0], [1], weights=[2])
    assert [each.tolist() for each in some.units()] == [[2, 1, 2], [0.5, 2.5, 1.0]]
    again = Ballots.of(merged, weights=[1, 2, 3, 4])
    assert [each.tolist() for each in again.units()] == [[1, 2, 3, 4], [1.0] * 4]


def test_clusters_are_labels():
    one = Ballots.from_pairs([0, 1, 0], [1, 0, 1], clusters=["ann", "ann", "bob"])
    two = Ballots.from_pairs([0, 1, 0], [1, 0, 1], clusters=["bob", "cid", "dan"])
    both = one + two
    assert both.clusters.tolist() == ["ann", "ann", "bob", "bob", "cid", "dan"]
    assert both.cluster_numbers.tolist() == [0, 0, 1, 1, 2, 3]
    assert "clusters      4" in both.describe()
    left = both.take(both.clusters != "ann")
    assert left.cluster_numbers.tolist() == [0, 0, 1, 2]
    numbers = Ballots.of(one, clusters=[7, 7, 8]) + Ballots.of(two, clusters=[8.0, 9.0, 7.0])
    assert numbers.cluster_numbers.tolist() == [0, 0, 1, 1, 2, 0]
    # A voter is the same one in a file of numbers and in one that has other texts, too.
    texts = Ballots.of(two, clusters=["8", "nine", "7"])
    for other in (Ballots.of(one, clusters=[7, 7, 8]), Ballots.of(one, clusters=[7.0, 7.0, 8.0])):
        assert (other + texts).cluster_numbers.tolist() == [0, 0, 1, 1, 2, 0]
    missing = Ballots.of(one, clusters=[np.nan, 7.0, np.nan])
    assert missing.cluster_numbers.tolist() == [0, 1, 0]


def test_items_without_names_keep_their_numbers():
    few, many = Ballots.from_pairs([0], [1]), Ballots.from_pairs([11, 2], [10, 0])
    for both in (few + many, many + few, Ballots.from_blocks([few, many])):
        assert not both.is_named
        assert both.n_items == 12
    assert (few + many).items.tolist() == [0, 1, 11, 10, 2, 0]
    named = Ballots.from_pairs(["tea"], ["milk"])
    for mixed in (
        few + named + many,
        many + (named + few),
        Ballots.from_blocks([named, few, many]),
    ):
        assert mixed.names == (*map(str, range(12)), "milk", "tea")


def test_ballots_that_say_nothing_are_counted_too():
    ballots = Ballots.from_orders([[0], [0], [1, 0], [1, 0], [1]], subset=True)
    merged = ballots.merged()
    assert merged.weights.tolist() == [2.0, 2.0, 1.0]
    assert [buckets for buckets, _, _ in listed(merged)] == [[["0"]], [["1"], ["0"]], [["1"]]]
    assert Ballots.from_orders([[0], [0]]).merged().weights.tolist() == [2.0]
    assert len(ballots.take([True, True, False, False, True])) == 3


def test_some_ballots_and_some_items():
    ballots = Ballots.from_orders([["a", "b", "c"], [["a", "b"], "c"], ["c", "b"]], subset=True)
    assert listed(ballots.take([True, False, True])) == [
        ([["a"], ["b"], ["c"]], [], 1),
        ([["c"], ["b"]], [], 1),
    ]
    assert listed(ballots.without(["b"])) == [([["a"], ["c"]], [], 1), ([["a"], ["c"]], [], 1)]
    with pytest.raises(ValueError, match="at least two items"):
        ballots.without(["a", 1])
    with pytest.raises(ValueError, match="unknown name 'd'"):
        ballots.without(["d"])
    with pytest.raises(ValueError, match="at least one ballot"):
        ballots.take([False] * 3)


def test_sums_join_items_by_name():
    one = Ballots.from_pairs(["a"], ["c"], weights=[2.0])
    two = Ballots.from_orders([["b", "c"]])
    both = one + two
    assert both.names == ("a", "b", "c")
    assert listed(both) == [([["a"]], ["c"], 1), ([["b"], ["c"]], [], 1)]
    assert both.weights.tolist() == [2.0, 1.0]
    with pytest.raises(ValueError, match="only one of the two has times"):
        _ = one + Ballots.from_pairs(["a"], ["b"], times=[1.0])


def test_who_was_ever_above_and_below():
    ballots = Ballots.from_orders([["a", "b"], [["b", "c"]], ["c"]], subset=True)
    won, lost = ballots.ever()
    assert (won.tolist(), lost.tolist()) == ([True, False, False], [False, True, False])
    won, lost = Ballots.from_best_worst([0], [1], [[0, 1, 2]]).ever()
    assert (won.tolist(), lost.tolist()) == ([True, False, True], [False, True, True])


def test_half_lives():
    assert fading(None, None) is None
    assert fading(np.array([10.0, 0.0]), 5.0).tolist() == [1.0, 0.25]
    with pytest.raises(ValueError, match="expected ballots with times"):
        fading(None, 5.0)
    with pytest.raises(ValueError, match="expected a positive number"):
        fading(np.zeros(1), 0.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Ballots.from_orders([]), "at least one ranking"),
        (lambda: Ballots.from_orders(3), "expected a sequence of rankings, got int"),
        (lambda: Ballots.from_orders([[0, 1], "ab"]), "list of items as ranking 1, got 'ab'"),
        (lambda: Ballots.from_orders([[0, []]]), "no empty ranking or tie"),
        (lambda: Ballots.from_orders([[0, 1, 0]]), "'0' is listed twice, at index 0"),
        (lambda: Ballots.from_orders([["a", 1]]), "numbers or names, not both, got 1"),
        (lambda: Ballots.from_orders([["a", None]]), "numbers or names, not both, got None"),
        (lambda: Ballots.from_orders([["a", "b"]], names=["a", "c"]), "unknown item 'b'"),
        (lambda: Ballots.from_orders([[0, 1]], names=["a", "a"]), "must be unique"),
        (lambda: Ballots.from_orders([[0, 5]], n_items=3), "items from 0 to 2, got 5"),
        (lambda: Ballots.from_orders([[0.5, 1.0]]), "got dtype float64"),
        (lambda: Ballots.from_orders([TopK([0], 5), TopK([1], 7)]), r"out of \[5, 7\] items"),
        (lambda: Ballots.from_orders([TopK([0], 5)], subset=True), "with TopK lists"),
        (lambda: Ballots.from_orders([[0, 1]], weights=[1, 2]), "expected 1 weights, got 2"),
        (lambda: Ballots.from_orders([[0, 1]], weights=[-1]), "no negative weight"),
        (lambda: Ballots.from_orders([[0, 1]], clusters=[1, 2]), "expected 1 labels"),
        (lambda: Ballots.from_orders([[0, 1]], times=[np.nan]), "times: expected finite"),
        (lambda: Ballots.from_pairs([0], [0]), "'0' cannot meet itself, contest 0"),
        (lambda: Ballots.from_pairs([0, 1], [0]), "as many losers as winners"),
        (lambda: Ballots.from_pairs([0], [1], ties=[1]), "expected 1 booleans, got int64"),
        (lambda: Ballots.from_pairs([0], [1], features=([[1.0]], [[1.0, 2.0]])), "pair of arrays"),
        (lambda: Ballots.from_choices(["a"], [["b", "c"]]), "'a' is not on its menu, choice 0"),
        (lambda: Ballots.from_choices(["a"], [["a"]]), "two items or more, menu 0"),
        (lambda: Ballots.from_choices(["a"], [["a", "b", "b"]]), "'b' is listed twice"),
        (lambda: Ballots.from_choices(["a"], []), "expected 1 menus, got 0"),
        (lambda: Ballots.from_best_worst([0], [0], [[0, 1]]), "the same item as the best"),
        (lambda: Ballots.from_best_worst([0, 1], [0]), "worst: expected 2 choices, got 1"),
        (lambda: Ballots.from_ranks([[1, 2], [np.nan, np.nan]]), "ballot, 1 has none"),
        (lambda: Ballots.from_ranks([1, 2]), "expected 2 dimension"),
        (lambda: Ballots.from_long([1, 1], ["a", "a"], [1, 2]), "'a' is listed twice, at index 0"),
        (lambda: Ballots.from_long([1], ["a"], [np.nan]), "rank: expected finite"),
        (lambda: Ballots.from_long([1, None], ["a", "b"], [1, 2]), "row 1 has none"),
        (lambda: Ballots.of(Ballots.from_pairs([0], [1]), n_items=3), "have 2 items, got 3"),
    ],
)
def test_bad_ballots_are_refused(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()


def test_a_distribution_takes_ballots():
    model = PlackettLuce(np.log([3.0, 2.0, 1.0]), names=["a", "b", "c"])
    lists = [["c", "a"], ["b", "c"]]
    assert np.exp(model.log_prob(lists, subset=True)) == pytest.approx([1 / 4, 2 / 3])
    ballots = Ballots.from_orders(lists, subset=True)
    assert np.exp(model.log_prob(ballots)) == pytest.approx([1 / 4, 2 / 3])
    worst = Ballots.from_best_worst(["a"], ["c"], [["a", "b", "c"]])
    # First by worth, then by 1 / worth out of the others.
    assert np.exp(model.log_prob(worst)) == pytest.approx([1 / 2 * (1 / (1 + 1 / 2))])
    with pytest.raises(ValueError, match="unknown item 'd'"):
        model.log_prob(Ballots.from_pairs(["a"], ["d"]))
    tied = Ballots.from_pairs(["a"], ["b"], ties=[True])
    assert model.log_prob(tied).tolist() == [-np.inf]

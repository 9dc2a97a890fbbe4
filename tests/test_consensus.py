"""Consensus rankings: equal to enumeration, proved, and as firm as the ballots make them."""

import json
import time

import naive_consensus as naive
import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linear_sum_assignment
from test_cli import permdist

from permdist import Ballots, PlackettLuce, data, plots, rankings
from permdist.consensus import METHODS, Majorities, components, count_pairs, program
from permdist.consensus.cuts import Cuts
from permdist.consensus.kemeny import kemeny
from permdist.consensus.positions import footrule_order, spearman_order
from permdist.rankings import BucketOrder, TopK, consensus
from permdist.report.consensus import consensus_report


def random_ballots(rng, n, number, *, whole, ties=True):
    """Return ballots with ties; those that are not whole leave items out."""
    ballots = []
    for _ in range(number):
        length = n if whole else int(rng.integers(2, n + 1))
        items = rng.permutation(n)[:length]
        level = np.sort(rng.integers(length, size=length)) if ties else np.arange(length)
        buckets = [sorted(items[level == one].tolist()) for one in np.unique(level)]
        ballots.append((buckets, float(rng.integers(1, 4))))
    return ballots


def given(ballots, n, **options):
    """Return naive ballots as those of the library."""
    lists, weights = zip(*ballots, strict=True)
    return Ballots.from_orders(lists, weights=weights, n_items=n, subset=True, **options)


# ---- against enumeration -------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_kemeny_is_the_best_of_all_orders(seed):
    rng = np.random.default_rng(seed)
    n, whole = int(rng.integers(2, 7)), bool(seed % 2)
    ballots = random_ballots(rng, n, int(rng.integers(1, 10)), whole=whole, ties=seed % 3 > 0)
    least, orders = naive.lowest(lambda order: naive.kendall_cost(order, ballots), n)
    found = consensus(given(ballots, n))
    assert found.proved
    assert found.cost == pytest.approx(least)
    assert found.lower_bound == found.cost
    assert tuple(found.order) in orders


def test_kemeny_of_eight_items_and_circles():
    rng = np.random.default_rng(1)
    every = rankings.enumerate_orders(8)
    above, below = np.triu_indices(8, 1)
    for trial in range(6):
        wins = rng.integers(0, 30, (8, 8)).astype(float)
        wins *= 1.0 if trial % 2 else 1.37  # whole numbers, and others
        np.fill_diagonal(wins, 0.0)
        least = wins[every[:, below], every[:, above]].sum(axis=1).min()
        pairs = Majorities(wins, np.zeros((8, 8)))
        found = kemeny(pairs)
        assert found.proved
        assert pairs.cost(found.order, 0.5) == pytest.approx(least, rel=1e-6)
        assert pairs.bound(0.5) + found.excess == pytest.approx(least, rel=1e-6)


def test_costs_are_kendall_distances():
    ballots = [BucketOrder([[2], [0, 3], [1]]), TopK([3, 1], 4), BucketOrder([[1], [0], [2], [3]])]
    for penalty in (0.0, 0.3, 1.0):
        found = consensus(ballots, weights=[2, 1, 3], penalty=penalty)
        order = BucketOrder([[item] for item in found.order.tolist()])
        each = [float(rankings.kendall(order, ballot, penalty=penalty)) for ballot in ballots]
        assert found.cost == pytest.approx(np.dot([2, 1, 3], each))


@pytest.mark.parametrize("method", ["footrule", "spearman"])
def test_positions_against_enumeration(method):
    distance = getattr(rankings, method)
    for seed in range(6):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 7))
        ballots = random_ballots(rng, n, int(rng.integers(1, 7)), whole=True)
        power = 1 if method == "footrule" else 2
        least, orders = naive.lowest(lambda o, b=ballots: naive.position_cost(o, b, power), n)  # noqa: B023
        found = consensus(given(ballots, n), method)
        assert found.cost == found.lower_bound == pytest.approx(least)
        assert found.proved
        assert tuple(found.order) in orders
        order = BucketOrder([[item] for item in found.order.tolist()])
        each = [weight * float(distance(order, BucketOrder(b))) for b, weight in ballots]
        assert sum(each) == pytest.approx(least)


def test_lists_of_the_first_places_have_mean_positions_below():
    lists = [TopK([3], 4), TopK([0, 1], 4), BucketOrder([[2], [0, 1, 3]])]
    written = [([[3], [0, 1, 2]], 1.0), ([[0], [1], [2, 3]], 1.0), ([[2], [0, 1, 3]], 1.0)]
    for method, power in (("footrule", 1), ("spearman", 2)):
        least, _ = naive.lowest(lambda order: naive.position_cost(order, written, power), 4)  # noqa: B023
        assert consensus(lists, method).cost == pytest.approx(least)


def test_sorting_by_mean_position_solves_the_assignment():
    table = np.random.default_rng(0).random((30, 59))
    table /= table.sum(axis=1, keepdims=True)  # every item is on every ballot
    costs = table @ (np.arange(59)[:, None] / 2.0 - np.arange(30)) ** 2
    assert spearman_order(table)[1] == pytest.approx(costs[linear_sum_assignment(costs)].sum())
    assert spearman_order(np.ones((4, 7)))[0].tolist() == [0, 1, 2, 3]
    assert footrule_order(np.eye(1))[0].tolist() == [0]


@pytest.mark.parametrize("method", ["borda", "copeland", "schulze", "ranked-pairs"])
def test_scores_of_voting_rules(method):
    rule = getattr(naive, method.replace("-", "_"))
    for seed in range(8):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 6))
        ballots = random_ballots(rng, n, int(rng.integers(1, 8)), whole=bool(seed % 2))
        found = consensus(given(ballots, n), method)
        np.testing.assert_allclose(found.scores, rule(ballots, n))
        keys = [(-found.scores[item], item) for item in found.order]
        assert keys == sorted(keys)
        assert found.cost == pytest.approx(naive.kendall_cost(found.order, ballots))
        least, _ = naive.lowest(lambda order, b=ballots: naive.kendall_cost(order, b), n)
        assert found.lower_bound <= least + 1e-9
        assert not found.proved or found.cost == pytest.approx(least)


def test_schulze_and_ranked_pairs_of_published_elections():
    # Schulze (2011), example 1: E > A > C > B > D.
    ballots = ["ACBED", "ADECB", "BEDAC", "CABED", "CAEBD", "CBADE", "DCEBA", "EBADC"]
    weights = [5, 5, 8, 3, 7, 2, 7, 8]
    found = consensus([list(ballot) for ballot in ballots], "schulze", weights=weights)
    assert "".join(found.ranked_names) == "EACBD"
    # The capital of Tennessee: Nashville > Chattanooga > Knoxville > Memphis.
    ballots = ["MNCK", "NCKM", "CKNM", "KCNM"]
    for method in ("ranked-pairs", "schulze", "copeland", "kemeny"):
        found = consensus([list(ballot) for ballot in ballots], method, weights=[42, 26, 15, 17])
        assert "".join(found.ranked_names) == "NCKM"


# ---- pairs and components ------------------------------------------------------------------------


def test_pairs_of_every_kind_of_ballot():
    ballots = random_ballots(np.random.default_rng(0), 6, 20, whole=False)
    np.testing.assert_array_equal(count_pairs(given(ballots, 6)).wins, naive.wins(ballots, 6))
    both = count_pairs(Ballots.from_best_worst([0], [2], [[0, 1, 2, 3]], weights=[2.0]))
    assert both.wins.tolist() == (2 * naive.wins([([[0], [1, 3], [2]], 1.0)], 4)).tolist()
    assert both.ties.tolist() == [[0, 0, 0, 0], [0, 0, 0, 2], [0, 0, 0, 0], [0, 2, 0, 0]]
    duels = count_pairs(Ballots.from_pairs([0, 1], [1, 2], ties=[False, True]))
    assert np.isnan(duels.shares[0, 2])
    assert duels.shares[0, 1] == 1.0
    assert duels.shares[1, 2] == 0.5


def test_weights_that_add_up_but_for_rounding_tie():
    found = consensus([[0, 1], [0, 1], [0, 1], [1, 0]], "copeland", weights=[0.1, 0.1, 0.1, 0.3])
    assert found.margins[0, 1] == 0.0
    assert found.scores.tolist() == [0.5, 0.5]


def test_components_come_in_the_order_of_majorities():
    rng = np.random.default_rng(3)
    for _ in range(20):
        n = 9
        upper = np.triu(rng.integers(-1, 4, (n, n)), 1)
        mixed = rng.permutation(n)
        margins = (upper - upper.T)[np.ix_(mixed, mixed)].astype(float)
        parts = components(margins)
        assert sorted(np.concatenate(parts).tolist()) == list(range(n))
        for place, one in enumerate(parts):
            for other in parts[place + 1 :]:
                assert (margins[np.ix_(one, other)] >= 0).all()
        # Any order that is sorted by component is not worse than before.
        pairs = Majorities(np.maximum(margins, 0.0), np.zeros((n, n)))
        label = np.empty(n, dtype=int)
        for place, one in enumerate(parts):
            label[one] = place
        order = rng.permutation(n)
        grouped = order[np.argsort(label[order], kind="stable")]
        assert pairs.cost(grouped, 0.5) <= pairs.cost(order, 0.5)


# ---- large problems ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_forty_random_ballots_over_thirty_items_are_proved(seed):
    orders = rankings.random_orders(30, 40, rng=seed)
    found = consensus(orders)
    assert found.proved
    assert found.lower_bound == found.cost == rankings.kendall(orders, found.order).sum()
    for method in ("borda", "schulze"):
        other = consensus(orders, method)
        assert other.lower_bound <= found.cost <= other.cost


def test_a_hundred_items_with_strong_agreement_are_proved():
    orders = PlackettLuce(0.1 * np.arange(100.0)).sample(40, rng=0)
    found = consensus(orders)
    assert found.proved
    assert found.lower_bound == found.cost == rankings.kendall(orders, found.order).sum()


def test_a_time_limit_leaves_a_bound():
    wins = np.random.default_rng(0).integers(0, 100, (60, 60)).astype(float)
    np.fill_diagonal(wins, 0.0)
    pairs = Majorities(wins, np.zeros((60, 60)))
    lines = []
    start = time.monotonic()
    found = kemeny(pairs, time_limit=0.5, tell=lines.append)
    assert time.monotonic() - start < 10.0
    assert not found.proved
    assert 0.0 <= found.excess_bound < found.excess
    assert all(line.startswith("60 items, linear relaxation: ") for line in lines)
    quick = kemeny(pairs, exact=False)
    assert not quick.proved
    assert quick.excess == pytest.approx(found.excess, rel=0.05)


@pytest.mark.parametrize("cuts", [True, False])
def test_what_triangles_leave_is_closed_by_cuts_or_the_integer_program(cuts, monkeypatch):
    if not cuts:
        monkeypatch.setattr(program, "odd_circles", lambda matrix, place, most: Cuts.none(91))
    wins = np.random.default_rng(0).integers(0, 100, (14, 14)).astype(float)
    np.fill_diagonal(wins, 0.0)
    least = naive.lowest_by_sets(wins)
    for unit in (1.0, 0.37):  # whole numbers, and others
        lines = []
        pairs = Majorities(unit * wins, np.zeros((14, 14)))
        found = kemeny(pairs, tell=lines.append)
        assert ("linear relaxation" if cuts else "integer program") in lines[-1]
        assert found.proved
        assert found.excess == found.excess_bound
        assert pairs.cost(found.order, 0.5) == pytest.approx(unit * least)


# ---- what it says --------------------------------------------------------------------------------


def voters():
    lists = [["a", "b", "c", "d"], ["b", "a", "c", "d"], ["a", "c", "b", "d"]]
    return Ballots.from_orders(lists, weights=[40, 25, 35])


def test_the_table():
    found = consensus(voters(), "borda").bootstrap(50, rng=0)
    text = str(found)
    assert text.splitlines()[0] == (
        "4 items, 100 ballots; borda: Kendall cost 60, proved to be the lowest; "
        "kept: in 50 bootstrap replicates"
    )
    frame = found.to_frame()
    assert list(frame.columns) == ["place", "name", "score", "share", "margin", "kept"]
    assert frame["name"].tolist() == list("abcd") == list(found.ranked_names)
    assert frame["share"].tolist()[:3] == [0.75, 0.65, 1.0]
    assert frame["margin"].tolist()[:3] == [50.0, 30.0, 100.0]
    assert frame.iloc[3][["share", "margin", "kept"]].isna().all()
    assert found._repr_html_().count("<tr>") == 5
    assert json.loads(json.dumps(found.to_dict()["order"])) == list("abcd")
    assert found.ranks.tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="read-only"):
        found.order[0] = 1


@pytest.mark.parametrize("method", METHODS)
def test_the_bootstrap_tells_firm_pairs_from_others(method):
    found = consensus(voters(), method)
    assert found.kept is None
    firm = found.bootstrap(60, rng=1)
    assert firm.replicates.shape == (60, 4)
    assert firm.kept[0] > 0.9
    assert firm.kept[2] == 1.0
    assert (found.bootstrap(60, rng=1).replicates == firm.replicates).all()


def test_ties_are_broken_at_random_in_the_bootstrap():
    never_met = Ballots.from_pairs([0, 1], [2, 3], weights=[20, 20])
    for method in ("kemeny", "copeland"):
        found = consensus(never_met, method).bootstrap(300, rng=0)
        place = np.argsort(found.replicates, axis=1)
        assert abs((place[:, 0] < place[:, 1]).mean() - 0.5) < 0.13, method
        assert (place[:, 0] < place[:, 2]).all()
    exact = consensus(voters()).bootstrap(20, rng=0, exact=True)
    assert (exact.replicates == consensus(voters()).bootstrap(20, rng=0).replicates).all()


@pytest.mark.parametrize("weight", [0.9, 2.5])
def test_a_ballot_with_a_weight_is_drawn_as_one(weight):
    orders = [[0, 1, 2]] * 40 + [[1, 0, 2]] * 15 + [[2, 1, 0]] * 5
    usual = consensus(orders).bootstrap(200, rng=0)
    weighted = consensus(orders, weights=np.full(60, weight)).bootstrap(200, rng=0)
    assert (weighted.replicates == usual.replicates).all()


def test_clusters_are_drawn_whole():
    ballots = Ballots.from_orders([[0, 1], [0, 1], [1, 0]], clusters=["v", "v", "w"])
    firm = consensus(ballots).bootstrap(600, rng=0)
    assert abs(firm.kept[0] - 0.75) < 0.08  # unless both draws are w
    # Nobody is drawn who is not there any more, or whose ballots were never cast.
    more = ballots + Ballots.from_orders([[1, 0]] * 9, clusters=list("abcdefghi"))
    there = np.arange(12) < 3
    for left in (more.take(there), Ballots.of(more, weights=there.astype(float))):
        assert (consensus(left).bootstrap(600, rng=0).kept == firm.kept).all()
    with pytest.raises(ValueError, match="by: the ballots have no clusters"):
        consensus(voters()).bootstrap(10, by="cluster")


def test_one_item_one_ballot_equal_ballots():
    assert consensus([[0]]).order.tolist() == [0]
    for method in METHODS:
        one = consensus([[2, 0, 1]], method)
        assert one.order.tolist() == [2, 0, 1]
        same = consensus([[2, 0, 1]] * 5, method)
        assert same.order.tolist() == [2, 0, 1]
        assert same.cost == 0.0
        assert same.proved


def test_new_numbers_for_the_items_change_nothing_else():
    rng = np.random.default_rng(5)
    orders, renamed = rankings.random_orders(7, 9, rng=2), rng.permutation(7)
    for method in METHODS:
        one, two = consensus(orders, method), consensus(renamed[orders], method)
        assert one.cost == pytest.approx(two.cost) or one.scores is not None
        if one.scores is not None and method != "ranked-pairs":  # equal margins go by number
            np.testing.assert_allclose(one.scores, two.scores[renamed])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: consensus([[0, 1]], "condorcet"), "method: expected one of kemeny"),
        (lambda: consensus([[0, 1]], penalty=2), "penalty: expected a number from 0 to 1"),
        (lambda: consensus([[0, 1]], time_limit=0), "time_limit: expected a positive number"),
        (lambda: consensus([[0, 1], [1, 2]]), "pass subset=True"),
        (
            lambda: consensus([[0, 1], [1, 2]], "footrule", subset=True),
            "needs ballots of all 3 items, ballot 0 has 2; use 'kemeny', or pass subset=False",
        ),
        (
            lambda: consensus(Ballots.from_best_worst([0], [1], [[0, 1, 2]]), "spearman"),
            "choices of the best and the worst have none",
        ),
        (lambda: consensus([[0, 1]], weights=[-1]), "no negative weight"),
        (lambda: consensus([[0, 1]]).bootstrap(0), "replicates: expected"),
        (lambda: rankings.consent, "has no attribute 'consent'"),
    ],
)
def test_mistakes(make, message):
    with pytest.raises((ValueError, AttributeError), match=message):
        make()


# ---- pictures, reports, files, the command -------------------------------------------------------


def test_the_picture_has_the_order_and_the_shares():
    figure = plots.plot_consensus(consensus(voters()))
    assert [tick.get_text() for tick in figure.axes[0].get_yticklabels()] == list("abcd")
    numbers = {text.get_position(): text.get_text() for text in figure.axes[0].texts}
    assert numbers[1, 0] == "0.75"
    assert (0, 0) not in numbers
    both = plots.plot_consensus(consensus(voters()).bootstrap(20, rng=0), most=3)
    bars = [axes for axes in both.axes if axes.get_xlabel().startswith("above the next one")]
    assert len(bars[0].patches) == 2


def test_the_report():
    page = consensus_report(consensus([[0, 1, 2], [1, 2, 0], [2, 0, 1]]).bootstrap(9, rng=0)).html()
    assert "Majorities against the ranking: 1." in page
    assert "in 9 samples of the ballots" in page
    borda = consensus_report(consensus([[0, 1, 2], [1, 2, 0], [2, 0, 1]], "borda")).html()
    assert "Its cost is at most 1 above the lowest." in borda


def test_tables_of_orders(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("tea,milk,cola\ncola,tea,milk\n")
    assert data.load_orders(path).names == ("cola", "milk", "tea")
    path.write_text("race;rank 2;rank 1;Count\n1;4.0;83.0;2\n2;83.0;4.0;1\n")
    ballots = data.load_orders(path)
    assert [ballots.names[item] for item in ballots.items] == ["83", "4", "4", "83"]
    assert ballots.weights.tolist() == [2.0, 1.0]
    path.write_text('a,"{b, c}"\nc,a\n')
    ballots = data.load_orders(path, subset=True)
    assert (ballots.sizes.tolist(), np.diff(ballots.ptr).tolist()) == ([1, 2, 1, 1], [3, 2])
    path.write_text("a,b,c,votes\n1,2,2,3\n,1,2,1\n")
    ranked = data.load_orders(path, kind="ranks")
    assert (ranked.sizes.tolist(), ranked.weights.tolist()) == ([1, 2, 1, 1], [3.0, 1.0])
    path.write_text("voter,a,b,c\nx,1,2,0\ny,2,1,0\nx,1,0,2\n")
    ranked = data.load_orders(path, kind="ranks", subset=False, unranked=0, voter="voter")
    assert (ranked.names, np.diff(ranked.ptr).tolist()) == (("a", "b", "c"), [3, 3, 3])
    assert ranked.clusters[0] == ranked.clusters[2] != ranked.clusters[1]
    path.write_text("rank1,rank2,who\na,b,x\nb,a,x\n")
    assert len(set(data.load_orders(path, voter="Who").clusters)) == 1


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "the file is empty"),
        ("a,{b|}\na,{}\n", {}, "line 2: expected a tie such as {a, b}, got {}"),
        ("rank1,rank2\na,b,c\n", {}, "votes.csv, line 2: expected 2 cells, got 3"),
        ("a,b,a\n", {}, "votes.csv: orders: 'a' is listed twice, at index 0"),
        ("rank1,rank2\n", {}, "at least one ballot below the header"),
        ("rank1,votes\na,x\n", {}, "line 2: weight: expected a finite number, got 'x'"),
        ("a,b\n1,x\n", {"kind": "ranks"}, "line 2: b: expected a finite number, got 'x'"),
        ("a,a\n1,2\n", {"kind": "ranks"}, "votes.csv: names: must be unique"),
        ("id,a,b\n1,1,2\n", {"kind": "ranks"}, "votes.csv: ranks: expected items as columns, got"),
        ("a,b\n0,1\n", {"kind": "ranks"}, "votes.csv: ranks: expected ranks from 1, got 0"),
        ("a,b\nb,a\n", {"unranked": 0.0}, "unranked: only for a table of ranks"),
        ("a,b\nb,a\n", {"voter": "a"}, "voter: expected a header with columns rank1"),
        ("a,b\n", {"kind": "rank"}, "kind: expected one of orders, ranks"),
    ],
)
def test_bad_tables_are_refused(tmp_path, text, options, message):
    path = tmp_path / "votes.csv"
    path.write_text(text)
    with pytest.raises(ValueError) as error:
        data.load_orders(path, **options)
    assert message in str(error.value)


def test_the_command(tmp_path):
    (tmp_path / "v.csv").write_text("rank1,rank2,rank3,votes\na,b,c,40\nb,a,c,25\na,c,b,35\n")
    text = permdist("consensus", "v.csv", "--bootstrap", "30", cwd=tmp_path)
    assert text.splitlines()[0].startswith("3 items, 100 ballots; kemeny: cost 60, proved")
    facts = json.loads(permdist("consensus", "v.csv", "-m", "borda", "--json", cwd=tmp_path))
    assert facts["order"] == ["a", "b", "c"]
    assert facts["items"][2]["kept"] is None
    for name in ("r.html", "r.csv", "r.json", "r.png"):
        arguments = ("consensus", "v.csv", "--bootstrap", "0", "-o", name)
        assert permdist(*arguments, cwd=tmp_path).endswith(f"Written: {name}\n")
    assert (tmp_path / "r.html").read_text().startswith("<!doctype html>")
    assert (tmp_path / "r.png").read_bytes()[1:4] == b"PNG"
    assert pd.read_csv(tmp_path / "r.csv")["margin"].tolist()[:2] == [50.0, 30.0]
    assert json.loads((tmp_path / "r.json").read_text())["proved"]
    (tmp_path / "v.toi").write_text("# NUMBER ALTERNATIVES: 3\n3: 2,{1,3}\n2: 1\n2: 3,2,1\n")
    text = permdist("consensus", "v.toi", "--without", "alternative 1", cwd=tmp_path)
    assert text.startswith("2 items")
    (tmp_path / "r.csv").write_text("voter,a,b,c\nx,1,2,0\ny,2,1,0\nz,1,0,2\n")
    ranks = ("consensus", "r.csv", "--ranks", "--voter", "voter", "--unranked", "0")
    assert "kemeny: cost 1," in permdist(*ranks, "--bootstrap", "9", cwd=tmp_path)
    assert "kemeny: cost 2," in permdist(*ranks, "--below", "--bootstrap", "0", cwd=tmp_path)


def test_mistakes_in_the_command_are_one_line(tmp_path):
    (tmp_path / "v.csv").write_text("a,b\nb,c\n")
    (tmp_path / "r.csv").write_text("voter,a,b\n1,0,1\n")
    for arguments, message in (
        (("r.csv", "--ranks"), "got 'voter'; pass --voter voter, or rename it"),
        (("r.csv", "--ranks", "--voter", "voter"), "pass --unranked 0 if it says that"),
        (("v.csv",), "pass --subset if these were not there, --below if they are below"),
        (("v.csv", "--subset", "-m", "kemny"), "method: expected one of kemeny"),
        (("v.csv", "-o", "r.tex"), "--output: expected a file .html"),
        (("v.soc", "--ranks"), "--ranks: only for tables"),
    ):
        text = permdist("consensus", *arguments, cwd=tmp_path, code=2)
        assert message in text
        assert len(text.splitlines()) == 1

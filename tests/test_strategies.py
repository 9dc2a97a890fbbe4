import subprocess
import sys

import numpy as np
import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from permdist import (
    Ballots,
    DavidsonLuce,
    GaussianScores,
    GoodBad,
    PlackettLuce,
    rankings,
    strategies,
)
from permdist.data import Queries
from permdist.rankings import BucketOrder, TopK


@given(st.data())
def test_bounds_are_kept(data):
    order = data.draw(strategies.orders(min_items=2, max_items=5))
    assert 2 <= len(order) <= 5
    rankings.check_orders(order)
    three = data.draw(strategies.order_tuples(count=3, n_items=4))
    assert [len(order) for order in three] == [4, 4, 4]
    scores = data.draw(strategies.scores(ties=False, min_value=-1, max_value=1))
    assert len(set(scores)) == len(scores)
    assert (np.abs(scores) <= 1).all()
    top = data.draw(strategies.top_k_lists(min_items=3, min_k=2, max_k=3))
    assert 2 <= top.k <= 3 <= top.n_items
    labels = data.draw(strategies.labels(n_items=3, min_items=5, max_grade=0))
    assert labels.tolist() == [0, 0, 0]


def test_ties_are_likely_on_request():
    tied = find(strategies.scores(ties=True, n_items=6), lambda s: len(set(s)) < 6)
    assert len(set(tied)) < 6


@given(strategies.labelled_queries(min_relevant=2, min_irrelevant=1, max_grade=3))
def test_labelled_queries_keep_their_promises(query):
    assert len(query.scores) == len(query.labels)
    assert (query.labels > 0).sum() >= 2
    assert (query.labels == 0).sum() >= 1
    assert query.labels.max() <= 3


@given(strategies.davidson_luces(max_tie=2, n_items=3, max_score=1.0))
def test_rankings_with_ties_keep_their_bounds(model):
    assert model.n_items == 3
    assert model.largest_tie <= 2
    assert (np.abs(model.scores) <= 1).all()


@given(strategies.ballots(max_ballots=3, max_tie=2, max_items=4))
def test_ballots_keep_their_bounds(ballots):
    assert 1 <= ballots.n_ballots <= 3
    assert 2 <= ballots.n_items <= 4
    assert ballots.largest_tie <= 2
    logs = DavidsonLuce(np.zeros(ballots.n_items), [0.0]).log_prob(ballots)
    assert logs.shape == (ballots.n_ballots,)
    assert (logs <= 0).all()
    assert np.isfinite(logs).all()


def test_ballots_are_of_every_kind():
    seen = []

    @settings(max_examples=60, database=None, derandomize=True)
    @given(strategies.ballots(n_items=4))
    def collect(ballots):
        lengths = np.diff(ballots.ptr)
        unlisted = len(ballots.items) > ballots.sizes.sum()
        seen.append((ballots.largest_tie == 3, lengths.min() < 4, unlisted, len(set(lengths)) > 1))

    collect()
    assert np.array(seen).any(axis=0).all()


@given(strategies.queries(min_queries=2, max_features=2, doc_ids=True))
def test_collections_keep_their_bounds(queries):
    assert len(queries) >= 2
    assert queries.n_features <= 2
    assert queries.doc_ids is not None


@pytest.mark.parametrize(
    "kind",
    [
        Ballots,
        BucketOrder,
        TopK,
        Queries,
        PlackettLuce,
        DavidsonLuce,
        GaussianScores,
        GoodBad,
    ],
)
def test_types_are_registered(kind):
    assert isinstance(find(st.from_type(kind), lambda _: True), kind)


def test_importing_hypothesis_does_not_import_us():
    code = "import hypothesis.strategies, sys; assert 'permdist.rankings' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_shrinking_gives_small_examples():
    assert find(strategies.orders(), lambda o: o[0] == 2).tolist()[0::2] in ([2, 1], [2, 0])
    assert find(strategies.orders(min_items=4), lambda _: True).tolist() == [0, 1, 2, 3]
    assert find(strategies.queries(), lambda q: q.y.max() > 0) == Queries([[0.0]], [1], [0])
    assert find(strategies.labels(), lambda y: y.sum() > 2).tolist() in ([1, 2], [2, 1])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: strategies.orders(min_items=0), "expected 1 <= min <= max, got 0"),
        (lambda: strategies.scores(min_items=5, max_items=4), "got 5 and 4"),
        (lambda: strategies.labels(n_items=2, min_relevant=3), "n_items: expected at least 3"),
    ],
)
def test_bad_bounds(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@given(strategies.scores(wide=True, min_items=2, max_value=3))
def test_wide_scores_keep_their_bounds(scores):
    assert len(scores) >= 2
    assert (np.abs(scores) <= 1e8).all()
    assert not np.signbit(scores[scores == 0]).any()


def test_wide_scores_have_every_magnitude():
    seen = []

    @settings(max_examples=200, database=None, derandomize=True)
    @given(strategies.scores(wide=True, n_items=6))
    def collect(scores):
        seen.append(np.abs(scores))

    collect()
    table = np.stack(seen)
    logs = np.log10(table[table > 0])
    assert np.histogram(logs, bins=8, range=(-8, 8))[0].min() >= 3
    # And far apart beside one another, where differences lose their digits.
    assert ((table.max(axis=1) > 1e6) & (table.min(axis=1) < 1)).sum() > 10


@settings(max_examples=30)
@given(st.data())
def test_wide_distributions_are_defined(data):
    data.draw(strategies.plackett_luces(wide=True))
    gaussian = data.draw(strategies.gaussian_scores(wide=True))
    assert np.ptp(gaussian.scores) <= 40 * gaussian.scale * (1 + 1e-12)
    data.draw(strategies.good_bads(wide=True))
    data.draw(strategies.pair_signs(wide=True))
    signs = data.draw(strategies.valid_signs(wide=True, max_items=5))
    assert np.isfinite(signs.log_partition())
    query = data.draw(strategies.labelled_queries(wide=True, min_relevant=1))
    assert len(query.scores) == len(query.labels)

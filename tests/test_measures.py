"""The contract of every measure, against slow references and hand-worked values."""

import dataclasses
import itertools
import math

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from permdist import measures, rankings, strategies
from permdist.measures import (
    AP,
    AUC,
    ERR,
    GMAP,
    NDCG,
    RBP,
    RR,
    WTA,
    BinG,
    ElevenPoint,
    InterpolatedPrecision,
    KendallTau,
    Precision,
    Recall,
    RelativePrecision,
    RPrecision,
    Success,
    TopKPersistence,
)

# One of everything: each kind, each convention, cut-offs below, at and above the length.
EVERY = [
    AUC(),
    AUC(empty="one"),
    AP(),
    AP(2),
    NDCG(),
    NDCG(3),
    NDCG(100),
    NDCG(3, gain="linear"),
    NDCG(discount="jk"),
    NDCG(4, gain="linear", discount="jk", short="zero"),
    Precision(1),
    Precision(3),
    Precision(4, short="zero"),
    Precision(50),
    RR(),
    RR(2),
    WTA(),
    ERR(),
    ERR(2, max_grade=3),
    KendallTau(),
    KendallTau(empty="one"),
    TopKPersistence(),
    TopKPersistence(1),
    TopKPersistence(3),
    GMAP(),
    Recall(1),
    Recall(3),
    RelativePrecision(2),
    RPrecision(),
    RPrecision(1.6),
    Success(1),
    Success(3),
    RBP(),
    RBP(0.5, 3),
    BinG(),
    InterpolatedPrecision(),
    InterpolatedPrecision(0.4),
    InterpolatedPrecision(1.0),
    ElevenPoint(),
]
ADDITIVE = [measure for measure in EVERY if measure.additive]
AVERAGED = [type(m)(**{**vars(m), "ties": "average"}) for m in ADDITIVE]
DEFINED = strategies.labelled_queries(min_relevant=1, min_irrelevant=1, max_items=7, max_grade=3)
each = pytest.mark.parametrize("measure", EVERY, ids=str)


def test_the_list_above_has_every_kind():
    own = {kind for kind in measures.kinds() if kind.__module__.startswith("permdist.")}
    assert {type(measure) for measure in EVERY} == own


@given(query=strategies.labelled_queries(max_grade=3))
def test_from_scores_equals_the_naive_value(query):
    for measure in EVERY:
        expected = naive.measure_from_scores(measure, query.scores, query.labels)
        assert measure.from_scores(*query) == pytest.approx(expected, abs=1e-13), measure


@given(query=strategies.labelled_queries(max_grade=3, max_items=6, ties=True))
def test_averaged_ties_equal_the_mean_over_all_ways_to_break_them(query):
    for measure in AVERAGED:
        expected = naive.measure_from_scores(measure, query.scores, query.labels)
        assert measure.from_scores(*query) == pytest.approx(expected, abs=1e-13), measure


@given(query=DEFINED)
def test_scores_orders_and_range_agree(query):
    for measure in EVERY:
        value = measure(rankings.order_by_scores(query.scores), query.labels)
        assert value == measure.from_scores(*query), measure
        low, high = measure.range
        assert low <= value <= high + 1e-15, measure
        assert value <= measure.ideal(query.labels) + 1e-15, measure
        assert measure.defined(query.labels), measure


@given(query=DEFINED, data=st.data())
def test_numbering_of_the_items_does_not_matter(query, data):
    order = data.draw(strategies.orders(n_items=len(query.labels)))
    relabel = data.draw(strategies.orders(n_items=len(query.labels)))
    moved = np.empty_like(query.labels)
    moved[relabel] = query.labels
    for measure in EVERY:
        assert measure(relabel[order], moved) == measure(order, query.labels), measure


@given(labels=strategies.labels(min_relevant=1, min_irrelevant=1, max_items=5, max_grade=3))
def test_the_ideal_is_the_best_of_all_orders(labels):
    orders = rankings.enumerate_orders(len(labels))
    for measure in EVERY:
        best = measure(orders, labels).max()
        assert measure.ideal(labels) == pytest.approx(best, abs=1e-14), measure


@given(query=DEFINED)
def test_steps_add_up_to_the_value(query):
    order = rankings.order_by_scores(query.scores)
    grades, totals = np.unique(query.labels, return_counts=True)
    for measure in ADDITIVE:
        above = np.zeros(len(grades), dtype=int)
        total = measure.offset(grades, totals)
        for item in order:
            level = int(np.searchsorted(grades, query.labels[item]))
            total += measure.step(grades, totals, level, above)
            above[level] += 1
        assert total == pytest.approx(measure(order, query.labels), abs=1e-12), measure


@each
@pytest.mark.parametrize(("p", "m"), [(1, 1), (2, 3), (3, 2), (4, 1), (2, 0)])
def test_the_step_table_adds_up_along_every_path(measure, p, m):
    if (m == 0 and isinstance(measure, AUC | KendallTau)) or not measure.additive:
        return
    table = measure.step_table(p, m)
    assert table.shape == (p, m + 1)
    kinds, totals = np.array([0, 1]), np.array([m, p])
    for goods in itertools.combinations(range(p + m), p):
        labels = np.zeros(p + m, dtype=int)
        labels[list(goods)] = 1
        value = measure.offset(kinds, totals)
        value += sum(table[j, position - j] for j, position in enumerate(goods))
        bads = [k for k in range(p + m) if k not in goods]
        for i, position in enumerate(bads):
            value += measure.step(kinds, totals, 0, [i, position - i])
        assert value == pytest.approx(measure(np.arange(p + m), labels), abs=1e-12)


@given(query=DEFINED)
def test_positional_form_equals_the_value(query):
    orders = rankings.random_orders(len(query.labels), 5, rng=0)
    ranks = rankings.order_to_ranks(orders)
    for measure in EVERY:
        form = measure.positional(query.labels)
        if form is None:
            assert not isinstance(measure, NDCG | Precision | WTA | Recall | RPrecision | RBP)
            continue
        values = form.offset + form.weights[ranks] @ form.gains
        assert values == pytest.approx(measure(orders, query.labels), abs=1e-12), measure


@each
def test_a_name_says_everything(measure):
    assert measures.parse(measure.name) == measure
    assert measures.parse(measure) is measure
    assert eval(repr(measure)) == measure
    assert str(measure) == measure.name
    assert hash(measure) == hash(eval(repr(measure)))
    with pytest.raises(AttributeError):
        measure.ties = "average"


@each
def test_batches(measure):
    orders = rankings.random_orders(8, (2, 3), rng=0)
    labels = np.random.default_rng(0).integers(0, 3, (2, 3, 8))
    values = measure(orders, labels)
    assert values.shape == (2, 3)
    assert values[1, 2] == measure(orders[1, 2], labels[1, 2])
    shared = measure(orders, labels[0, 0])
    assert shared[1, 0] == measure(orders[1, 0], labels[0, 0])
    scores = np.random.default_rng(1).normal(size=(2, 3, 8))
    assert measure.from_scores(scores, labels)[0, 1] == measure.from_scores(
        scores[0, 1], labels[0, 1]
    )


@pytest.mark.parametrize("kind", [AUC, AP, NDCG, RR, WTA, ERR, KendallTau, TopKPersistence])
def test_empty_queries_follow_the_rule(kind):
    order, nothing = [0, 1, 2], [0, 0, 0]
    assert kind()(order, nothing) == 0.0
    assert kind(empty="one")(order, nothing) == 1.0
    assert math.isnan(kind(empty="skip")(order, nothing))
    assert not kind().defined(nothing)
    everything = kind()(order, [1, 1, 1])
    assert everything == (0.0 if kind in (AUC, KendallTau) else kind().ideal([1, 1, 1]))


def test_many_relevant_items_are_sorted_and_few_are_counted():
    # Both ways to place items must agree: 300 relevant of 400 sorts, 3 of 400 counts.
    rng = np.random.default_rng(0)
    for relevant in (3, 40, 300):
        scores = rng.integers(0, 50, 400).astype(float)
        labels = np.zeros(400, dtype=int)
        labels[rng.permutation(400)[:relevant]] = rng.integers(1, 4, relevant)
        order = rankings.order_by_scores(scores)
        for measure in EVERY:
            value = measure.from_scores(scores, labels)
            assert value == measure(order, labels)
            if type(measure) is not TopKPersistence:  # its reference tries all subsets
                expected = naive.measure(measure, labels[order])
                assert value == pytest.approx(expected, abs=1e-12)
        for measure in AVERAGED:
            shuffled = [
                type(measure)(**{**vars(measure), "ties": "index"}).from_scores(
                    scores[mixed], labels[mixed]
                )
                for mixed in rankings.random_orders(400, 100, rng=relevant)
            ]
            error = np.std(shuffled) / 10.0 + 1e-12
            assert abs(measure.from_scores(scores, labels) - np.mean(shuffled)) < 5 * error


# ---- values worked out by hand ---------------------------------------------------------------

LABELS = [2, 0, 1, 0, 3]  # in ranked order
HAND = [
    # pairs in order: 2>0, 2>1, 2>0, 0<1, 0<3, 1>0, 1<3, 0<3 and 2<3; (0, 0) is no pair
    (AUC(), 4 / 9),
    (KendallTau(), -1 / 9),
    (AP(), (1 / 1 + 2 / 3 + 3 / 5) / 3),
    (AP(3), (1 / 1 + 2 / 3) / 3),
    (NDCG(), (3 + 1 / 2 + 7 / math.log2(6)) / (7 + 3 / math.log2(3) + 1 / 2)),
    (NDCG(gain="linear"), (2 + 1 / 2 + 3 / math.log2(6)) / (3 + 2 / math.log2(3) + 1 / 2)),
    (NDCG(discount="jk"), (3 + 1 / math.log2(3) + 7 / math.log2(5)) / (7 + 3 + 1 / math.log2(3))),
    (NDCG(2), 3 / (7 + 3 / math.log2(3))),
    (Precision(2), 1 / 2),
    (Precision(10), 3 / 10),
    (Precision(10, short="zero"), 0.0),
    (NDCG(10, short="zero"), 0.0),
    (RR(), 1.0),
    (WTA(), 1.0),
    # R = 3/16, 0, 1/16, 0, 7/16
    (ERR(), 3 / 16 + 13 / 16 * 1 / 16 / 3 + 13 / 16 * 15 / 16 * 7 / 16 / 5),
    (ERR(1), 3 / 16),
    (ERR(max_grade=3), 3 / 8 + 5 / 8 * 1 / 8 / 3 + 5 / 8 * 7 / 8 * 7 / 8 / 5),
    # the true first two are the items at ranks 5 and 1
    (TopKPersistence(2), 1 / 2),
    (TopKPersistence(1), 0.0),
    (TopKPersistence(3), 2 / 3),
    (TopKPersistence(10), 1.0),
]


@pytest.mark.parametrize(("measure", "value"), HAND, ids=lambda x: str(x))
def test_by_hand(measure, value):
    assert measure([0, 1, 2, 3, 4], LABELS) == pytest.approx(value, abs=1e-15)


def test_ties_by_hand():
    # Items 0 and 1 tie at the top, item 1 is good: half the time it is first.
    scores, labels = [1.0, 1.0, 0.0], [0, 1, 0]
    assert RR(ties="average").from_scores(scores, labels) == 0.75
    assert AP(ties="average").from_scores(scores, labels) == 0.75
    assert WTA(ties="average").from_scores(scores, labels) == 0.5
    assert AUC(ties="average").from_scores(scores, labels) == 0.75
    assert RR().from_scores(scores, labels) == 0.5
    assert RR().from_scores(scores, [1, 0, 0]) == 1.0


# ---- names, presets, errors ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "measure"),
    [
        ("map", AP()),
        ("MAP@10", AP(10)),
        (" ndcg ", NDCG()),
        ("p@5", Precision(5)),
        ("precision@5", Precision(5)),
        ("mrr", RR()),
        ("kendall", KendallTau()),
        ("err@10[max_grade=2]", ERR(10, max_grade=2)),
        ("ndcg@3[ties=average, empty=skip]", NDCG(3, ties="average", empty="skip")),
        ("letor3:ndcg@10", NDCG(10, discount="jk", short="zero")),
        ("letor3:p@10", Precision(10, short="zero")),
        ("letor4:p@10", Precision(10)),
        ("letor4:map", AP()),
        ("trec:ndcg", NDCG(gain="linear")),
        ("trec:ndcg@5[ties=average]", NDCG(5, gain="linear", ties="average")),
        ("burges:ndcg@10", NDCG(10, gain="exp2", discount="log2")),
        ("rbp@10[p=0.95]", RBP(0.95, 10)),
        ("P_10", Precision(10)),
        ("map_cut_10", AP(10)),
        ("trec:recip_rank", RR()),
        ("ndcg_cut_5", NDCG(5, gain="linear")),
        ("iprec_at_recall_0.40", InterpolatedPrecision(0.4)),
        ("11pt_avg", ElevenPoint()),
    ],
)
def test_parse(text, measure):
    assert measures.parse(text) == measure


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: measures.parse("ndgc@10"), ValueError, "did you mean 'ndcg'?"),
        (lambda: measures.parse("auc@10"), ValueError, "'auc' takes no cut-off"),
        (lambda: measures.parse("p"), ValueError, "needs a cut-off, as in 'p@10'"),
        (lambda: measures.parse("ndcg@0"), ValueError, "k: expected at least 1, got 0"),
        (lambda: measures.parse("ndcg[gian=exp2]"), ValueError, "cannot read option 'gian=exp2'"),
        (lambda: measures.parse("ndcg[gain=exp]"), ValueError, "gain: expected one of exp2"),
        (lambda: measures.parse("letor5:map"), ValueError, "preset: expected one of letor3"),
        (lambda: measures.parse("rbp[p=x]"), ValueError, "p of 'rbp[p=x]' must be a number"),
        (lambda: RBP(1.0), ValueError, "p: expected a number between 0 and 1, got 1.0"),
        (lambda: RPrecision(0.0), ValueError, "multiple: expected more than 0"),
        (lambda: InterpolatedPrecision(2.0), ValueError, "recall: expected a number from 0 to 1"),
        (lambda: ElevenPoint(ties="average"), ValueError, "11pt has no average over ties"),
        (lambda: ElevenPoint().step_table(1, 1), ValueError, "is no sum along the ranking"),
        (lambda: measures.parse("p@99999999999999999999"), ValueError, "k: expected at most"),
        (lambda: AP().ideal([[1, 0]]), ValueError, "labels: expected 1 dimension"),
        (lambda: measures.parse(10), TypeError, "expected a Measure or a name, got int"),
        (lambda: NDCG(short="no"), ValueError, "short: expected one of pad, zero"),
        (lambda: AP(empty="nan"), ValueError, "empty: expected one of zero, one, skip"),
        (lambda: ERR()([0, 1], [5, 0]), ValueError, "grades up to max_grade=4, got 5"),
        (lambda: NDCG()([0, 1], [2000, 0]), ValueError, "use gain='linear'"),
        (lambda: AP()([0, 0], [1, 0]), ValueError, "orders: expected each item once"),
        (
            lambda: AP()([0, 1], [1, 0, 0]),
            ValueError,
            "labels: expected a shape that broadcasts to (2,), got (3,)",
        ),
        (lambda: AP()([0, 1], [1, -1]), ValueError, "non-negative integers, got -1 at index 1"),
        (lambda: AP()([0, 1], ["a", "b"]), TypeError, "labels: expected numbers"),
        (lambda: AP().from_scores([0, np.nan], [1, 0]), ValueError, "scores: expected finite"),
        (lambda: AP().from_scores([], []), ValueError, "scores: expected at least one item"),
        (lambda: AP().step_table(0, 3), ValueError, "p: expected at least 1"),
    ],
)
def test_mistakes_are_named(make, error, message):
    naive.refuses(make, error, message)


def test_long_strict_orders_use_linear_gain():
    labels = np.arange(5000)
    assert NDCG(gain="linear")(labels[::-1], labels) == pytest.approx(1.0)
    huge = labels * 10**12
    assert NDCG(gain="linear")(labels[::-1], huge) == pytest.approx(1.0)


def test_whole_numbered_float_labels_are_welcome():
    assert AP()([0, 1], [1.0, 0.0]) == 1.0


def test_a_users_measure_joins_by_being_defined():
    from dataclasses import dataclass

    @dataclass(frozen=True, kw_only=True, repr=False)
    class FirstTwo(measures.Measure):
        aliases = ("firsttwo",)

        def _values(self, placed):
            return Precision(2)._values(placed)

        def step(self, grades, totals, level, above):
            return Precision(2).step(grades, totals, level, above)

    try:
        assert measures.parse("firsttwo") == FirstTwo()
        assert FirstTwo()([0, 1], [1, 0]) == 0.5

    finally:
        FirstTwo.aliases = ()


def make_first(default, annotation="float", name="First"):
    """Define a measure with one option, as a user would."""

    def _values(self, placed):
        return Precision(1)._values(placed)

    def step(self, grades, totals, level, above):
        return Precision(1).step(grades, totals, level, above)

    members = {"option": default, "aliases": ("firstoption",), "_values": _values, "step": step}
    members |= {"__annotations__": {"option": annotation}, "__module__": __name__}
    if default is dataclasses.MISSING:
        del members["option"]
    kind = type(name, (measures.Measure,), members)
    return dataclasses.dataclass(frozen=True, repr=False)(kind)


@pytest.fixture
def first():
    made = []

    def make(*args, **options):
        made.append(make_first(*args, **options))
        return made[-1]

    yield make
    for kind in made:
        kind.aliases = ()


NUMBERS = st.floats(allow_nan=False) | st.integers() | st.sampled_from([1e-3, -1e-300, -0.0])
OPTIONS = NUMBERS | st.none() | st.booleans() | st.text(max_size=40)


@given(data=st.data())
def test_options_of_any_plain_type_are_read_back(data):
    annotation, values = data.draw(
        st.sampled_from(
            [
                ("float", NUMBERS),
                ("int", st.integers()),
                ("bool", st.booleans()),
                ("str", st.text(max_size=40)),
                ("float | None", NUMBERS | st.none()),
                ("str | int | None", st.text(max_size=40) | st.integers() | st.none()),
                ("NotDefinedAnywhere", OPTIONS),
            ]
        )
    )
    missing = st.just(dataclasses.MISSING)
    default = data.draw(missing | values)
    if isinstance(default, str) and annotation == "NotDefinedAnywhere":
        values = st.text(max_size=40)
    kind = make_first(default, annotation)
    try:
        measure = kind(data.draw(values))
        again = measures.parse(measure.name)
        assert again == measure
        assert hash(again) == hash(measure)
        assert type(again.option) is type(measure.option) or annotation != "NotDefinedAnywhere"
    finally:
        kind.aliases = ()


def test_a_learner_with_a_users_measure_is_saved_and_loaded(first, tmp_path):
    from permdist import data, models

    measure = first(0.8)(-1e-3)
    learner = models.AdaRank(measure=measure, max_iter=2).fit(data.make_letor(4, rng=0))
    learner.save(tmp_path / "learner.json")
    again = models.load(tmp_path / "learner.json")
    assert measures.parse(again.measure) == measure
    queries = data.make_letor(3, rng=1)
    assert again.score(queries) == learner.score(queries)


def test_a_measure_defined_again_replaces_the_older_one(first):
    older, newer = first(0.8), first(0.5)
    assert measures.parse("firstoption") == newer()
    assert newer in measures.kinds()
    assert older not in measures.kinds()
    with pytest.raises(ValueError, match="the name 'firstoption' is taken"):
        first(0.8, name="Second")
    with pytest.raises(TypeError, match="expected a tuple of names, got the text 'ap2'"):
        type("AP2", (AP,), {"aliases": "ap2"})


def test_an_option_without_default_must_be_given(first):
    first(dataclasses.MISSING)
    with pytest.raises(ValueError, match="needs the option option"):
        measures.parse("firstoption")
    assert measures.parse("firstoption[option=-1e-3]").option == -1e-3


def test_a_cut_off_may_be_left_out_where_it_has_a_default():
    @dataclasses.dataclass(frozen=True, repr=False)
    class ShortAP(AP):
        k: int | None = 10
        aliases = ("shortap",)

    assert [ShortAP().name, ShortAP(None).name] == ["shortap@10", "shortap@none"]
    assert measures.parse("shortap@none") == ShortAP(None)
    assert measures.parse("shortap") == ShortAP()
    ShortAP.aliases = ()

import arviz
import numpy as np
import pytest
from matplotlib.figure import Figure

from permdist import DavidsonLuce, PlackettLuce, data, measures, plots, rankings
from permdist.samplers import run_chains


def evaluations():
    queries = data.make_letor(20, n_features=4, n_constant=0, rng=0)
    names = ["map", "ndcg@5[empty=skip]"]
    return {
        f"feature {j}": measures.evaluate(queries.X[:, j], queries.y, queries.qid, names)
        for j in range(4)
    }


def test_a_collection_is_drawn_whole():
    queries = data.make_letor(20, rng=0)
    axes = plots.collection(queries)
    heights = sum(patch.get_height() for patch in axes.patches)
    assert heights == queries.n_documents
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["label 2", "label 1", "label 0"]


def test_pictures_go_on_given_axes():
    axes = Figure().add_subplot()
    assert plots.heatmap(np.eye(3), ax=axes) is axes
    assert plots.means(evaluations(), ax=axes) is axes
    assert plots.sorted_values(evaluations(), "map", ax=axes) is axes
    assert plots.collection(data.make_letor(3, rng=0), ax=axes) is axes


def test_pictures_leave_pyplot_alone():
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    plots.heatmap(np.eye(2))
    assert plt.get_fignums() == before


def test_heat_maps_show_their_numbers_in_readable_ink():
    axes = plots.heatmap([[0.0, 1.0]], columns=["dark", "bright"], form=".1f")
    assert [(text.get_text(), text.get_color()) for text in axes.texts] == [
        ("0.0", "white"),
        ("1.0", "black"),
    ]
    assert not plots.heatmap(np.zeros((30, 30))).texts  # too many to read
    wide, narrow = Figure(figsize=(9, 4)), Figure(figsize=(3, 4))
    assert plots.heatmap(np.zeros((4, 12)), ax=wide.add_subplot()).texts
    assert not plots.heatmap(np.zeros((4, 12)), ax=narrow.add_subplot()).texts


def test_many_names_are_thinned_out():
    axes = plots.heatmap(np.zeros((130, 2)), rows=[f"item {i}" for i in range(130)])
    assert len(axes.get_yticklabels()) <= 60


def test_means_are_sorted_by_the_first_measure():
    drawn = evaluations()
    axes = plots.means(drawn)
    names = [tick.get_text() for tick in axes.get_yticklabels()]
    values = [drawn[name].mean("map") for name in names]
    assert values == sorted(values, reverse=True)
    assert axes.texts[0].get_text() == f"{values[0]:.2f}"


def test_sorted_values_fall_and_leave_out_skipped_queries():
    drawn = evaluations()
    axes = plots.sorted_values(drawn, "ndcg@5[empty=skip]")
    for patch, evaluation in zip(axes.patches, drawn.values(), strict=True):
        values, edges, _ = patch.get_data()
        assert (np.diff(values) <= 0).all()
        assert len(values) == evaluation.n_queries("ndcg@5[empty=skip]")
        assert values @ np.diff(edges) == pytest.approx(evaluation.mean("ndcg@5[empty=skip]"))


def test_similar_rankings_stand_together():
    orders = np.array([[0, 1, 2, 3], [3, 2, 1, 0], [0, 1, 3, 2], [3, 2, 0, 1]])
    axes = plots.distances(rankings.distance_matrix(orders), list("abcd"))
    names = "".join(tick.get_text() for tick in axes.get_yticklabels())
    assert {names[:2], names[2:]} & {"ac", "ca"}
    assert len(plots.distances([[0.0, 1.0], [1.0, 0.0]]).images) == 1


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: plots.distances([[0.0, 1.0]]), "matrix"),
        (lambda: plots.distances(np.zeros((2, 2)), ["a"]), "names"),
        (lambda: plots.heatmap([[np.nan]]), "values"),
        (lambda: plots.heatmap([[0.0]], rows=["a", "b"]), "rows, columns"),
        (lambda: plots.means({}), "evaluations"),
    ],
)
def test_refusals(call, argument):
    with pytest.raises(ValueError, match=f"^{argument}: "):
        call()


def test_distributions_are_drawn_best_item_first():
    model = PlackettLuce([0.0, 2.0, 1.0], names=["tea", "coffee", "milk"])
    for draw in (plots.marginals, plots.pairwise):
        axes = draw(model)
        names = [tick.get_text() for tick in axes.get_yticklabels()]
        assert names == ["coffee", "milk", "tea"]
    table = np.asarray(plots.marginals(model).images[0].get_array())
    assert table == pytest.approx(model.rank_marginals()[[1, 2, 0]])
    shown = np.asarray(plots.pairwise(model).images[0].get_array())
    assert np.diagonal(shown).tolist() == [0.5] * 3
    assert shown[0, 1] == pytest.approx(model.pairwise()[1, 2])


@pytest.mark.parametrize("n", [3, 30])
def test_rankings_with_ties_are_drawn(n):
    model = DavidsonLuce(np.linspace(0.0, 2.0, n), ties=[0.5])
    table = np.asarray(plots.marginals(model).images[0].get_array())
    assert table.sum(axis=0) == pytest.approx(model.rank_marginals(rng=0).sum(axis=0))
    axes = plots.pairwise(model)
    shades = np.asarray(axes.images[0].get_array())
    assert shades + shades.T == pytest.approx(1.0)
    if n == 3:
        assert table == pytest.approx(model.rank_marginals()[::-1])
        assert axes.texts[1].get_text() == f"{model.pairwise()[2, 1]:.2f}"


def test_every_position_has_its_bar_in_a_trace():
    chains = run_chains(PlackettLuce(np.linspace(0, 1, 20)), 300, kernel="adjacent", rng=0)
    figure = plots.trace(chains, ["3"])
    bars = [ax for ax in figure.axes if ax.patches]
    assert bars or not arviz.__version__.startswith("0.")  # later ones draw no histograms
    for ax in bars:
        edges = {round(patch.get_x() + patch.get_width() / 2, 6) for patch in ax.patches}
        assert edges == set(range(1, 21))
        assert len(ax.get_xticks()) <= 15


def test_a_measures_distribution_is_drawn_with_its_mean():
    model = PlackettLuce([0.0, 2.0, 1.0])
    axes = plots.measure_values(model, "ndcg", [0, 1, 1], draws=200)
    mean = float(model.expect("ndcg", [0, 1, 1]))
    assert axes.lines[0].get_xdata()[0] == mean
    assert f"mean {mean:.3f}" in axes.get_legend().get_texts()[0].get_text()
    assert sum(patch.get_height() for patch in axes.patches) / 40 == pytest.approx(1.0)

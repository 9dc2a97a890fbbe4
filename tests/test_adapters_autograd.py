"""Objectives under autograd of PyTorch and JAX."""

import copy
import pickle

import numpy as np
import pytest

from permdist import data
from permdist.measures import evaluate
from permdist.objectives import ListMLE, ListNet, parse_objective

OBJECTIVES = [
    "listnet",
    "convex-loss[measure=ndcg@3]",
    "expected-gain[measure=ap]",
    "smooth[measure=ap,alpha=2]",
    "noisy[measure=ndcg@3]",
]


@pytest.fixture(scope="module")
def queries():
    return data.make_letor(5, n_documents=(3, 7), n_features=3, empty=0.0, rng=1)


def padded(queries, values):
    """Return flat values with a row per query, and where documents are."""
    mask = np.arange(queries.sizes.max()) < queries.sizes[:, None]
    rows = np.zeros(mask.shape, dtype=np.asarray(values).dtype)
    rows[mask] = values
    return rows, mask


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_gradcheck(objective, queries):
    torch = pytest.importorskip("torch")
    loss = parse_objective(objective).torch(reduction="none", n_jobs=1)
    scores = torch.tensor(
        np.random.default_rng(0).normal(size=queries.n_documents), requires_grad=True
    )
    labels, qid = torch.from_numpy(queries.y.copy()), torch.from_numpy(queries.qid.copy())
    assert torch.autograd.gradcheck(lambda s: loss(s, labels, qid), scores, atol=1e-6, rtol=1e-6)
    rows, mask = padded(queries, scores.detach().numpy())
    rows = torch.tensor(rows, requires_grad=True)
    label = torch.from_numpy(padded(queries, queries.y)[0])
    other = loss(rows, label, mask=torch.from_numpy(mask))
    flat = loss(scores, labels, qid)
    assert torch.equal(other, flat)  # to the bit
    other.sum().backward()
    flat.sum().backward()
    assert torch.equal(rows.grad[torch.from_numpy(mask)], scores.grad)
    assert (rows.grad[torch.from_numpy(~mask)] == 0.0).all()


def test_torch_gradients_to_eight_digits(queries):
    torch = pytest.importorskip("torch")
    point = np.random.default_rng(3).normal(size=queries.n_documents)
    loss = ListNet().torch(reduction="sum")
    scores = torch.tensor(point, requires_grad=True)
    loss(scores, queries.y, queries.qid).backward()
    for i in range(0, len(point), 5):
        unit = np.zeros(len(point))
        unit[i] = 1e-4
        at = [ListNet()(point + k * unit, queries.y, queries.qid)[0] for k in (-2, -1, 1, 2)]
        quotient = (at[0] - 8.0 * at[1] + 8.0 * at[2] - at[3]) / 12e-4
        assert float(scores.grad[i]) == pytest.approx(quotient, abs=1e-8)


def test_torch_reductions_and_weights(queries):
    torch = pytest.importorskip("torch")
    weights = torch.linspace(0.5, 2.0, len(queries), dtype=torch.float64)
    scores = torch.zeros(queries.n_documents, dtype=torch.float64)
    args = scores, torch.from_numpy(queries.y.copy()), torch.from_numpy(queries.qid.copy())
    each = ListMLE().torch(reduction="none")(*args)
    assert torch.equal(ListMLE().torch(reduction="sum")(*args), each.sum())
    assert torch.equal(ListMLE().torch()(*args), each.mean())
    heavy = ListMLE().torch(reduction="none")(*args, weights=weights)
    torch.testing.assert_close(heavy, each * weights)
    mean = ListMLE().torch()(*args, weights=weights)
    torch.testing.assert_close(mean, (each * weights).sum() / weights.sum())


def test_torch_single_precision_and_views(queries):
    torch = pytest.importorskip("torch")
    rows, mask = padded(queries, np.random.default_rng(0).normal(size=queries.n_documents))
    label = padded(queries, queries.y)[0]
    single = torch.tensor(rows, dtype=torch.float32, requires_grad=True)
    value = ListNet().torch()(single, torch.from_numpy(label), mask=torch.from_numpy(mask))
    assert value.dtype == torch.float32
    value.backward()
    assert single.grad.dtype == torch.float32
    double = torch.tensor(rows.T.copy(), requires_grad=True)
    other = ListNet().torch()(double.T, torch.from_numpy(label), mask=torch.from_numpy(mask))
    other.backward()
    torch.testing.assert_close(double.grad.T.float(), single.grad, rtol=1e-5, atol=1e-7)


def test_torch_trains_a_model(queries):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    model, loss = torch.nn.Linear(3, 1, dtype=torch.float64), ListNet().torch()
    optimizer = torch.optim.SGD(model.parameters(), 0.5)
    features = torch.from_numpy(np.array(queries.X))
    values = []
    for _ in range(10):
        optimizer.zero_grad()
        value = loss(model(features).squeeze(-1), queries.y, queries.qid)
        value.backward()
        optimizer.step()
        values.append(value.item())
    assert values[-1] < values[0]


def test_what_torch_tensors_must_be(queries):
    torch = pytest.importorskip("torch")
    loss, labels = ListNet().torch(), torch.tensor([1, 0, 0])
    good = torch.zeros(3)
    for scores, kind, message in (
        (good.to("meta"), ValueError, "scores: expected a tensor on the CPU, got one on meta"),
        (good.half(), TypeError, r"scores: .* got torch.float16; pass scores.float\(\)"),
        (torch.zeros((1, 3, 1)), ValueError, r"scores: expected shape .*squeeze\(-1\)"),
        (torch.zeros(2), ValueError, r"labels: expected shape \(2,\) as scores, got \(3,\)"),
        (good.to_sparse(), TypeError, "scores: expected a dense tensor"),
    ):
        with pytest.raises(kind, match=message):
            loss(scores, labels)
    with pytest.raises(ValueError, match="there is no gradient by it"):
        loss(good, torch.tensor([1.0, 0.0, 0.0], requires_grad=True))
    with pytest.raises(ValueError, match="weights: expected one per query"):
        loss(good, labels, weights=torch.ones(2))
    with pytest.raises(ValueError, match="reduction: expected one of"):
        ListNet().torch(reduction="max")


def as_derivatives_takes_them(queries):
    """Return the same labels, query ids and weights as columns of a data frame, and as lists."""
    pandas = pytest.importorskip("pandas")
    rows = range(100, 100 + queries.n_documents)  # not numbered from 0, like a part of a frame
    names = [f"query {qid}" for qid in queries.qid]
    weights = np.arange(1.0, 1.0 + len(queries.sizes))
    frame = pandas.DataFrame({"label": queries.y, "number": queries.qid, "name": names}, rows)
    each = pandas.Series(weights, range(7, 7 + len(weights)))
    yield frame["label"], frame["number"], each
    yield frame["label"].astype("Int64"), frame["name"], each
    yield frame["label"], frame["name"].astype("category"), weights.tolist()
    yield queries.y.tolist(), names, tuple(weights)
    yield queries.y.tolist(), queries.qid.tolist(), weights


def test_torch_takes_what_derivatives_takes(queries):
    torch = pytest.importorskip("torch")
    point = np.random.default_rng(4).normal(size=queries.n_documents)
    for labels, qid, weights in as_derivatives_takes_them(queries):
        found = ListNet().derivatives(point, labels, qid, weights=weights)
        scores = torch.tensor(point, requires_grad=True)
        values = ListNet().torch(reduction="none")(scores, labels, qid, weights=weights)
        values.sum().backward()
        assert np.array_equal(values.detach().numpy(), found.values)
        assert np.array_equal(scores.grad.numpy(), found.gradient)
        mean = ListNet().torch()(scores, labels, qid, weights=weights)
        assert mean.item() == pytest.approx(found.values.sum() / np.sum(weights))
    with pytest.raises(TypeError, match="labels: expected relevance labels, got none"):
        ListNet().torch()(scores, None)


def test_measures_name_a_tensor_that_requires_a_gradient():
    torch = pytest.importorskip("torch")
    scores = torch.tensor([0.5, 0.25], requires_grad=True)
    with pytest.raises(ValueError, match=r"^scores: .* requires a gradient.*scores\.detach\(\)"):
        evaluate(scores, [1, 0], measures="ap")
    with pytest.raises(ValueError, match=r"^scores: .* requires a gradient.*scores\.detach\(\)"):
        ListNet().derivatives(scores, [1, 0])
    assert evaluate(scores.detach(), [1, 0], measures="ap").mean("ap") == 1.0


def test_second_derivatives_are_refused():
    torch = pytest.importorskip("torch")
    scores = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    value = ListNet().torch()(scores, torch.tensor([1, 0, 0]))
    (slope,) = torch.autograd.grad(value, scores, create_graph=True)
    with pytest.raises((NotImplementedError, RuntimeError), match="differentiated again"):
        slope.pow(2).sum().backward()


# ---- JAX -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def jax():
    found = pytest.importorskip("jax")
    before = found.config.jax_enable_x64
    found.config.update("jax_enable_x64", True)
    yield found
    found.config.update("jax_enable_x64", before)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_jax_agrees_with_ours(objective, queries, jax):
    ours = parse_objective(objective)
    point = np.random.default_rng(0).normal(size=queries.n_documents)
    values, gradient = ours.values(point, queries.y, queries.qid)
    loss = ours.jax(reduction="sum", n_jobs=1)
    label = jax.numpy.array(queries.y)
    function = jax.jit(jax.value_and_grad(lambda s: loss(s, label, queries.qid)))
    value, slope = function(point)
    assert float(value) == pytest.approx(values.sum(), rel=1e-14)
    np.testing.assert_allclose(slope, gradient, atol=1e-14)
    rows, mask = padded(queries, point)
    labels = padded(queries, queries.y)[0]
    weighted = jax.jit(jax.grad(lambda s, w: loss(s, labels, mask=mask, weights=w)))
    weights = np.linspace(0.5, 2.0, len(queries))
    found = np.asarray(weighted(rows, weights))
    np.testing.assert_allclose(
        found[mask], np.repeat(weights, queries.sizes) * gradient, atol=1e-14
    )
    assert (found[~mask] == 0.0).all()


def test_jax_takes_what_derivatives_takes(queries, jax):
    point = np.random.default_rng(4).normal(size=queries.n_documents)
    for labels, qid, weights in as_derivatives_takes_them(queries):
        found = ListNet().derivatives(point, labels, qid, weights=weights)
        values = ListNet().jax(reduction="none")(point, labels, qid, weights=weights)
        np.testing.assert_allclose(np.asarray(values), found.values, rtol=1e-5)


def test_jax_under_vmap(queries, jax):
    rows, mask = padded(queries, np.random.default_rng(0).normal(size=queries.n_documents))
    labels = padded(queries, queries.y)[0]
    loss = ListNet().jax(reduction="sum")
    each = jax.vmap(jax.grad(lambda s, y, m: loss(s[None], y[None], mask=m[None])))
    whole = jax.grad(lambda s: loss(s, labels, mask=mask))
    np.testing.assert_array_equal(each(rows, labels, mask), whole(rows))
    flat = jax.vmap(jax.grad(loss))(rows[:, :3], labels[:, :3])
    np.testing.assert_array_equal(flat, jax.grad(loss)(rows[:, :3], labels[:, :3]))


def test_jax_check_grads(queries, jax):
    from jax.test_util import check_grads

    loss = ListMLE().jax()
    point = np.random.default_rng(0).normal(size=queries.n_documents)
    check_grads(
        lambda s: loss(s, queries.y, queries.qid), (point,), order=1, modes=["rev"], atol=1e-6
    )


def test_losses_can_be_copied(jax):
    pytest.importorskip("torch")
    for loss in (ListNet().jax(), ListNet().torch()):
        other = pickle.loads(pickle.dumps(loss))
        assert repr(other) == repr(loss)
        assert other.objective == loss.objective
    again = copy.deepcopy(ListNet().jax())
    assert float(again(np.zeros(2), np.array([1, 0]))) == pytest.approx(np.log(2.0))


def test_what_jax_arrays_must_be(queries, jax):
    loss = ListNet().jax()
    label = np.array([1, 0, 0])
    with pytest.raises(TypeError, match="scores: expected dtype float32 or float64, got int"):
        loss(np.zeros(3, dtype=int), label)
    with pytest.raises(TypeError, match="qid: expected values that are known"):
        jax.jit(loss)(np.zeros(3), label, np.zeros(3, dtype=int))
    with pytest.raises(ValueError, match=r"weights: expected shape \(1,\), one per query"):
        loss(np.zeros(3), label, weights=np.ones(3))
    with pytest.raises(ValueError, match="mask: flat scores have none"):
        loss(np.zeros(3), label, mask=np.ones(3, dtype=bool))
    with pytest.raises(ValueError, match="qid: padded scores have a query in each row"):
        loss(np.zeros((1, 3)), label[None], np.zeros(3, dtype=int))
    with pytest.raises(NotImplementedError, match="differentiated again"):
        jax.grad(lambda s: jax.grad(loss)(s, label).sum())(np.zeros(3))
    single = jax.grad(loss)(np.zeros(3, dtype=np.float32), label)
    assert single.dtype == np.float32

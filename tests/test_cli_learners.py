"""The commands that fit, predict, sample, inspect and compare, as a user meets them."""

import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest
from processes import start, wait_until
from test_cli import Page, permdist

from permdist import GoodBad, data, measures, models
from permdist.models.files import to_dict
from permdist.report.inspection import DISTRIBUTIONS, inspect_query, make_distribution


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("letor")
    whole = data.make_letor(45, rng=0)
    for number, name in enumerate(("train", "vali", "test")):
        data.save_letor(whole.where(np.arange(45) % 3 == number), folder / f"{name}.txt")
    data.save_letor(whole, folder / "all.txt")
    return folder


@pytest.fixture(scope="module")
def fitted(files):
    permdist("fit", "train.txt", "MLE[C=10]", "-o", "mle.json", cwd=files)
    return files / "mle.json"


# ---- fit and predict ---------------------------------------------------------------------------


def test_fit_writes_the_learner_that_python_fits(files, fitted):
    train = data.load_letor(files / "train.txt")
    assert (models.load(fitted).coef_ == models.MLE(C=10).fit(train).coef_).all()


def test_arguments_in_the_wrong_order(files, fitted):
    told = permdist("fit", "MLE[C=10]", "train.txt", cwd=files, code=2)
    assert "DATA comes first: permdist fit train.txt 'MLE[C=10]'" in told
    told = permdist("predict", "test.txt", fitted.name, cwd=files, code=2)
    assert "MODEL comes first: permdist predict mle.json test.txt" in told
    assert "there is no learner" in permdist("fit", "vali.txt", "train.txt", cwd=files, code=2)
    told = permdist("predict", "test.txt", "vali.txt", cwd=files, code=2)
    assert "comes first" not in told


def test_fit_chooses_on_a_validation_file(files):
    arguments = ("fit", "train.txt", "MLE[C=1e-6|10]", "--validation", "vali.txt", "-o", "v.json")
    facts = json.loads(permdist(*arguments, "-j", "1", "--json", cwd=files))
    vali = data.load_letor(files / "vali.txt")
    scores = {}
    for C in (1e-6, 10):
        learner = models.MLE(C=C).fit(data.load_letor(files / "train.txt"))
        scores[C] = learner.score(vali, measure="map")
    assert facts["setting"] == {"C": max(scores, key=scores.get)}
    assert facts["measures"]["validation"]["ap"] == pytest.approx(max(scores.values()))
    text = permdist("fit", "train.txt", "RankCosine", "-o", "r.json", cwd=files)
    assert text.startswith("RankCosine")
    assert "Saved to r.json" in text


def test_help_lists_every_learner():
    words = set(re.findall(r"\w+", permdist("fit", "--help")))
    assert {kind.__name__ for kind in models.all_learners()} <= words


@pytest.mark.usefixtures("no_report")
def test_a_preset_is_for_every_measure(files):
    arguments = ("compare", "all.txt", "-M", "MLE[C=1]", "-o", "preset", "-j", "1", "--json")
    more = ("--preset", "trec", "--identities", "0")
    facts = json.loads(permdist(*arguments, *more, "--select", "ndcg@5", cwd=files))
    assert list(facts["tables"]) == [measures.trec(name).name for name in ("map", "ndcg@10")]
    assert facts["select"] == measures.trec("ndcg@5").name


@pytest.mark.usefixtures("no_report")
def test_compare_gathers_queries_on_request(files):
    lines = (files / "all.txt").read_text().splitlines(keepends=True)
    np.random.default_rng(0).shuffle(lines)
    (files / "mixed.txt").write_text("".join(lines))
    arguments = ("compare", "mixed.txt", "-M", "MLE[C=1]", "-o", "mixed", "-j", "1", "--json")
    assert "--regroup" in permdist(*arguments, cwd=files, code=2)
    facts = json.loads(permdist(*arguments, "--regroup", "--identities", "0", cwd=files))
    assert facts["n_queries"] == 45


@pytest.mark.parametrize("form", ["letor", "trec"])
def test_scores_go_out_and_come_in(files, fitted, form):
    permdist("predict", fitted, "test.txt", "--format", form, "-o", f"{form}.txt", cwd=files)
    printed = permdist("predict", fitted, "test.txt", "--format", form, cwd=files)
    assert printed == (files / f"{form}.txt").read_text()
    facts = json.loads(permdist("evaluate", f"{form}.txt", "test.txt", "--json", cwd=files))
    test = data.load_letor(files / "test.txt")
    assert facts["mean"]["ap"] == models.load(fitted).score(test, measure="map")
    listed = json.loads(permdist("predict", fitted, "test.txt", "--json", cwd=files))
    assert listed["scores"] == models.load(fitted).predict(test).tolist()


def test_scattered_queries_keep_their_scores(files, fitted, tmp_path):
    lines = (files / "test.txt").read_text().splitlines(keepends=True)
    shuffled = [lines[i] for i in np.random.default_rng(0).permutation(len(lines))]
    (tmp_path / "mixed.txt").write_text("".join(shuffled))
    permdist("predict", fitted, "mixed.txt", "--regroup", "-o", "s.txt", cwd=tmp_path)
    assert "regroup" in permdist("evaluate", "s.txt", "mixed.txt", cwd=tmp_path, code=2)
    arguments = ("evaluate", "s.txt", "mixed.txt", "--regroup", "-m", "auc", "--json")
    facts = json.loads(permdist(*arguments, cwd=tmp_path))
    test = data.load_letor(files / "test.txt")
    assert facts["mean"]["auc"] == pytest.approx(models.load(fitted).score(test, measure="auc"))


def test_files_have_numbers_where_a_learner_has_names(files, tmp_path):
    train = data.load_letor(files / "train.txt")
    names = [f"f{number}" for number in range(train.n_features)]
    named = data.Queries(train.X, train.y, train.qid, feature_names=names)
    models.MLE().fit(named).save(tmp_path / "named.json")
    (tmp_path / "few.txt").write_text("1 qid:1 2:0.5\n0 qid:1 1:0.5\n")
    done = subprocess.run(
        [sys.executable, "-m", "permdist", "predict", "named.json", "few.txt"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    coef = models.load(tmp_path / "named.json").coef_
    assert [float(line) for line in done.stdout.split()] == [0.5 * coef[1], 0.5 * coef[0]]
    assert "warning: X does not have valid feature names, but MLE was fitted with" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_runs_that_leave_documents_out_put_them_last(tmp_path):
    queries = data.Queries(np.zeros((3, 1)), [0, 1, 0], [5, 5, 5], doc_ids=["a", "b", "c"])
    (tmp_path / "run.txt").write_text("5 Q0 b 1 -3.5 x\n")
    scores = data.load_run(tmp_path / "run.txt", queries)
    assert np.argsort(-scores, kind="stable").tolist() == [1, 0, 2]
    (tmp_path / "run.txt").write_text("5 Q0 b 1 -1.7e308 x\n")
    assert np.isfinite(data.load_run(tmp_path / "run.txt", queries)).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("5 Q0 d 1 0.5 x\n", "line 1: document 'd' of query 5 is not in the collection"),
        ("6 Q0 a 1 0.5 x\n", "query '6' is not in the collection"),
        ("5 Q0 a 1 0.5 x\n5 Q0 a 2 0.4 x\n", "line 2: document 'a' of query 5 comes twice"),
    ],
)
def test_runs_that_cannot_be_read(tmp_path, text, message):
    queries = data.Queries(np.zeros((2, 1)), [0, 1], [5, 5], doc_ids=["a", "b"])
    (tmp_path / "run.txt").write_text(text)
    with pytest.raises(ValueError) as error:
        data.load_run(tmp_path / "run.txt", queries)
    assert message in str(error.value)


def test_runs_need_one_word_and_all_scores(tmp_path):
    X, path = np.zeros((2, 1)), tmp_path / "r"
    odd = data.Queries(X, [0, 1], [5, 5], doc_ids=["a b", "c"])
    twins = data.Queries(X, [0, 1], [5, 5], doc_ids=["a", "a"])
    for save, message in (
        (lambda: data.save_run(odd, [1, 2], path), "ids without blanks"),
        (lambda: data.save_run(odd.where([0]), [1], path), "scores: expected 2, got 1"),
        (lambda: data.save_run(twins, [1, 2], path), "comes twice in query 5"),
        (lambda: data.save_run(twins, [1, 2], path, name="two words"), "name: expected a word"),
    ):
        with pytest.raises(ValueError, match=message):
            save()


def test_learners_and_runs_may_be_compressed(files, fitted):
    permdist("fit", "train.txt", "MLE[C=10]", "-o", "mle.json.gz", cwd=files)
    permdist("predict", "mle.json.gz", "test.txt", "--format", "trec", "-o", "r.gz", cwd=files)
    plain = permdist("predict", fitted, "test.txt", "--format", "trec", cwd=files)
    import gzip

    assert gzip.decompress((files / "r.gz").read_bytes()).decode() == plain
    assert "ap" in permdist("evaluate", "r.gz", "test.txt", cwd=files)


# ---- folds -------------------------------------------------------------------------------------


def test_folds_of_one_collection_test_every_query_once():
    whole = data.make_letor(23, rng=0)
    folds = data.make_folds(whole, 4, rng=1)
    tested = np.concatenate([fold.test.qids for fold in folds])
    assert sorted(tested.tolist()) == sorted(whole.qids.tolist())
    for fold in folds:
        ids = [set(part.qids.tolist()) for part in fold]
        assert set.union(*ids) == set(whole.qids.tolist())
        assert sum(map(len, ids)) == len(whole)
    with pytest.raises(ValueError, match="n_folds: expected at least 3"):
        data.make_folds(whole, 2)
    with pytest.raises(ValueError, match="expected at least 30 for 30 folds"):
        data.make_folds(whole, 30)


# ---- sample and inspect ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", DISTRIBUTIONS)
def test_sample_prints_rankings_of_one_query(files, kind):
    arguments = ("sample", "test.txt", "-n", "5", "-d", kind, "--noise", "0.5")
    text = permdist(*arguments, "--feature", "6", cwd=files)
    assert text == permdist(*arguments, "--feature", "6", cwd=files)
    facts = json.loads(permdist(*arguments, "--feature", "6", "--json", cwd=files))
    words = facts["documents"]
    assert [line.split() for line in text.splitlines()] == [
        [words[item] for item in order] for order in facts["orders"]
    ]
    assert all(sorted(order) == list(range(len(words))) for order in facts["orders"])
    permdist(*arguments, "--feature", "6", "-o", "draws.txt", cwd=files)
    assert (files / "draws.txt").read_text() == text


def test_sample_by_chains_goes_to_a_file_for_arviz(files):
    from permdist import diagnostics

    arguments = ("sample", "test.txt", "-n", "50", "--kernel", "adjacent", "--chains", "2")
    facts = json.loads(permdist(*arguments, "-o", "c.nc", "--json", cwd=files))
    assert len(facts["orders"]) == 100
    assert diagnostics.load(files / "c.nc").orders.shape[:2] == (2, 50)
    assert len(permdist(*arguments, cwd=files).splitlines()) == 100


def test_inspect_shows_what_the_objects_say(files, fitted):
    arguments = ("inspect", "test.txt", "--model", fitted, "--raw", "-m", "ndcg@3,rr")
    facts = json.loads(permdist(*arguments, "--json", cwd=files))
    test = data.load_letor(files / "test.txt")
    number = test.qids.tolist().index(int(facts["query"]))
    a, b = test.ptr[number], test.ptr[number + 1]
    scores = models.load(fitted).predict(test)[a:b]
    dist = make_distribution("plackett-luce", scores)
    assert np.array(facts["rank_marginals"]) == pytest.approx(dist.rank_marginals())
    assert np.array(facts["pairwise"]) == pytest.approx(dist.pairwise())
    assert facts["expected"]["ndcg@3"]["value"] == pytest.approx(
        float(dist.expect("ndcg@3", test.y[a:b]))
    )
    by_score = measures.evaluate(scores, test.y[a:b], np.zeros(b - a), ["ndcg@3", "rr"]).mean()
    assert facts["by_score"] == pytest.approx(by_score)
    text = permdist(*arguments, cwd=files)
    assert f"Query {facts['query']}, scored by MLE" in text
    assert "Other noise scales" in text


def test_raw_scores_are_used_as_they_are(files):
    one = data.load_letor(files / "test.txt")
    arguments = ("inspect", "test.txt", "--feature", "1", "-d", "good-bad", "--raw", "-m", "ap")
    facts = json.loads(permdist(*arguments, "--noise", "2", "--json", cwd=files))
    number = one.qids.tolist().index(int(facts["query"]))
    rows = slice(one.ptr[number], one.ptr[number + 1])
    dist = GoodBad(one.X[rows, 0], one.y[rows], space="interleavings", scale=0.5)
    assert facts["expected"]["ap"]["value"] == pytest.approx(float(dist.expect("ap", one.y[rows])))
    assert facts["noise_scales"]["2"]["E[ap]"] == facts["expected"]["ap"]["value"]
    drawn = ("sample", "test.txt", "--feature", "1", "-d", "good-bad", "--raw", "--json")
    orders = json.loads(permdist(*drawn, "--noise", "2", "-n", "5", cwd=files))["orders"]
    assert orders == dist.sample(5, 0).tolist()


def test_fit_tells_where_it_did_not_converge(files):
    text = permdist("fit", "train.txt", "MLE[C=1e4,max_iter=2]", "-o", "n.json", cwd=files)
    assert "note: it stopped after 2 iterations without converging" in text
    assert "use a larger max_iter" in text


def test_nothing_is_left_where_the_user_is(files, tmp_path):
    permdist("identities", "sum-product", "--examples", "2", cwd=tmp_path)
    assert not list(tmp_path.iterdir())
    permdist("compare", "folder-without-data", "-o", "left", cwd=tmp_path, code=2)
    assert not list(tmp_path.iterdir())


def test_inspect_writes_a_report(files):
    text = permdist("inspect", "test.txt", "-d", "good-bad", "-o", "q.html", cwd=files)
    assert "Report: q.html" in text
    page = Page()
    page.feed((files / "q.html").read_text())
    assert page.pictures == 3
    assert all(link.startswith(("data:", "#")) for link in page.links)


@pytest.mark.parametrize("kind", DISTRIBUTIONS)
def test_more_noise_is_less_certain(kind):
    scores, labels = [2.0, 1.0, 0.5, -1.0, -1.5], [1, 1, 0, 0, 0]
    found = inspect_query(scores, labels, kind=kind, noise=0.7)
    assert 0.7 in found.noise.index
    if kind != "good-bad":  # which knows nothing about two good ones
        assert (np.diff(found.noise["top score first"]) < 0).all()
    assert (np.diff(found.noise["E[auc]"]) < 0).all()
    assert found.noise.loc[0.7, "E[ap]"] == pytest.approx(float(found.expected["ap"]))
    assert found.marginals.sum(axis=1) == pytest.approx(1.0)


def test_inspecting_without_labels_or_with_one_class():
    found = inspect_query([1.0, 0.0])
    assert found.expected == {}
    assert "label" not in found.documents()
    found = inspect_query([1.0, 0.0], [1, 1])
    assert "auc" not in found.expected
    assert "the labels are all the same" in str(inspect_query([1.0, 0.0], [0, 0]))
    with pytest.raises(ValueError, match="labels: required by the good-bad model"):
        inspect_query([1.0, 0.0], kind="good-bad")
    with pytest.raises(ValueError, match="noise: expected a positive number"):
        inspect_query([1.0, 0.0], noise=0.0)


# ---- compare -----------------------------------------------------------------------------------

QUICK = "MLE[C=1|10],ListNet[C=1,target=label]"


def test_compare_prints_tables_and_writes_a_report(files):
    arguments = ("compare", "all.txt", "--models", QUICK, "--folds", "3", "-o", "out", "-j", "1")
    text = permdist(*arguments, "--identities", "1", "-m", "map", cwd=files)
    assert "MLE[C=1|10]" in text
    assert "Report: out/report.html" in text
    names = {path.name for path in (files / "out").iterdir()}
    assert names == {"cells", "ap.csv", "tables.tex", "report.html"}
    page = Page()
    page.feed((files / "out" / "report.html").read_text())
    assert {"Results: ap", "Learning curves", "Chosen settings"} <= set(page.headings)
    assert {"One query under three distributions", "Identities checked"} <= set(page.headings)
    before = {path: path.stat().st_mtime_ns for path in (files / "out" / "cells").iterdir()}
    facts = json.loads(permdist(*arguments, "--json", "-m", "map", "--identities", "0", cwd=files))
    assert before == {path: path.stat().st_mtime_ns for path in (files / "out" / "cells").iterdir()}
    folds = data.make_folds(data.load_letor(files / "all.txt"), 3, rng=0)
    fits = [models.ListNet(C=1, target="label").fit(fold.train) for fold in folds]
    means = [one.score(fold.test, measure="map") for one, fold in zip(fits, folds, strict=True)]
    found = facts["tables"]["ap"]["ListNet[C=1,target=label]"]["mean"]
    assert found == pytest.approx(np.mean(means))


@pytest.mark.usefixtures("no_report")
def test_compare_averages_ties_and_takes_missing_values(files):
    lines = (files / "all.txt").read_text().splitlines()
    holes = [re.sub(r" 1:\S+", " 1:nan", line) for line in lines[::5]]
    lines[::5] = holes
    (files / "holes.txt").write_text("\n".join(lines) + "\n")
    names = "MLE[C=1,missing=mean], ListNet[C=1]"
    arguments = ("compare", "holes.txt", "-M", names, "--folds", "3", "-o", "holes", "-j", "1")
    options = ("--null", "missing", "--ties", "average", "--identities", "0", "--json")
    facts = json.loads(permdist(*arguments, *options, cwd=files))
    assert facts["ties"] == "average"
    assert "missing='mean'" in facts["failures"]["ListNet[C=1]"]
    table = (files / "holes" / "letor4_ndcg_10_ties_average_.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in table[2:]] == ["order of the file", "random order"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("compare", "none"), "none: no such file"),
        (("compare", "all.txt", "-M", "MLF"), "there is no learner 'MLF'; did you mean 'MLE'?"),
        (("compare", "all.txt", "--ties", "first"), "ties: expected one of index, average"),
        (("compare", "all.txt", "-j", "0"), "--jobs: expected a number of processes or -1"),
        (("compare", "all.txt", "-o", "empty.txt"), "expected a folder for the comparison"),
        (("compare", "bad.txt", "--folds", "3"), "part has no relevant document"),
        (("compare", "all.txt", "--scheduler", "tcp://127.0.0.1:9"), "no answer from tcp"),
        (("fit", "all.txt", "MLE,L3"), "LEARNER: expected one, got 2"),
        (("fit", "all.txt", "MLE[C=1|2]"), "needed to choose between alternatives of C"),
        (("fit", "bad.txt", "MLE"), "there is nothing to learn from"),
        (("predict", "all.txt", "all.txt"), "not a learner's file"),
        (("predict", "mle.json", "narrow.txt"), "expected 25 features, found feature number 99"),
        (("predict", "mle.json", "all.txt", "--format", "xml"), "expected one of letor, trec"),
        (("inspect", "all.txt", "-q", "99999"), "--query: there is no query '99999'"),
        (("inspect", "all.txt", "-d", "mallows"), "--distribution: expected one of plackett-luce"),
        (("inspect", "all.txt", "-o", "q.pdf"), "--output: expected an .html file, got q.pdf"),
        (("sample", "all.txt", "--chains", "2"), "--chains: only for Markov chains"),
        (("predict", "mle.json", "all.txt", "--name", "a"), "--name: only for TREC runs"),
        (("identities", "sum-prodict"), "there is no identity 'sum-prodict'; did you mean"),
        (("inspect", "all.txt", "--feature", "99"), "--feature: expected at most 25, got 99"),
        (
            ("inspect", "all.txt", "--feature", "1", "--model", "mle.json"),
            "pass at most one of them",
        ),
        (("sample", "all.txt", "-o", "x.nc"), "a .nc file is only for Markov chains; add --kernel"),
        (("inspect", "bare.txt"), "the file has no features to score by"),
        (("predict", "edited.json", "all.txt"), "edited.json: C: expected a positive number"),
        (("predict", "raw.json", "all.txt"), "raw.json: this MLE is not fitted"),
        (("compare", "all.txt", "-o", "taken"), "expected a file name, got a folder"),
        (("compare", "all.txt", "--folds", "40"), "(with --folds 40)"),
        (("compare", "all.txt", "--select", "map,rr"), "--select: expected one measure"),
    ],
)
def test_mistakes_are_one_line(files, fitted, arguments, message):
    (files / "empty.txt").write_text("")
    (files / "bad.txt").write_text("".join(f"0 qid:{q} 1:0.{q}\n0 qid:{q} 1:0\n" for q in range(6)))
    (files / "narrow.txt").write_text("1 qid:1 99:1\n")
    (files / "bare.txt").write_text("1 qid:1\n0 qid:1\n")
    (files / "taken" / "report.html").mkdir(parents=True, exist_ok=True)
    (files / "raw.json").write_text(json.dumps(to_dict(models.MLE())))
    (files / "edited.json").write_text(fitted.read_text().replace('"C": 10', '"C": "rm -rf"'))
    before = {path.name for path in files.iterdir()}
    text = permdist(*arguments, cwd=files, code=2)
    assert message in text
    assert text.startswith("permdist:")
    assert len(text.splitlines()) == 1
    made = {path.name for path in files.iterdir()} - before
    assert made <= {"permdist-compare"}


def test_a_read_only_folder_is_told_before_any_fit(files, tmp_path):
    if os.geteuid() == 0:
        target = Path("/proc/permdist")  # where not even the superuser can write
    else:
        target = tmp_path / "locked" / "out"
        target.parent.mkdir(mode=0o500)
    text = permdist("compare", "all.txt", "-M", QUICK, "-o", target, cwd=files, code=2)
    assert text.startswith(f"permdist: {target}")
    assert len(text.splitlines()) == 1


def test_ctrl_c_keeps_what_is_finished(files, tmp_path):
    command = [str(Path(sysconfig.get_path("scripts")) / "permdist"), "compare", "all.txt"]
    # Many fits, so that some are left when the signal comes.
    settings = "|".join(f"{number}e-2" for number in range(1, 200))
    command += ["-M", f"MLE[C={settings}]", "-o", str(tmp_path), "-j", "2"]
    run = start(command, cwd=files)  # which hears Ctrl-C, even where this process does not
    wait_until(lambda: len(list(tmp_path.glob("cells/*.json"))) >= 5 or run.poll() is not None, 120)
    os.killpg(run.pid, signal.SIGINT)  # as a terminal does: to every process
    _, told = run.communicate(timeout=60)
    assert run.returncode == 130, told
    assert "Traceback" not in told
    last = " ".join(told.split("permdist: interrupted")[-1].split())
    assert last.startswith(f"; finished fits are kept in {tmp_path}")
    kept = list(tmp_path.glob("cells/*.json"))
    assert len(kept) >= 5
    assert all(json.loads(path.read_bytes()) for path in kept)


def test_a_reader_that_goes_away_is_no_error(files):
    script = f"set -o pipefail; {sys.executable} -m permdist describe all.txt | true"
    result = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd=files)
    assert (result.returncode, result.stderr) == (0, "")


# ---- files of other tools ------------------------------------------------------------------------


def test_files_without_query_ids_in_every_command(files, fitted):
    for name in ("train", "test", "all"):
        part = data.load_letor(files / f"{name}.txt")
        text = re.sub(r" qid:\S+", "", (files / f"{name}.txt").read_text())
        (files / f"{name}.svm").write_text(text)
        (files / f"{name}.svm.query").write_text("\n".join(map(str, part.sizes.tolist())))
    described = permdist("describe", "all.txt", cwd=files)
    assert permdist("describe", "all.svm", cwd=files) == described
    permdist("fit", "train.svm", "MLE[C=10]", "-o", "svm.json", cwd=files)
    same = models.load(files / "svm.json").coef_
    assert np.array_equal(same, models.load(fitted).coef_)
    for ending in ("txt", "svm"):
        permdist("predict", "mle.json", f"test.{ending}", "-o", f"{ending}.scores", cwd=files)
    assert (files / "txt.scores").read_bytes() == (files / "svm.scores").read_bytes()
    evaluated = permdist("evaluate", "txt.scores", "test.txt", cwd=files)
    assert permdist("evaluate", "txt.scores", "test.svm", cwd=files) == evaluated
    (files / "all.svm.query").rename(files / "sizes")
    assert "--query-file" in permdist("describe", "all.svm", cwd=files, code=2)
    assert permdist("describe", "all.svm", "--query-file", "sizes", cwd=files) == described
    told = permdist("compare", ".", "--query-file", "sizes", cwd=files, code=2)
    assert "--query-file: only for a single file" in told


def test_features_that_count_from_0_on_the_command_line(tmp_path):
    (tmp_path / "zero.txt").write_text("1 qid:1 0:1 1:5\n0 qid:1 0:2\n")
    assert "--zero-based" in permdist("describe", "zero.txt", cwd=tmp_path, code=2)
    facts = json.loads(permdist("describe", "zero.txt", "--zero-based", "--json", cwd=tmp_path))
    assert facts["n_features"] == 2

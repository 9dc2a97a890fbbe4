"""The scripts and the docstrings about other libraries run where these are installed."""

import doctest
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from permdist import data

PAGE = Path(__file__).resolve().parent.parent / "docs" / "adapters.md"
LIBRARIES = ("lightgbm", "xgboost", "torch", "jax")
SCRIPTS = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


def libraries_of(script):
    used = re.findall(r"^import (\w+)", script, re.MULTILINE)
    return {*LIBRARIES} & set(used)


def test_there_is_a_script_for_each_library():
    assert set().union(*map(libraries_of, SCRIPTS)) == set(LIBRARIES)


@pytest.mark.parametrize("number", range(len(SCRIPTS)))
@pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_script(number):
    for library in libraries_of(SCRIPTS[number]):
        pytest.importorskip(library)
    exec(compile(SCRIPTS[number], f"script {number}", "exec"), {"__name__": "__main__"})


@pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")
def test_the_script_at_the_end_of_the_tutorial():
    pytest.importorskip("lightgbm")
    pandas = pytest.importorskip("pandas")
    text = (PAGE.parent / "tutorials" / "lightgbm.md").read_text("utf-8")
    (script,) = re.findall(r"```python\n(import lightgbm\n.*?)```", text, re.DOTALL)
    queries = data.make_letor(40, n_features=4, empty=0.0, rng=3)
    features = ["bm25", "tf idf", "length", "age"]
    frame = pandas.DataFrame(queries.X, columns=features)
    frame["label"] = queries.y
    frame["query"] = pandas.Categorical([f"query {number}" for number in queries.qid])
    train, validation = (frame[frame["query"].cat.codes % 2 == part] for part in range(2))
    sizes = train.groupby("query", sort=False, observed=True).size()
    names = {"features": features, "train": train, "validation": validation, "sizes": sizes}
    exec(script, names)
    (told,) = names["ranker"].best_score_.values()
    assert set(told) == {"permdist_ndcg@10"}


@pytest.mark.parametrize("name", [*LIBRARIES, "groups", "losses", "measuring"])
def test_docstrings(name):
    if name in LIBRARIES:
        pytest.importorskip(name)
    module = importlib.import_module(f"permdist.adapters.{name}")
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert doctest.testmod(module, optionflags=options).failed == 0


def test_nothing_is_loaded_before_it_is_used():
    code = (
        "import sys; import permdist.adapters, permdist.models; "
        f"print(sorted(set({LIBRARIES!r}) & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"

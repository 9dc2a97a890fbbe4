"""Shared by the examples: their options, the queries they use, and saving the picture."""

import argparse
from pathlib import Path

import numpy as np

from permdist import data

FOLDS = "a folder with LETOR folds, instead of simulated queries"
FILE = "a LETOR file, instead of simulated queries"


def read_options(script, text, data=None, **options):
    """Read the command line: ``--data``, ``--output`` and one option per keyword.

    Parameters
    ----------
    script, text : str
        The example's ``__file__`` and ``__doc__``.
    data : str or list of str, optional
        What ``--data`` takes, in a list if it takes several; there is no such option without it.
    options : numbers, or tuples
        The default value of each of the others, with its help text; ``queries`` needs none.
    """
    parser = argparse.ArgumentParser(description=text.splitlines()[0])
    if data:
        several = isinstance(data, list)
        help_text, number = (data[0], "+") if several else (data, None)
        parser.add_argument("--data", type=Path, nargs=number, help=help_text)
    for name, one in options.items():
        default, help_text = one if isinstance(one, tuple) else (one, "simulated queries per part")
        parser.add_argument(f"--{name}", type=type(default), default=default, help=help_text)
    parser.add_argument("--output", type=Path, default=Path(f"{Path(script).stem}.png"))
    return parser.parse_args()


def tell(options, about):
    """Print which data is used, once; `save` writes it below the picture as well."""
    if getattr(options, "about", None) != about:
        options.about = about
        print(f"Data: {about}.\n", flush=True)


def size_of(*parts):
    """Return the size of some queries in words, and what becomes of those without a good one."""
    queries, documents = sum(map(len, parts)), sum(len(part.y) for part in parts)
    empty = sum(int((part.n_relevant == 0).sum()) for part in parts)
    rule = f", {empty} queries without a relevant document kept" if empty else ""
    return f"{queries:,} queries, {documents:,} documents{rule}"


def load_folds(options, **simulation):
    """Return the folds of ``--data``, or three folds with ``--queries`` queries in each part."""
    if options.data:
        folds = data.load_letor_folds(options.data)
        source = f"{options.data.name}, all {len(folds)} folds"
    else:
        folds = turned(data.make_letor(3 * options.queries, **{"rng": 0, **simulation}))
        source = "simulated (make_letor), 3 folds"
    tell(options, f"{source}, not cleaned: {size_of(*(fold[2] for fold in folds))}")
    return folds


def turned(whole):
    """Return three folds: each third of the queries is once for training, validation and test."""
    parts = [whole.where(np.arange(len(whole)) % 3 == part) for part in range(3)]
    return [data.Fold(*parts[turn:], *parts[:turn]) for turn in range(3)]


def load_halves(options, second=2, **simulation):
    """Return a training and a test part: of the first fold of ``--data``, or simulated.

    With ``second=1`` the validation part of that fold takes the place of its test part.
    """
    if options.data:
        first = data.load_letor_folds(options.data)[0]
        parts, source = (first[0], first[second]), f"{options.data.name}, first fold"
    else:
        whole = data.make_letor(2 * options.queries, **{"rng": 0, **simulation})
        parts = tuple(whole.where(np.arange(len(whole)) % 2 == part) for part in (0, 1))
        source = "simulated (make_letor)"
    tell(options, f"{source}, not cleaned: training and test, {size_of(*parts)}")
    return parts


def load_training(options):
    """Return the training part of the first fold of ``--data``, or simulated queries."""
    if not options.data:
        return load_queries(options)
    part = data.load_letor_folds(options.data)[0][0]
    tell(options, f"{options.data.name}, training part of the first fold: {size_of(part)}")
    return part


def load_queries(options, **simulation):
    """Return the queries of the file ``--data``, or ``--queries`` simulated ones."""
    found = (
        data.load_letor(options.data)
        if options.data
        else data.make_letor(options.queries, **{"rng": 0, **simulation})
    )
    source = options.data.name if options.data else "simulated (make_letor)"
    tell(options, f"{source}, not cleaned: {size_of(found)}")
    return found


def with_pairs(queries):
    """Leave out queries whose documents all have the same label: learners cannot use them."""
    return queries.where(np.array([len(np.unique(query.y)) > 1 for query in queries]))


def smooth_values(learner, queries, scores):
    """Return the smooth measure of each query, the mean of which a learner maximizes."""
    return 1.0 - learner.build_objective().values(scores, queries.y, queries.qid)[0]


def standard_error(values):
    """Return the standard error of the mean over the last axis."""
    return values.std(axis=-1, ddof=1) / np.sqrt(values.shape[-1])


def fold_means(found, measure):
    """Return the mean over folds of the means over test queries, for each learner compared."""
    values, folds = found.values(measure), found.folds
    return np.mean([values[:, folds == fold].mean(axis=1) for fold in np.unique(folds)], axis=0)


def settings_text(found, name):
    """Return the settings that were chosen for a learner on each fold: ``10/0.1, 100/1``."""
    shown = "{:g}".format
    chosen = [
        "/".join(shown(one) if isinstance(one, float) else str(one) for one in setting.values())
        for setting in found.chosen[name]
    ]
    return ", ".join(filter(None, chosen))


def plain(*axes):
    """Draw axes without a frame on top and on the right."""
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)


def save(figure, options, dpi=110, rules=()):
    """Write the picture with its data and the measures' full names below; print where it is."""
    about = getattr(options, "about", None)
    text = f"Data: {about}." if about else ""
    if rules:
        said = f"Rules of the measures: {', '.join(rules)}."
        text = f"{text} {said}".strip()
        print(f"\n{said}")
    if text:
        figure.supxlabel(text, fontsize=7, color="0.35", x=0.01, ha="left")
    figure.savefig(options.output, dpi=dpi)
    print(f"\nThe picture: {options.output}")

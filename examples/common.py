"""Shared by the examples: their options, the queries they use, and saving the picture."""

import argparse
import os
import sys
from pathlib import Path

import numpy as np

from permdist import data

FOLDS = "a folder with LETOR folds, instead of simulated queries"
FILE = "a LETOR file, instead of simulated queries"


PICTURES = (".png", ".svg", ".pdf")
TABLES = (".md", ".txt")


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message):
        """End the script with a message."""
        self.exit(2, f"{self.prog}: {message}\n")


def read_options(script, text, data=None, *, table=False, **options):
    """Read the command line: ``--data``, ``--output`` and one option per keyword.

    Parameters
    ----------
    script, text : str
        The example's ``__file__`` and ``__doc__``.
    data : str or list of str, optional
        What ``--data`` takes, in a list if it takes several; there is no such option without it.
    table : bool
        Whether ``--output`` may be a table as well.
    options : numbers, or tuples
        The default value of each of the others, with its help text and, if there are only some,
        the values that it may have; ``queries`` needs no help text.
    """
    parser = Parser(description=text.splitlines()[0])
    if data:
        several = isinstance(data, list)
        help_text, number = (data[0], "+") if several else (data, None)
        parser.add_argument("--data", type=Path, nargs=number, help=help_text)
    usual = "simulated queries per part; with --data, use only the first ones of each part"
    for name, one in options.items():
        default, help_text, *choices = one if isinstance(one, tuple) else (one, usual)
        parser.add_argument(
            f"--{name}",
            type=type(default),
            default=None if name == "queries" else default,
            choices=choices[0] if choices else None,
            help=help_text,
        )
    kinds = "picture (.png, .svg, .pdf)" + (", or the table (.md, .txt)" if table else "")
    parser.add_argument("--output", type=Path, default=Path(f"{Path(script).stem}.png"), help=kinds)
    found = parser.parse_args()
    found.first = None
    if "queries" in options:
        if found.queries is not None and found.queries < 1:
            parser.error(f"--queries: expected at least 1, got {found.queries}")
        given, one = found.queries, options["queries"]
        found.first = given if data and found.data else None
        found.queries = (one[0] if isinstance(one, tuple) else one) if given is None else given
    wrong = wrong_place(found.output, kinds, PICTURES + TABLES * table)
    if wrong:
        parser.error(f"--output: {wrong}")
    return found


def wrong_place(path, kinds, endings):
    """Return what is wrong with an output file, or None, before any work is done."""
    if path.suffix.lower() not in endings:
        return f"expected a {kinds}, got {path}"
    if path.is_dir():
        return f"expected the name of a file, {path} is a folder"
    if not path.parent.is_dir():
        return f"there is no folder {path.parent}"
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        return f"no permission to write {path}"
    return None


def read_data(load, path):
    """Return what a function reads from ``--data``; a wrong file or folder is a line, no more."""
    try:
        return load(path)
    except (OSError, ValueError) as error:
        sys.exit(f"{Path(sys.argv[0]).name}: --data: {error}")


def first_ones(options, part):
    """Return a part; only its first ``--queries`` queries if that was given with ``--data``."""
    if options.first is None:
        return part
    return part.where(np.arange(len(part)) < options.first)


def read_folds(options, path):
    """Return the folds of a folder, with the first queries of each part only if so asked.

    Also their name, which says so.
    """
    folds = [
        data.Fold(*(first_ones(options, part) for part in fold))
        for fold in read_data(data.load_letor_folds, path)
    ]
    cut = "" if options.first is None else f", the first {options.first:,} queries of each part"
    return folds, f"{path.name}{cut}"


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
        folds, name = read_folds(options, options.data)
        source = f"{name}, all {len(folds)} folds"
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
        (first, *_), name = read_folds(options, options.data)
        parts, source = (first[0], first[second]), f"{name}, first fold"
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
    (first, *_), name = read_folds(options, options.data)
    part = first[0]
    tell(options, f"{name}, training part of the first fold: {size_of(part)}")
    return part


def load_queries(options, **simulation):
    """Return the queries of the file ``--data``, or ``--queries`` simulated ones."""
    if options.data:
        found = first_ones(options, read_data(data.load_letor, options.data))
        cut = "" if options.first is None else f", the first {options.first:,} queries"
        source = f"{options.data.name}{cut}"
    else:
        found = data.make_letor(options.queries, **{"rng": 0, **simulation})
        source = "simulated (make_letor)"
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
    """Return the settings that were chosen for a learner on each fold: ``10/0.1, 100/1``.

    Those at an end of the values tried are named behind them.
    """
    shown = "{:g}".format
    chosen = [
        "/".join(shown(one) if isinstance(one, float) else str(one) for one in setting.values())
        for setting in found.chosen[name]
    ]
    edge = [f"(an end of its values: {found.edges[name]})"] if name in found.edges else []
    return " ".join([", ".join(filter(None, chosen)), *edge])


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

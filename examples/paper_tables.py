"""The printed table of a paper beside the same learners on the data at hand.

``--paper`` is dubey2009 (Figure 3 of Dubey et al.: MAP and NDCG@10), xu2010 (Tables 2 and 3 of Xu
et al.), qin2008 (Tables 2 and 3 of Qin et al.) or wang (Table 1 of Wang et al.). What is printed
says which data, which cleaning and which rules. ``--data`` takes a folder with LETOR folds; where
these are not the collections of the paper, differences between learners can be compared, not
levels. MQ2008 takes some minutes, larger collections longer: ``--queries 30`` is a first look.
``--output`` is the picture, or the table (.md, .txt).
"""

import time
import warnings

from common import FOLDS, TABLES, load_folds, plain, read_options, save
from matplotlib.figure import Figure
from published import PAPERS, paper_table
from sklearn.exceptions import ConvergenceWarning


def main():
    options = read_options(
        __file__,
        __doc__,
        FOLDS,
        table=True,
        queries=60,
        paper=(
            "xu2010",
            "which one, xu2010 by default; on MQ2008 each takes some minutes",
            tuple(PAPERS),
        ),
    )
    warnings.simplefilter("ignore", ConvergenceWarning)  # of RankBoost, which is stopped early
    simulation = {"strict": True} if options.paper == "wang" else {}
    folds, start = load_folds(options, **simulation), time.perf_counter()
    print("Fitting; all of MQ2008 takes some minutes.", flush=True)
    table = paper_table(options.paper, folds)
    print(f"Fitted in {time.perf_counter() - start:.0f} seconds.\n\n{table}")
    if options.output.suffix.lower() in TABLES:
        plain_text = options.output.suffix.lower() == ".txt"
        text = str(table) if plain_text else table.to_markdown()
        options.output.write_text(f"{text}\n", encoding="utf-8")
        print(f"\nThe table: {options.output}")
        return
    draw(table, options)


def draw(table, options):
    """Draw the first measure: a panel per collection, and ours."""
    measure = next(iter(table.paper.measures))
    frame = table.to_frame(measure)
    error = frame.pop("standard_error")
    figure = Figure(figsize=(2.6 * len(frame.columns), 3.6), layout="constrained")
    for ax, column in zip(
        figure.subplots(1, len(frame.columns), sharey=True), frame.columns, strict=True
    ):
        here = column == "here"
        ax.errorbar(
            frame[column],
            range(len(frame)),
            xerr=error if here else None,
            fmt="o",
            color="#4c72b0" if here else "0.4",
        )
        name = measure if here else table.paper.measures[measure]
        ax.set(xlabel=name, title="here, one s.e." if here else f"printed:\n{column}")
        ax.set_yticks(range(len(frame)), list(frame.index))
        plain(ax)
    ax.invert_yaxis()
    save(figure, options)


if __name__ == "__main__":
    main()

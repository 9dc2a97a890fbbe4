"""Reading and writing LETOR files, beside scikit-learn's SVMlight reader.

python benchmarks/letor_files.py [--queries N]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import harness
import numpy as np
from sklearn.datasets import load_svmlight_file

from permdist import data


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=1000)
    options = parser.parse_args()
    queries = data.make_letor(options.queries, n_features=46, n_constant=6, rng=0)
    six = data.Queries(np.round(queries.X, 6), queries.y, queries.qid)
    print(harness.machine())
    with tempfile.TemporaryDirectory() as folder:
        for name, collection in (("six decimals, as LETOR has", six), ("full precision", queries)):
            path = Path(folder) / "file.txt"
            saving = harness.seconds(lambda c=collection, p=path: data.save_letor(c, p), repeat=2)
            megabytes = path.stat().st_size / 1e6
            rows = {
                "permdist.data.load_letor": harness.seconds(lambda p=path: data.load_letor(p)),
                "sklearn.datasets.load_svmlight_file": harness.seconds(
                    lambda p=path: load_svmlight_file(str(p), query_id=True), repeat=3
                ),
                "permdist.data.save_letor": saving,
            }
            title = f"{name}: {collection!r}, {megabytes:.1f} MB"
            harness.table(title, rows)


if __name__ == "__main__":
    main()

"""What the first call of each kind costs, with an empty cache of kernels and with a full one.

    python benchmarks/first_calls.py [--demo] [NAME ...]

Every call runs in a process of its own. The figures are processor seconds of the call, with all
its threads; imports come before and are given apart. "cold" starts with an empty cache, "warm"
with the cache that this call has left behind.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile

CALLS = {
    "rank marginals": (
        "from permdist import PlackettLuce",
        "PlackettLuce([1.0, 0.5, 0.0, -0.5]).rank_marginals()",
    ),
    "good-bad marginals": (
        "from permdist import GoodBad",
        "GoodBad([0.3, 0.1, -0.2], [1, 0, 1]).rank_marginals()",
    ),
    "draws": (
        "from permdist import PlackettLuce",
        "PlackettLuce([1.0, 0.5, 0.0, -0.5]).sample(100, rng=0)",
    ),
    "evaluate": (
        "from permdist.measures import evaluate",
        "evaluate([0.3, 0.1, 0.2], [1, 0, 1], [1, 1, 1], ['ndcg@10', 'ap'])",
    ),
    "chain": (
        "from permdist import GoodBad\nfrom permdist.samplers import run_chains",
        "run_chains(GoodBad([0.3, 0.1, -0.2, 0.0], [1, 0, 1, 0]), draws=500, chains=4, rng=0)",
    ),
    "chain, named kernel": (
        "from permdist import GoodBad\nfrom permdist.samplers import run_chains",
        "run_chains(GoodBad([0.3, 0.1, -0.2, 0.0], [1, 0, 1, 0]), draws=500, chains=4, rng=0, "
        "kernel='adjacent')",
    ),
    "rating": (
        "from permdist import DavidsonLuce, data\nframe = data.make_battles(500, 5, rng=0)",
        "DavidsonLuce.fit(data.load_battles(frame).ballots)",
    ),
    **{
        f"{name}.fit": (
            f"from permdist import data, models\nqueries = data.make_letor(60, rng=0)\n"
            f"learner = models.{name}()",
            "learner.fit(queries)",
        )
        for name in ("MLE", "ConvexLoss", "ListNet", "SoftRank", "RankSVM", "AdaRank", "SVMMap")
    },
}

TIMED = """
import json, os, sys, time, warnings
warnings.simplefilter("ignore")
begin = time.process_time()
{setup}
imports = time.process_time() - begin
clock, begin = time.perf_counter(), time.process_time()
{call}
print(json.dumps([imports, time.process_time() - begin, time.perf_counter() - clock]))
"""


def timed(setup: str, call: str, cache: str) -> list[float]:
    """Run a call in a process of its own; return imports, processor seconds and clock."""
    environment = dict(os.environ, NUMBA_CACHE_DIR=cache)
    code = TIMED.format(setup=setup, call=call)
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return list(json.loads(done.stdout.splitlines()[-1]))


def demo(cache: str, output: str) -> list[float]:
    """Run the demo; return nothing for imports, processor seconds and clock."""
    environment = dict(os.environ, NUMBA_CACHE_DIR=cache)
    code = (
        "import json, os, resource, subprocess, sys, time\n"
        "clock = time.perf_counter()\n"
        "subprocess.run([sys.executable, '-m', 'permdist', 'demo', '--output', sys.argv[1]], "
        "check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(json.dumps([0.0, used.ru_utime + used.ru_stime, time.perf_counter() - clock]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, output],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return list(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="all calls by default")
    parser.add_argument("--demo", action="store_true", help="run the whole demo, too")
    options = parser.parse_args()
    print(f"{'first call':<22} {'imports':>8} {'cold':>7} {'clock':>7} {'warm':>7} {'clock':>7}")
    for name in options.names or CALLS:
        with tempfile.TemporaryDirectory() as cache:
            cold, warm = (timed(*CALLS[name], cache) for _ in range(2))
        figures = f"{cold[0]:8.2f} {cold[1]:7.2f} {cold[2]:7.2f} {warm[1]:7.2f} {warm[2]:7.2f}"
        print(f"{name:<22} {figures}", flush=True)
    if options.demo:
        with tempfile.TemporaryDirectory() as cache:
            cold, warm = (demo(cache, os.path.join(cache, "report.html")) for _ in range(2))
        figures = f"{'':8} {cold[1]:7.2f} {cold[2]:7.2f} {warm[1]:7.2f} {warm[2]:7.2f}"
        print(f"{'permdist demo':<22} {figures}", flush=True)


if __name__ == "__main__":
    main()

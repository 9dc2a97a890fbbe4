"""Slow, obvious references for measures of runs, and for rank-biased overlap."""

import itertools
import math

# ---- of any ranking: functions of the labels from the top down -------------------------------


def recall(labels, k):
    return sum(label > 0 for label in labels[:k]) / sum(label > 0 for label in labels)


def relative_precision(labels, k):
    relevant = sum(label > 0 for label in labels)
    return sum(label > 0 for label in labels[:k]) / min(k, relevant)


def r_precision(labels, multiple=1.0):
    cut = math.floor(multiple * sum(label > 0 for label in labels) + 0.9)
    return sum(label > 0 for label in labels[:cut]) / cut


def success(labels, k):
    return float(any(label > 0 for label in labels[:k]))


def rbp(labels, p=0.8, k=None):
    return (1 - p) * sum(p**i for i, label in enumerate(labels[:k]) if label > 0)


def interpolated(labels, recall=0.0):
    relevant = sum(label > 0 for label in labels)
    needed = math.floor(recall * relevant + 0.9)
    precisions = [
        sum(label > 0 for label in labels[:n]) / n
        for n in range(1, len(labels) + 1)
        if sum(label > 0 for label in labels[:n]) >= needed
    ]
    return max(precisions, default=0.0)


def eleven_point(labels):
    return sum(interpolated(labels, tenths / 10) for tenths in range(11)) / 11


def bing(labels):
    total, bads = 0.0, 0
    for label in labels:
        total += (label > 0) / math.log2(2 + bads)
        bads += label == 0
    return total / sum(label > 0 for label in labels)


NAMES = {
    "recall": recall,
    "relative_p": relative_precision,
    "rprec": r_precision,
    "success": success,
    "rbp": rbp,
    "iprec": interpolated,
    "11pt": eleven_point,
    "bing": bing,
}

# ---- of a run: (judgements from the top down, grades of judged documents not retrieved) ------
# A judgement is a grade, "pool" for a document that was pooled but not judged, or None.


def ranked(run, qrels):
    """List the judgements from the top down, and what was judged but not retrieved."""
    order = sorted(run, key=lambda doc: (run[doc], doc.encode()), reverse=True)
    return [judgement(qrels, doc) for doc in order], rest(run, qrels)


def rest(run, qrels):
    return [grade for doc, grade in qrels.items() if grade >= 0 and doc not in run]


def judgement(qrels, doc):
    return None if doc not in qrels else qrels[doc] if qrels[doc] >= 0 else "pool"


def all_rankings(run, qrels):
    """List the judgements from the top down for every way to break ties."""
    levels = sorted(set(run.values()), reverse=True)
    ties = [[judgement(qrels, doc) for doc in run if run[doc] == level] for level in levels]
    for parts in itertools.product(*map(itertools.permutations, ties)):
        yield list(itertools.chain.from_iterable(parts))


def is_good(entry, level):
    return isinstance(entry, int) and entry >= level


def is_bad(entry, level):
    return isinstance(entry, int) and entry < level


def _relevant(judged, left, level):
    return sum(is_good(entry, level) for entry in [*judged, *left])


def bpref(judged, left, level=1):
    relevant = _relevant(judged, left, level)
    bads = sum(is_bad(entry, level) for entry in [*judged, *left])
    total = 0.0
    for rank, entry in enumerate(judged):
        if is_good(entry, level):
            above = sum(is_bad(other, level) for other in judged[:rank])
            total += 1 - min(above, relevant) / min(bads, relevant) if above else 1.0
    return total / relevant if relevant else 0.0


def inferred_ap(judged, left, level=1, epsilon=1e-5):
    relevant = _relevant(judged, left, level)
    total = 0.0
    for rank, entry in enumerate(judged):
        if is_good(entry, level):
            goods = sum(is_good(other, level) for other in judged[:rank])
            bads = sum(is_bad(other, level) for other in judged[:rank])
            pool = goods + bads + sum(other == "pool" for other in judged[:rank])
            share = (goods + epsilon) / (goods + bads + 2 * epsilon)
            total += (1 + pool * share) / (rank + 1)
    return total / relevant if relevant else 0.0


def judged_share(judged, left, level=1, k=10):
    first = judged[:k]
    return sum(isinstance(entry, int) for entry in first) / len(first) if first else 0.0


def rbp_residual(judged, left, level=1, p=0.8):
    weights = [(1 - p) * p**rank for rank in range(len(judged))]
    unjudged = (w for w, entry in zip(weights, judged, strict=True) if not isinstance(entry, int))
    return sum(unjudged) + p ** len(judged)


def average_precision(judged, left, level=1):
    relevant = _relevant(judged, left, level)
    total = 0.0
    for rank, entry in enumerate(judged, 1):
        if is_good(entry, level):
            total += sum(is_good(other, level) for other in judged[:rank]) / rank
    return total / relevant if relevant else 0.0


def ndcg(judged, left, level=1, k=None):
    gains = [entry if isinstance(entry, int) else 0 for entry in judged]
    best = sorted([*gains, *left], reverse=True)

    def dcg(values):
        return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(values[:k], 1))

    return dcg(gains) / dcg(best) if dcg(best) else 0.0


# ---- rank-biased overlap, by its formulas, depth by depth --------------------------------------


def flat(ranking):
    """List (item, first rank, last rank) from the top down; ties are lists."""
    found = []
    for entry in ranking:
        group = entry if isinstance(entry, list) else [entry]
        first = len(found) + 1
        found += [(item, first, first + len(group) - 1) for item in group]
    return found


def share_within(entry, d, ties):
    """How much of an item belongs to the first d."""
    _, first, last = entry
    if ties == "w":
        return float(first <= d)
    return min(1.0, max(0.0, (d - first + 1) / (last - first + 1)))


def rbo(a, b, p, ties):
    short, long = sorted((flat(a), flat(b)), key=len)
    s, n = len(short), len(long)
    in_short = {entry[0] for entry in short}
    alone = [entry for entry in long if entry[0] not in in_short]
    value = lower = upper = agreement = 0.0
    for d in range(1, n + 1):
        c_short = {entry[0]: share_within(entry, d, ties) for entry in short}
        c_long = {entry[0]: share_within(entry, d, ties) for entry in long}
        overlap = sum(share * c_long.get(item, 0.0) for item, share in c_short.items())
        # Beyond its end the shorter ranking goes on without ties.
        whole = sum(c_short.values()) if d <= s else d
        squares = sum(share**2 for share in c_short.values()) if d <= s else d
        norm = {
            "w": (whole + sum(c_long.values())) / 2,
            "a": d,
            "b": math.sqrt(squares * sum(share**2 for share in c_long.values())),
        }[ties]
        more = best = 0.0
        if d <= s:
            agreement = overlap / norm
        else:
            shares = [share_within(entry, d, ties) for entry in alone]
            best = sum(shares[: d - s])
            begun = [share for share in shares if share > 0]
            more = (d - s) * agreement * sum(begun) / len(begun)
        value += p**d * (overlap + more) / norm
        lower += p**d * overlap / norm
        upper += p**d * (overlap + best) / norm
    common = len(in_short & {entry[0] for entry in long})
    for d in range(n + 1, n + math.ceil(-36 / math.log(p))):  # what is left is below 1e-15
        value += p**d * (common + (n - s) * agreement) / n
        lower += p**d * common / d
        upper += p**d * min(1.0, (2 * d - n - s + common) / d)
    return [x * (1 - p) / p for x in (value, lower, upper)]

"""Slow, obvious references: enumeration and direct formulas that the fast code must equal."""

import decimal
import functools
import itertools
import math
from fractions import Fraction

import naive_trec
import numpy as np
import pytest
from scipy import optimize, stats

from permdist.rankings import BucketOrder

# ---- distances ------------------------------------------------------------------------------


def ranks(order):
    return {item: position for position, item in enumerate(order)}


def kendall(a, b):
    ra, rb = ranks(a), ranks(b)
    pairs = itertools.combinations(range(len(a)), 2)
    return sum((ra[i] < ra[j]) != (rb[i] < rb[j]) for i, j in pairs)


def kendall_with_ties(a, b, penalty):
    """The definition of Fagin et al., on two arrays of shared ranks."""
    total = 0.0
    for i, j in itertools.combinations(range(len(a)), 2):
        tied_a, tied_b = a[i] == a[j], b[i] == b[j]
        if tied_a and tied_b:
            continue
        if tied_a or tied_b:
            total += penalty
        elif (a[i] < a[j]) != (b[i] < b[j]):
            total += 1
    return total


def weighted_kendall(a, b, weights, additive):
    ra, rb = ranks(a), ranks(b)
    total = 0.0
    for i, j in itertools.combinations(range(len(a)), 2):
        if (ra[i] < ra[j]) != (rb[i] < rb[j]):
            total += weights[i] + weights[j] if additive else weights[i] * weights[j]
    return total


def footrule(a, b):
    ra, rb = ranks(a), ranks(b)
    return sum(abs(ra[i] - rb[i]) for i in ra)


def spearman(a, b):
    ra, rb = ranks(a), ranks(b)
    return sum((ra[i] - rb[i]) ** 2 for i in ra)


def hamming(a, b):
    return sum(x != y for x, y in zip(a, b, strict=True))


def cayley(a, b):
    """Swap items into place one position after the other, and count the swaps."""
    a, swaps = list(a), 0
    for k, item in enumerate(b):
        if a[k] != item:
            at = a.index(item)
            a[k], a[at] = a[at], a[k]
            swaps += 1
    return swaps


def ulam(a, b):
    """n minus the longest common subsequence, by the textbook table."""
    n = len(a)
    table = [[0] * (n + 1) for _ in range(n + 1)]
    for i in range(n):
        for j in range(n):
            same = a[i] == b[j]
            table[i + 1][j + 1] = table[i][j] + 1 if same else max(table[i][j + 1], table[i + 1][j])
    return n - table[n][n]


# ---- measures: functions of the labels from the top down ------------------------------------


def auc(labels):
    pairs = [(x, y) for x, y in itertools.combinations(labels, 2) if x != y]
    return sum(x > y for x, y in pairs) / len(pairs)


def tau(labels):
    pairs = [(x, y) for x, y in itertools.combinations(labels, 2) if x != y]
    return sum(1 if x > y else -1 for x, y in pairs) / len(pairs)


def ap(labels, k=None):
    goods, total = 0, 0.0
    for rank, label in enumerate(labels, 1):
        if label > 0:
            goods += 1
            if k is None or rank <= k:
                total += goods / rank
    return total / goods


def dcg(labels, k=None, gain="exp2", discount="log2"):
    total = 0.0
    for rank, label in enumerate(labels[:k], 1):
        value = 2**label - 1 if gain == "exp2" else label
        total += value / (math.log2(1 + rank) if discount == "log2" else max(1, math.log2(rank)))
    return total


def ndcg(labels, k=None, gain="exp2", discount="log2", short="pad"):
    if short == "zero" and k is not None and len(labels) < k:
        return 0.0
    best = sorted(labels, reverse=True)
    return dcg(labels, k, gain, discount) / dcg(best, k, gain, discount)


def precision(labels, k, short="pad"):
    if short == "zero" and len(labels) < k:
        return 0.0
    return sum(label > 0 for label in labels[:k]) / k


def rr(labels, k=None):
    for rank, label in enumerate(labels[:k], 1):
        if label > 0:
            return 1 / rank
    return 0.0


def wta(labels):
    return float(labels[0] > 0)


def err(labels, k=None, max_grade=4):
    total, go_on = 0.0, 1.0
    for rank, label in enumerate(labels[:k], 1):
        stop = (2**label - 1) / 2**max_grade
        total += go_on * stop / rank
        go_on *= 1 - stop
    return total


def persistence(labels, k=10):
    """The best overlap with any true first k: all ways to break ties of the labels are tried."""
    n = len(labels)
    k = min(k, n)
    truth = sorted(range(n), key=lambda i: -labels[i])
    border = labels[truth[k - 1]]
    sure = [i for i in range(n) if labels[i] > border]
    rest = [i for i in range(n) if labels[i] == border]
    overlaps = (
        len(set(range(k)) & {*sure, *some}) for some in itertools.combinations(rest, k - len(sure))
    )
    return max(overlaps) / k


NAMES = {
    "auc": auc,
    "tau": tau,
    "ap": ap,
    "ndcg": ndcg,
    "p": precision,
    "rr": rr,
    "wta": wta,
    "err": err,
    "persistence": persistence,
    "gmap": ap,
    **naive_trec.NAMES,
}


def measure(kind, labels):
    """Evaluate a Measure object on labels from the top down, by the functions above."""
    options = {name: value for name, value in vars(kind).items() if name not in ("empty", "ties")}
    pairwise = kind.aliases[0] in ("auc", "tau")
    if (len(set(labels)) < 2) if pairwise else (max(labels) == 0):
        return {"zero": 0.0, "one": 1.0, "skip": math.nan}[kind.empty]
    return NAMES[kind.aliases[0]](list(labels), **options)


def measure_from_scores(kind, scores, labels):
    """Sort by score, ties by index, or take the mean over all ways to break ties."""
    labels = np.asarray(labels)
    buckets = BucketOrder.from_scores(scores)
    if kind.ties == "index":
        return measure(kind, labels[buckets.order()])
    values = [measure(kind, labels[order]) for order in buckets.linear_extensions()]
    return sum(values) / len(values)


# ---- distributions: log-weights by their definition, everything else by listing all orders ------


def plackett_luce(scores, order, rest=()):
    left = [*order, *rest]
    total = 0.0
    for k, item in enumerate(order):
        remaining = [scores[j] for j in left[k:]]
        top = max(remaining)
        total += scores[item] - top - math.log(sum(math.exp(s - top) for s in remaining))
    return total


def plackett_luce_fit(lists, weights, n, rest, penalty=0, digits=60):
    """Newton's method on the explicit stages, in decimal numbers; scores that add up to 0."""
    with decimal.localcontext() as context:
        context.prec = digits
        number, one = decimal.Decimal, decimal.Decimal(1)
        stages = []
        for entry, weight in zip(lists, weights, strict=True):
            below = [i for i in range(n) if i not in entry] if rest else []
            stages += [
                (number(float(weight)), item, [*entry[k:], *below]) for k, item in enumerate(entry)
            ]
        penalty = number(float(penalty))
        scores = [number(0)] * n
        for _ in range(2000):
            worths = [s.exp() for s in scores]
            # The penalty acts on scores that add up to 0: a weak tie of all with all.
            slope = [-penalty * s for s in scores]
            bend = [[penalty * ((i == j) - one / n) for j in range(n)] for i in range(n)]
            for weight, winner, field in stages:
                total = sum(worths[i] for i in field)
                chance = {i: worths[i] / total for i in field}
                slope[winner] += weight
                for i in field:
                    slope[i] -= weight * chance[i]
                    for j in field:
                        bend[i][j] += weight * chance[i] * ((i == j) - chance[j])
            step = [*_solve([row[:-1] for row in bend[:-1]], slope[:-1]), number(0)]
            mean = sum(step) / n
            step = [s - mean for s in step]
            span = max(step) - min(step)
            size = min(one, one / span) if span > 0 else one
            scores = [s + size * d for s, d in zip(scores, step, strict=True)]
            if span < number(10) ** (-digits // 3):
                return np.array([float(s) for s in scores])
        raise AssertionError("the reference did not converge")


def _solve(matrix, right):
    """Gauss's elimination, largest pivots first."""
    rows = [[*row, r] for row, r in zip(matrix, right, strict=True)]
    for k in range(len(rows)):
        rows[k:] = sorted(rows[k:], key=lambda row: -abs(row[k]))
        for i in range(k + 1, len(rows)):
            share = rows[i][k] / rows[k][k]
            rows[i] = [a - share * b for a, b in zip(rows[i], rows[k], strict=True)]
    result = []
    for k in range(len(rows) - 1, -1, -1):
        known = sum(a * x for a, x in zip(rows[k][k + 1 : -1], result, strict=True))
        result.insert(0, (rows[k][-1] - known) / rows[k][k])
    return result


def pair_exponent(scores, labels, order, scale):
    """F of the good-bad pair model: all pairs with different labels."""
    position = ranks(order)
    total = 0  # exact if scores and scale are fractions
    for g in range(len(scores)):
        for b in range(len(scores)):
            if labels[g] > labels[b]:
                sign = 1 if position[g] < position[b] else -1
                total += sign * (scores[g] - scores[b])
    return scale * total


def good_bad(scores, labels, order, scale=1.0, tilt=None, kappa=1.0, space="orders"):
    """The exponent of an order, -inf outside the space."""
    if space == "interleavings":
        position = ranks(order)
        for i in range(len(scores)):
            for j in range(len(scores)):
                better = (-scores[i], i) < (-scores[j], j)
                if labels[i] == labels[j] and better and position[i] > position[j]:
                    return -math.inf
    value = pair_exponent(scores, labels, order, scale)
    if tilt is not None:
        gain = measure(tilt, [labels[item] for item in order])
        value += kappa * (1 - (Fraction(gain) if isinstance(value, Fraction) else gain))
    return value


def sign_vectors(scores, labels, scale=1.0, tilt=False, kappa=1.0):
    """List all sign vectors of a binary query with their exponents."""
    goods = [i for i in range(len(scores)) if labels[i] > 0]
    bads = [i for i in range(len(scores)) if labels[i] == 0]
    pairs = [(g, b) for g in goods for b in bads]
    for signs in itertools.product((-1, 1), repeat=len(pairs)):
        value = sum(
            scale * y * (scores[g] - scores[b]) for y, (g, b) in zip(signs, pairs, strict=True)
        )
        share = sum(y > 0 for y in signs) / len(pairs)
        yield np.reshape(signs, (len(goods), len(bads))), value + kappa * (1 - share) * tilt, share


class Listing:
    """All orders of a few items with their probabilities, and what follows from them."""

    def __init__(self, n, log_weight):
        self.orders = np.array(list(itertools.permutations(range(n))))
        weights = [log_weight(order) for order in self.orders.tolist()]
        # Differences first: of fractions they are exact, however large the weights.
        top = max(weights)
        below = np.array([float(weight - top) for weight in weights])
        total = math.log(math.fsum(np.exp(below)))
        self.log_partition = float(top) + total
        self.log_prob = below - total
        self.prob = np.exp(self.log_prob)

    def rank_marginals(self):
        n = self.orders.shape[1]
        result = np.zeros((n, n))
        for order, p in zip(self.orders, self.prob, strict=True):
            for position, item in enumerate(order):
                result[item, position] += p
        return result

    def pairwise(self):
        n = self.orders.shape[1]
        result = np.zeros((n, n))
        for order, p in zip(self.orders, self.prob, strict=True):
            for k, item in enumerate(order):
                result[item, order[k + 1 :]] += p
        return result

    def expect(self, kind, labels):
        values = [measure(kind, [labels[i] for i in order]) for order in self.orders]
        return float(self.prob @ values)

    def entropy(self):
        here = self.prob > 0
        return -float(self.prob[here] @ self.log_prob[here])


def gradient(function, point, step=1e-5):
    """A central difference quotient in every direction."""
    point = np.asarray(point, dtype=float)
    return np.array(
        [
            (function(point + step * e) - function(point - step * e)) / (2 * step)
            for e in np.eye(len(point))
        ]
    )


# ---- Markov chains ------------------------------------------------------------------------------


class Oracle:
    """Takes the place of chance: follows a list of outcomes, then always the first one."""

    def __init__(self, script):
        self.script, self.taken, self.chance, self.others = script, [], 1.0, []

    def choose(self, chances):
        at = len(self.taken)
        choice = self.script[at] if at < len(self.script) else None
        if choice is None:
            possible = [i for i, chance in enumerate(chances) if chance > 0.0]
            choice = possible[0]
            self.others += [(*self.taken, other) for other in possible[1:]]
        self.taken.append(choice)
        self.chance *= chances[choice]
        return choice


def outcomes(run):
    """Give every result of a random procedure with its probability."""
    scripts = [()]
    while scripts:
        oracle = Oracle(scripts.pop())
        result = run(oracle)
        scripts += oracle.others
        yield oracle.chance, result


def enumerated_chance():
    """Replace the ways in which kernels use chance by choices of an oracle."""
    from permdist.samplers.kernels import randomness

    def pick(oracle, n):
        return oracle.choose([1.0 / n] * n)

    def accept(oracle, change):
        chance = min(1.0, math.exp(min(change, 0.0))) if change == change else 0.0
        return bool(oracle.choose([1.0 - chance, chance]))

    def draw(oracle, log_weights, n, scratch):
        weights = np.exp(log_weights[:n] - log_weights[:n].max())
        return oracle.choose(list(weights / weights.sum()))

    def weigh(oracle, weights, n):
        return oracle.choose(list(weights[:n] / weights[:n].sum()))

    def locate(oracle, sums, n):
        return oracle.choose(list(np.diff(sums[:n], prepend=0.0) / sums[n - 1]))

    return {
        randomness.locate: locate,
        randomness.pick: pick,
        randomness.accept: accept,
        randomness.draw: draw,
        randomness.weigh: weigh,
    }


def transition_matrix(target, name, orders):
    """Build a kernel's transition matrix by running its own code with chance enumerated."""
    from permdist.samplers.kernels import KERNELS

    return enumerated_moves(target, KERNELS[name].function, orders, enumerated_chance())


def enumerated_moves(target, function, orders, chance, *inputs):
    """Build the transition matrix of a function; `chance` replaces its ways to draw."""
    from permdist.samplers.kernels.binding import bind, plain_functions
    from permdist.targets import restore

    replaced = plain_functions(target) | chance
    step = bind(function, replaced, lambda copy, _: copy)
    numbers = {tuple(order): number for number, order in enumerate(orders.tolist())}
    matrix = np.zeros((len(orders), len(orders)))
    for number, order in enumerate(orders):

        def run(oracle, order=order):
            state = target.state_at(order)
            replaced[restore](target.constants, state)
            step(target.constants, state, oracle, *inputs)
            return tuple(state.order.tolist())

        for share, result in outcomes(run):
            matrix[number, numbers[result]] += share
    return matrix


def class_moves(target, orders, level, divide):
    """Build the transition matrix of the block step for one class, `divide` given by the caller."""
    from permdist.samplers.kernels import randomness
    from permdist.samplers.kernels.block import resample

    chance = enumerated_chance() | {randomness.divide: divide}
    return enumerated_moves(target, resample, orders, chance, level)


def gap_counts(order, levels, level):
    """Count the items of a class above, between and below all other items."""
    counts = [0]
    for item in order:
        if levels[item] == level:
            counts[-1] += 1
        else:
            counts.append(0)
    return counts


def division_density(lengths, counts):
    """The Dirichlet density of lengths of gaps given how many points lie in them, but for n!."""
    return math.prod(x**c / math.factorial(c) for x, c in zip(lengths, counts, strict=True))


def divide_by_quadrature(nodes):
    """Replace a division at random by sticks that break at the nodes of Gauss's rule."""
    from scipy.special import roots_jacobi

    rule = functools.cache(roots_jacobi)

    def divide(oracle, counts, n):
        shapes, left = counts[:n] + 1.0, 1.0
        for k in range(n - 1):
            rest = shapes[k + 1 :].sum()
            points, weights = rule(nodes, rest - 1.0, shapes[k] - 1.0)
            share = 0.5 * (1.0 + points[oracle.choose(list(weights / weights.sum()))])
            counts[k], left = left * share, left * (1.0 - share)
        counts[n - 1] = left

    return divide


def signs_of(order, labels):
    """Give y_gb for all goods and bads as a tuple."""
    place = ranks(order)
    goods = [i for i, label in enumerate(labels) if label > 0]
    bads = [i for i, label in enumerate(labels) if label == 0]
    return tuple(1 if place[g] < place[b] else -1 for g in goods for b in bads)


def is_ranking(signs, p, m):
    """Tell whether a sign vector comes from an order: no two goods and bads contradict."""
    table = np.reshape(signs, (p, m))
    for g, h in itertools.combinations(range(p), 2):
        if (table[g] > table[h]).any() and (table[g] < table[h]).any():
            return False
    return True


def accept_reject_law(signs, p, m):
    """Give the law of one accepted step of the swap walk, as it is written in the paper."""
    table = np.reshape(signs, (p, m))
    law = {}
    for g, b in itertools.product(range(p), range(m)):
        beaten, beats = int((table[g] > 0).sum()), int((table[:, b] < 0).sum())
        if table[g, b] > 0:
            theta = (m - beaten + beats + 1) / (2 + p + m)
        else:
            theta = (p + beaten - beats + 1) / (2 + p + m)
        flipped = table.copy()
        flipped[g, b] *= -1
        key = tuple(flipped.ravel().tolist())
        if is_ranking(key, p, m):
            law[key] = law.get(key, 0.0) + theta
    total = sum(law.values())
    return {key: weight / total for key, weight in law.items()}


# ---- bound-based learners -----------------------------------------------------------------------


def query_exponent(scores, labels, order, pairs):
    """F of a whole ranking: the mean of +-(s_k - s_l) over all pairs, or those that differ."""
    place = ranks(order)
    n, total, number = len(scores), 0.0, 0
    for i, j in itertools.combinations(range(n), 2):
        if pairs == "good-bad" and labels[i] == labels[j]:
            continue
        total += (1 if place[i] < place[j] else -1) * (scores[i] - scores[j])
        number += 1
    return total / (number if pairs == "good-bad" else n * (n - 1))


TERMS = {
    "indicator": lambda e, x: e * (x <= 1e-12),
    "exponential": lambda e, x: e * math.exp(-x),
    "logistic": lambda e, x: e * math.log2(1.0 + math.exp(-x)),
    "hinge": lambda e, x: e * max(0.0, 1.0 - x),
    "margin": lambda e, x: max(0.0, e - x),
}


def permutations_of(scores, labels, measure, pairs):
    """(measure, F, order) of the perfect permutations, and of all others."""
    rows = []
    for order in itertools.permutations(range(len(scores))):
        value = float(measure(np.array(order), labels))
        rows.append((value, query_exponent(scores, labels, order, pairs), order))
    ideal = max(value for value, _, _ in rows)
    perfect = [row for row in rows if row[0] >= ideal - 1e-12]
    return perfect, [row for row in rows if row[0] < ideal - 1e-12]


def type_two(scores, labels, measure, kind, over, pairs):
    perfect, rest = permutations_of(scores, labels, measure, pairs)
    terms = [TERMS[kind](p[0] - y[0], p[1] - y[1]) for p in perfect for y in rest]
    return (max(terms, default=0.0)) if over == "max" else sum(terms)


def structured_hinge(scores, labels, measure, scale):
    best = np.argsort(-labels, kind="stable")
    base = pair_exponent(scores, labels, best, scale)
    return max(
        pair_exponent(scores, labels, order, scale) - base + 1.0 - float(measure(order, labels))
        for order in map(np.array, itertools.permutations(range(len(scores))))
    )


def pairs_of(labels, qid):
    """All (lower, higher) pairs of documents of a query."""
    n = len(labels)
    return [
        (i, j) for i in range(n) for j in range(n) if qid[i] == qid[j] and labels[i] < labels[j]
    ]


def pair_hinges(scores, labels, qid, power):
    return sum(max(0.0, 1.0 - scores[j] + scores[i]) ** power for i, j in pairs_of(labels, qid))


def rankboost(X, labels, qid, rounds):
    """RankBoost with thresholds, pair by pair; returns H of the documents and every r."""
    pairs = pairs_of(labels, qid)
    D = np.full(len(pairs), 1.0 / len(pairs))
    H, found = np.zeros(len(labels)), []
    low, high = np.array(pairs).T
    for _ in range(rounds):
        best = 0.0
        for k in range(X.shape[1]):
            values = np.unique(X[:, k])
            for threshold in (values[:-1] + values[1:]) / 2:
                h = (X[:, k] > threshold).astype(float)
                r = float(D @ (h[high] - h[low]))
                if abs(r) > abs(best) + 1e-12:
                    best, chosen = r, h
        alpha = 0.5 * math.log((1.0 + best) / (1.0 - best))
        H += alpha * chosen
        D *= np.exp(alpha * (chosen[low] - chosen[high]))
        D /= D.sum()
        found.append(best)
    return H, found


# ---- listwise and approximation learners --------------------------------------------------------

SIGMOIDS = {
    "logistic": lambda x: 1.0 / (1.0 + math.exp(-x)),
    "tanh": lambda x: 0.5 * (1.0 + math.tanh(x)),
    "erf": lambda x: 0.5 * (1.0 + math.erf(x)),
    "arctan": lambda x: 0.5 + math.atan(x) / math.pi,
}


def smooth_positions(scores, alpha, sigmoid):
    f, n = SIGMOIDS[sigmoid], len(scores)
    return [
        1.0 + sum(f(alpha * (scores[j] - scores[i])) for j in range(n) if j != i) for i in range(n)
    ]


def smooth_measure(name, scores, labels, alpha, beta, sigmoid):
    """The smooth version of a measure, by double loops."""
    f, n = SIGMOIDS[sigmoid], len(scores)
    position = smooth_positions(scores, alpha, sigmoid)
    kind, _, cut = name.partition("@")
    good = [i for i in range(n) if labels[i] > 0]

    def inside(i):
        return f(beta * (int(cut) + 0.5 - position[i])) if cut and int(cut) < n else 1.0

    if kind == "ndcg":
        ideal = dcg(sorted(labels, reverse=True), int(cut) if cut else None)
        terms = ((2.0 ** labels[i] - 1.0) / math.log2(1.0 + position[i]) * inside(i) for i in good)
        return sum(terms) / ideal
    if kind == "precision":
        return sum(inside(i) for i in good) / int(cut)
    if kind == "ap":
        total = 0.0
        for y in good:
            above = sum(f(beta * (position[y] - position[x])) for x in good if x != y)
            total += (1.0 + above) / position[y]
        return total / len(good)
    if kind == "rr":
        total = 0.0
        for x in good:
            first = math.prod(f(beta * (position[y] - position[x])) for y in good if y != x)
            total += first / position[x]
        return total
    signs = [
        1.0 - 2.0 * f(alpha * (scores[j] - scores[i]))
        for i in range(n)
        for j in range(n)
        if labels[i] > labels[j]
    ]
    return sum(signs) / len(signs)


def list_net(scores, labels, k, weight=math.exp):
    """Cross entropy over all ordered choices of k documents."""
    total = 0.0
    for choice in itertools.permutations(range(len(scores)), min(k, len(scores))):
        chance, log_chance, left = 1.0, 0.0, list(range(len(scores)))
        for item in choice:
            if weight(labels[item]) == 0.0 and not any(weight(labels[j]) for j in left):
                break
            chance *= weight(labels[item]) / sum(weight(labels[j]) for j in left)
            log_chance += scores[item] - math.log(sum(math.exp(scores[j]) for j in left))
            left.remove(item)
        total -= chance * log_chance
    return total


def list_mle(scores, labels):
    """Every document above the lowest label against those of its label and below."""
    n = len(scores)
    return sum(
        math.log(sum(math.exp(scores[j]) for j in range(n) if labels[j] <= labels[i])) - scores[i]
        for i in range(n)
        if labels[i] > min(labels)
    )


def diff_rank(h, labels, qid, sizes, prec, rounds):
    """DiffRank pair by pair: the weights, the normalizers and the errors of the first rounds."""
    place = {}
    for query in set(qid):
        members = [i for i in range(len(labels)) if qid[i] == query]
        members.sort(key=lambda i: -labels[i])
        place |= {item: position for position, item in enumerate(members)}
    pairs = [(i, j) for j, i in pairs_of(labels, qid) if place[i] < prec]
    D = np.full(len(pairs), 1.0 / len(pairs))
    H, rows = np.zeros(len(labels)), []
    for k in range(rounds):
        gaps = np.array([(h[k][i] - h[k][j]) / max(1, sizes[i] - 1) for i, j in pairs])
        r = float(D @ gaps)
        weight = 0.5 * math.log((1.0 + r) / (1.0 - r))
        D = D * np.exp(-weight * gaps)
        Z = float(D.sum())
        D /= Z
        H += weight * h[k] / np.maximum(1, sizes - 1)
        rows.append((weight, Z, np.mean([H[i] - H[j] < 0 for i, j in pairs])))
    return rows


# ---- statistics --------------------------------------------------------------------------------


def randomisation_p(differences):
    """The share of all sign vectors whose sum is as far from 0 as the one that was seen."""
    seen = abs(sum(differences))
    signs = list(itertools.product([-1, 1], repeat=len(differences)))
    far = sum(
        abs(sum(s * d for s, d in zip(one, differences, strict=True))) >= seen - 1e-9
        for one in signs
    )
    return far / len(signs)


def holm(p_values):
    """Reject from the smallest p-value up, each at its share of the level; the level it takes."""
    n = len(p_values)
    order = sorted(range(n), key=lambda i: p_values[i])
    result, highest = [0.0] * n, 0.0
    for place, i in enumerate(order):
        highest = max(highest, min(1.0, (n - place) * p_values[i]))
        result[i] = highest
    return result


def bound(learner, batch):
    """A learner's objective as a function of all scores: the sum over queries and its gradient."""
    objective = learner.build_objective().bind(batch)

    def total(scores):
        values, gradient = objective(scores)
        return float(values.sum()), gradient

    return total


def refuses(call, error, message):
    """Check that a call raises an error whose text contains a message."""
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)


# ---- exchanges of two documents ------------------------------------------------------------------


def exchanges(measure, labels, scores):
    """Return the change of a measure for every pair of different labels that is exchanged."""
    order = np.argsort(-scores, kind="stable")
    members = np.argsort(labels, kind="stable")
    found = []
    for upper in members:
        for lower in (item for item in members if labels[item] < labels[upper]):
            places = [int(np.flatnonzero(order == item)[0]) for item in (upper, lower)]
            other = order.copy()
            other[places] = order[places[::-1]]
            found.append(measure(other, labels) - measure(order, labels))
    return np.array(found)


# ---- valid sign vectors --------------------------------------------------------------------------


def poly_bernoulli(p, m):
    """Count the valid sign vectors of p goods and m bads: the poly-Bernoulli number of index -p."""
    return sum(
        math.factorial(j) ** 2 * _set_partitions(p + 1, j + 1) * _set_partitions(m + 1, j + 1)
        for j in range(min(p, m) + 1)
    )


def _set_partitions(n, k):
    """Count the ways to split n items into k sets: Stirling's number of the second kind."""
    if n == 0 or k == 0:
        return int(n == k)
    return k * _set_partitions(n - 1, k) + _set_partitions(n - 1, k - 1)


def orders_by_signs(labels):
    """List one order for every sign vector of pairs of different labels, any number of them."""
    found = {}
    for order in itertools.permutations(range(len(labels))):
        place = ranks(order)
        pairs = itertools.combinations(range(len(labels)), 2)
        signs = tuple(place[i] < place[j] for i, j in pairs if labels[i] != labels[j])
        found.setdefault(signs, list(order))
    return list(found.values())


# ---- goodness of fit of battles ------------------------------------------------------------------


def davidson(scores, log_tie, i, j):
    """Return the chances that i wins, that j wins, and of a tie."""
    tie = 0.0 if log_tie is None else math.exp(log_tie + (scores[i] + scores[j]) / 2)
    weights = [math.exp(scores[i]), math.exp(scores[j]), tie]
    return [weight / sum(weights) for weight in weights]


def pair_table(first, second, outcome, chances, weights):
    """Add up, battle by battle: seen and expected wins, losses, ties, and the points' variance."""
    found = {}
    for i, j, won, chance, weight in zip(first, second, outcome, chances, weights, strict=True):
        points = [1.0, 0.0, 0.5]
        if i > j:
            i, j, won, chance = j, i, [1, 0, 2][won], [chance[1], chance[0], chance[2]]
        row = found.setdefault((i, j), {"seen": [0.0] * 3, "expected": [0.0] * 3, "variance": 0.0})
        row["seen"][won] += weight
        mean = sum(p * c for p, c in zip(points, chance, strict=True))
        for side in range(3):
            row["expected"][side] += weight * chance[side]
            row["variance"] += weight * chance[side] * (points[side] - mean) ** 2
    return found


def circles(wins):
    """List the triples that have three majorities, and those of them that go in circles."""
    decided, cyclic = [], []
    for i, j, k in itertools.combinations(range(len(wins)), 3):
        if wins[i][j] != wins[j][i] and wins[j][k] != wins[k][j] and wins[i][k] != wins[k][i]:
            decided.append((i, j, k))
            turns = [wins[a][b] > wins[b][a] for a, b in ((i, j), (j, k), (k, i))]
            if all(turns) or not any(turns):
                cyclic.append((i, j, k))
    return decided, cyclic


# ---- what follows from scores and their covariance ---------------------------------------------


def difference_error(covariance, i, j):
    return math.sqrt(covariance[i][i] + covariance[j][j] - 2 * covariance[i][j])


def quasi_variances(covariance):
    """Minimize the squared logarithms of the ratios with scipy's general method."""
    pairs = list(itertools.combinations(range(len(covariance)), 2))
    logs = [2 * math.log(difference_error(covariance, i, j)) for i, j in pairs]

    def residuals(q):
        # A sum that is not positive is as bad as one that is very small.
        sums = [max(q[i] + q[j], 1e-100) for i, j in pairs]
        return [math.log(total) - log for total, log in zip(sums, logs, strict=True)]

    start = np.full(len(covariance), math.exp(np.mean(logs)) / 2)
    found = optimize.least_squares(residuals, start, xtol=1e-15, ftol=1e-15, gtol=1e-15)
    return found.x


def greatest_difference(covariance, z, ordered):
    """Return the largest standardized difference over ordered pairs, or 0."""
    gaps = [(z[i] - z[j]) / difference_error(covariance, i, j) for i, j in ordered]
    return max([0.0, *gaps])


def rank_sets(scores, covariance, level, draws, step_down):
    """Test all ordered pairs, repeatedly if asked to, with the given draws of the errors."""
    n = len(scores)
    left = list(itertools.permutations(range(n), 2))
    above = set()
    while left:
        values = sorted(greatest_difference(covariance, z, left) for z in draws)
        critical = values[math.ceil(level * (len(draws) + 1)) - 1]
        found = [
            (i, j)
            for i, j in left
            if scores[i] - scores[j] > critical * difference_error(covariance, i, j)
        ]
        above |= set(found)
        left = [pair for pair in left if pair not in above]
        if not step_down or not found:
            break
    return [
        [1 + sum((j, i) in above for j in range(n)), n - sum((i, j) in above for j in range(n))]
        for i in range(n)
    ]


def order_probability(scores, covariance, order):
    """Return the chance that normal scores are in this order, as an integral over an orthant."""
    steps = np.zeros((len(order) - 1, len(order)))
    for k, (upper, lower) in enumerate(itertools.pairwise(order)):
        steps[k, upper], steps[k, lower] = -1.0, 1.0
    mean, spread = steps @ np.asarray(scores), steps @ np.asarray(covariance) @ steps.T
    return float(stats.multivariate_normal(mean, spread).cdf(np.zeros(len(mean))))


# ---- mixtures ----------------------------------------------------------------------------------


def mixture(weights, log_probs, order):
    """Add up the probabilities of one order under the components, given as functions."""
    pairs = zip(weights, log_probs, strict=True)
    return math.log(math.fsum(weight * math.exp(log_prob(order)) for weight, log_prob in pairs))


def mixture_errors(orders, weights, scores, step=1e-3):
    """Return errors of weights and scores of Plackett-Luce components, by difference quotients.

    The last weight follows from the others, and the last score of each component from a sum of 0.
    """
    k, n = len(weights), len(scores[0])

    def unfold(free):
        shares = [*free[: k - 1], 1.0 - sum(free[: k - 1])]
        rows = np.reshape(free[k - 1 :], (k, n - 1))
        return shares, [[*row, -sum(row)] for row in rows]

    def likelihood(free):
        shares, rows = unfold(free)
        parts = [functools.partial(plackett_luce, np.array(row)) for row in rows]
        return math.fsum(mixture(shares, parts, order) for order in orders)

    start = np.concatenate([weights[:-1], *(np.asarray(row)[:-1] for row in scores)])
    size = len(start)
    hessian, steps = np.zeros((size, size)), step * np.eye(size)
    for i, j in itertools.product(range(size), repeat=2):
        for a, b in itertools.product((1, -1), repeat=2):
            hessian[i, j] += a * b * likelihood(start + a * steps[i] + b * steps[j])
    covariance = np.linalg.inv(-hessian / (4 * step**2))
    turn = np.array([np.concatenate([s, *r]) for s, r in map(unfold, np.eye(size))])
    turn = turn - np.concatenate([unfold(np.zeros(size))[0], np.zeros(k * n)])
    return np.sqrt(np.diagonal(turn.T @ covariance @ turn))


def kendall_stages(thetas, times):
    """Place an order of Mallows' model stage by stage, from exponential times.

    At a stage with m items left, item number v of them is placed with a chance proportional to
    ``exp(-theta v)``: an exponential variable over theta, modulo m, or by inversion.
    """
    left = list(range(len(thetas) + 1))
    order = []
    for theta, wait in zip(thetas, times, strict=True):
        m = len(left)
        if m * theta < 1e-3:
            v = int(-np.log1p(-np.expm1(-wait) * np.expm1(-m * theta)) / theta)
        else:
            v = int(wait / theta % m)
        order.append(left.pop(v))
    return order + left


def counted_ballots(ballots):
    """Count equal ballots: buckets are sets of names, and so are those never chosen."""
    counts = {}
    for ballot in range(ballots.n_ballots):
        records = []
        for row in np.flatnonzero(ballots.ballot == ballot):
            start, buckets = ballots.ptr[row], []
            for size in ballots.sizes[ballots.stages[row] : ballots.stages[row + 1]]:
                buckets.append(frozenset(ballots.items[start : start + size].tolist()))
                start += size
            buckets.append(frozenset(ballots.items[start : ballots.ptr[row + 1]].tolist()))
            named = [frozenset(ballots.names[item] for item in bucket) for bucket in buckets]
            records.append((tuple(named), ballots.signs[row]))
        key = tuple(records)
        counts[key] = counts.get(key, 0.0) + ballots.weights[ballot]
    return counts


def offset_choices(chosen, menus, offset, n):
    """Fit scores that add up to 0 to choices with known parts of utilities, by a general search."""

    def loss(free):
        scores = np.append(free, -free.sum())
        total = 0.0
        for k, (winner, menu) in enumerate(zip(chosen, menus, strict=True)):
            utilities = {item: scores[item] + offset[k, item] for item in menu}
            total -= utilities[winner] - np.log(sum(map(math.exp, utilities.values())))
        return total

    found = optimize.minimize(loss, np.zeros(n - 1), method="BFGS", options={"gtol": 1e-9})
    return np.append(found.x, -found.x.sum())


# ---- sums over blocks ---------------------------------------------------------------------------


def tree_sum(rows):
    """Add up rows along the binary tree over their numbers; of entry 1 the largest counts."""
    if len(rows) == 1:
        return rows[0]
    half = 1
    while 2 * half < len(rows):
        half *= 2
    left, right = tree_sum(rows[:half]), tree_sum(rows[half:])
    total = left + right
    total[1] = max(left[1], right[1])
    return total


# ---- stores ---------------------------------------------------------------------------------


def letor_rows(text, width):
    """Read LETOR lines one by one: features, labels, query ids as texts; NULL is the lowest."""
    rows = []
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if not words:
            continue
        given = dict(word.split(":") for word in words[2:])
        values = [given.get(str(number), "0") for number in range(1, width + 1)]
        rows.append((values, int(words[0]), words[1].removeprefix("qid:")))
    table = []
    for values, _, qid in rows:
        same = [other for other, _, query in rows if query == qid]
        full = []
        for column, value in enumerate(values):
            known = [float(other[column]) for other in same if other[column] != "NULL"]
            full.append(float(value) if value != "NULL" else min(known, default=0.0))
        table.append(full)
    return np.array(table), [label for _, label, _ in rows], [qid for _, _, qid in rows]


# ---- blocks of queries ---------------------------------------------------------------------------


def whole_total(objective, X, labels, ptr, w):
    """Value, gradient, steepest slope and silent queries from one matrix and one batch."""
    bound = objective.bind(objective.batch(labels, ptr))
    values, slopes = bound(X @ w)
    steepest = [np.abs(slopes[a:b]).max() for a, b in itertools.pairwise(ptr)]
    return values.sum(), X.T @ slopes, max(steepest), sum(size <= 1e-9 for size in steepest)


def normalized(X, ptr, method):
    """Features scaled within queries, column by column."""
    result = np.zeros(X.shape)
    for a, b in itertools.pairwise(ptr):
        for k in range(X.shape[1]):
            column = X[a:b, k].astype(float)
            spread = column.max() - column.min()
            if method == "raw":
                result[a:b, k] = column
            elif spread > 0.0 and method == "minmax":
                result[a:b, k] = (column - column.min()) / spread
            elif spread > 0.0 and method == "zscore":
                result[a:b, k] = (column - column.mean()) / column.std()
            elif spread > 0.0:
                below = (column[:, None] > column).sum(axis=1)
                equal = (column[:, None] == column).sum(axis=1) - 1
                result[a:b, k] = (below + 0.5 * equal) / (b - a - 1)
    return result

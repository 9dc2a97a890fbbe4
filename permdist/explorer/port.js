/* What a shared file computes by itself: Plackett-Luce, Gaussian scores, Mallows (Kendall).
   The same JSON as permdist.explorer.answer; exact where few items allow it, else from draws. */
const port = (() => {
  "use strict";
  const FAMILIES = ["plackett-luce", "gaussian", "mallows-kendall"];
  const SUBSETS = 10;
  const LISTED = 7;
  const DRAWS = 4000;
  const SHOWN = 10;

  // ---- random numbers: mulberry32, so that the same seed draws the same rankings -------------
  function generator(seed) {
    let state = (seed + 0x9e3779b9) >>> 0;
    return () => {
      state = (state + 0x6d2b79f5) >>> 0;
      let t = Math.imul(state ^ (state >>> 15), state | 1);
      t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
      return (((t ^ (t >>> 14)) >>> 0) + 0.5) / 4294967296;
    };
  }
  const descending = (keys) =>
    keys.map((_, i) => i).sort((a, b) => keys[b] - keys[a] || a - b);

  const samplers = {
    "plackett-luce": ({ scores, noise }, random) => () =>
      descending(scores.map((s) => s / noise - Math.log(-Math.log(random())))),
    gaussian: ({ scores, noise }, random) => () =>
      descending(scores.map((s) =>
        s + noise * Math.sqrt(-2 * Math.log(random())) * Math.cos(2 * Math.PI * random()))),
    // Repeated insertion: the k-th item of the center passes j of those before it.
    "mallows-kendall": ({ scores, noise }, random) => {
      const center = descending(scores);
      const weights = center.map((_, j) => Math.exp(-j / noise));
      return () => {
        const order = [];
        center.forEach((item, k) => {
          let left = random() * weights.slice(0, k + 1).reduce((a, b) => a + b);
          let passed = 0;
          while (passed < k && (left -= weights[passed]) > 0) passed += 1;
          order.splice(k - passed, 0, item);
        });
        return order;
      };
    },
  };

  // ---- Plackett-Luce: sums over the sets of the items that are ranked already ----------------
  function logChance(scores, order) {
    let sum = 0;
    for (let k = 0; k < order.length; k += 1) {
      const rest = order.slice(k).map((i) => scores[i] - scores[order[k]]);
      const top = Math.max(...rest);
      sum -= top + Math.log(rest.reduce((a, x) => a + Math.exp(x - top), 0));
    }
    return sum;
  }
  function luceMarginals(scores) {
    const n = scores.length;
    const chance = new Float64Array(1 << n);
    chance[0] = 1;
    const table = scores.map(() => new Array(n).fill(0));
    for (let set = 0; set < (1 << n) - 1; set += 1) {
      const rest = scores.map((_, i) => i).filter((i) => !(set & (1 << i)));
      const top = Math.max(...rest.map((i) => scores[i]));
      const worths = rest.map((i) => Math.exp(scores[i] - top));
      const total = worths.reduce((a, b) => a + b);
      rest.forEach((i, k) => {
        const flow = (chance[set] * worths[k]) / total;
        table[i][n - rest.length] += flow;
        chance[set | (1 << i)] += flow;
      });
    }
    return table;
  }
  function permutations(items) {
    if (items.length < 2) return [items];
    return items.flatMap((item, k) =>
      permutations([...items.slice(0, k), ...items.slice(k + 1)]).map((rest) => [item, ...rest]));
  }

  // ---- measures, by the library's default conventions ----------------------------------------
  const gain = (label) => 2 ** label - 1;
  const dcg = (labels, k) =>
    labels.slice(0, k).reduce((sum, label, r) => sum + gain(label) / Math.log2(r + 2), 0);
  const MEASURES = {
    ndcg: (found, k) => dcg(found, k) / dcg([...found].sort((a, b) => b - a), k),
    p: (found, k) => found.slice(0, k).filter((label) => label > 0).length / k,
    ap: (found) => {
      let hits = 0;
      let sum = 0;
      found.forEach((label, r) => { if (label > 0) { hits += 1; sum += hits / (r + 1); } });
      return sum / hits;
    },
    rr: (found) => 1 / (1 + found.findIndex((label) => label > 0)),
    auc: (found) => {
      let right = 0;
      let pairs = 0;
      found.forEach((a, i) => found.slice(i + 1).forEach((b) => {
        if (a !== b) { pairs += 1; right += a > b; }
      }));
      return right / pairs;
    },
  };
  function measureOf(text) {
    const [, name, cut] = /^([a-z]+)(?:@(\d+))?$/.exec(text.trim().toLowerCase()) ?? [];
    const known = { map: "ap", mrr: "rr", precision: "p" }[name] ?? name;
    const takesCut = known === "ndcg" || known === "p";
    if (!MEASURES[known] || (cut && !takesCut) || (known === "p" && !cut)) return null;
    const k = cut ? Number(cut) : Infinity;
    const defined = (labels) => (known === "auc"
      ? new Set(labels).size > 1 : labels.some((label) => label > 0));
    return { defined, value: (found) => MEASURES[known](found, k) };
  }

  // ---- the answer ----------------------------------------------------------------------------
  function average(values) {
    const n = values.length;
    const mean = values.reduce((a, b) => a + b, 0) / n;
    const squares = values.reduce((a, b) => a + (b - mean) ** 2, 0);
    return { value: mean, standard_error: Math.sqrt(squares / (n - 1) / n), draws: n };
  }
  const tabled = (values, draws) => ({
    values,
    draws,
    standard_error: draws
      ? Math.max(...values.flat().map((p) => Math.sqrt((p * (1 - p)) / (draws - 1)))) : 0,
  });

  function answer(setting) {
    const { model, noise, labels } = setting;
    if (!FAMILIES.includes(model)) throw new Error(`model: ${model} is not live in this file`);
    const n = setting.scores.length;
    const items = setting.scores.map((_, i) => i);
    const draw = samplers[model](setting, generator(setting.seed));
    const shown = Array.from({ length: SHOWN }, () => draw().map((i) => [i]));
    const luce = model === "plackett-luce";
    const scores = setting.scores.map((s) => s / noise);
    const listing = luce && n <= LISTED
      ? permutations(items).map((order) => ({ order, chance: Math.exp(logChance(scores, order)) }))
      : null;
    const orders = luce && n <= LISTED ? [] : Array.from({ length: DRAWS }, draw);
    const blank = () => items.map(() => new Array(n).fill(0));

    let marginals;
    if (luce && n <= SUBSETS) marginals = tabled(luceMarginals(scores), 0);
    else {
      const table = blank();
      for (const order of orders) order.forEach((i, r) => { table[i][r] += 1 / DRAWS; });
      marginals = tabled(table, DRAWS);
    }
    let pairwise;
    if (luce) {
      pairwise = tabled(items.map((i) => items.map((j) =>
        (i === j ? 0 : 1 / (1 + Math.exp(scores[j] - scores[i]))))), 0);
    } else {
      const table = blank();
      for (const order of orders) {
        for (let a = 0; a < n; a += 1) {
          for (let b = a + 1; b < n; b += 1) table[order[a]][order[b]] += 1 / DRAWS;
        }
      }
      pairwise = tabled(table, DRAWS);
    }
    const byScore = descending(setting.scores).map((i) => labels[i]);
    const expected = setting.measures.map((text) => {
      const measure = measureOf(text);
      const row = { measure: text, value: null, standard_error: null, draws: 0, by_score: null };
      if (!measure) return { ...row, absent: true };
      if (!measure.defined(labels)) return row;
      const valueOf = (order) => measure.value(order.map((i) => labels[i]));
      const found = listing
        ? { value: listing.reduce((sum, one) => sum + one.chance * valueOf(one.order), 0),
            standard_error: 0, draws: 0 }
        : average(orders.map(valueOf));
      return { ...row, ...found, by_score: measure.value(byScore) };
    });
    return { rank_marginals: marginals, pairwise, expected, entropy: null, draws: shown, notes: [] };
  }
  return { answer, FAMILIES, SUBSETS, LISTED, DRAWS };
})();

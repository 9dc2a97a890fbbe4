/* Draws an answer into the page: tables of chances, bars, rankings. */
const drawing = (() => {
  "use strict";
  const TABLE = 20; // the largest number of items in a table; more are drawn as a picture
  const FEW = 8; // the number of places of a draw that are written out
  const make = (tag, facts = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), facts);
    element.append(...children);
    return element;
  };
  const percent = (p, digits = 1) => `${(100 * p).toFixed(digits)}`;
  const how = (one) => (one.draws === 0 ? "Exact."
    : `Estimated from ${one.draws.toLocaleString("en")} draws, standard errors up to ${
      percent(one.standard_error, 2)}.`);
  const show = (value, digits = 4) => (value === null ? "–" : value.toFixed(digits));
  // Behind a text colors are pale, so that it can be read.
  const PALE = 60;
  const tint = (color, share, most) => `color-mix(in srgb, var(${color}) ${
    (most * Math.max(0, Math.min(1, share))).toFixed(1)}%, var(--ground))`;
  const marginalTint = (p, most = PALE) => tint("--heat", p ** 0.8, most);
  const pairTint = (p, most = PALE) =>
    tint(p >= 0.5 ? "--heat" : "--against", Math.abs(2 * p - 1), most);

  function table(names, heads, values, words, color, extra) {
    const n = names.length;
    const digits = n <= 8 ? 1 : 0;
    const head = make("tr", {}, make("td"), ...heads.map((text) =>
      make("th", { scope: "col", textContent: text, title: text })));
    if (extra) head.append(make("th", { scope: "col", textContent: extra.head }));
    const rows = values.map((row, i) => {
      const cells = row.map((p, j) => {
        if (words(i, j) === null) return make("td");
        const cell = make("td", { textContent: percent(p, digits),
          title: `${words(i, j)}: ${percent(p, 2)} %` });
        cell.dataset.value = p;
        cell.style.backgroundColor = color(p);
        return cell;
      });
      const name = make("th", { scope: "row", textContent: names[i], title: names[i] });
      const line = make("tr", {}, name, ...cells);
      if (extra) line.append(make("td", { className: "mean", textContent: extra.cells[i] }));
      return line;
    });
    return make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows));
  }

  // Many items: a pixel for each chance. Colors are those of the theme at the moment.
  function picture(values, label, color) {
    const n = values.length;
    const canvas = make("canvas", { width: n, height: n });
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", label);
    const context = canvas.getContext("2d");
    const probe = make("i");
    document.body.append(probe);
    const cache = new Map();
    const solid = (p) => {
      const step = Math.round(p * 500) / 500;
      if (!cache.has(step)) {
        probe.style.backgroundColor = color(step, 100);
        cache.set(step, getComputedStyle(probe).backgroundColor);
      }
      return cache.get(step);
    };
    values.forEach((row, i) => row.forEach((p, j) => {
      context.fillStyle = solid(p);
      context.fillRect(j, i, 1, 1);
    }));
    probe.remove();
    return canvas;
  }

  function marginals(place, setting, { rank_marginals: found }) {
    const { names } = setting;
    const n = names.length;
    const means = found.values.map((row) => row.reduce((sum, p, r) => sum + p * (r + 1), 0));
    document.getElementById("marginals-how").textContent = how(found);
    if (n > TABLE) {
      const highest = Math.max(...found.values.flat());
      place.replaceChildren(make("div", { className: "heat" }, picture(found.values,
        `Rank marginals of ${n} items`, (p, most) => marginalTint(p / highest, most))),
      make("p", { className: "hint", textContent: `A row for each of the ${n} items, from ${
        names[0]} to ${names[n - 1]}, a column for each rank; the stronger the color, the more probable, up to ${
        percent(highest)} %.` }));
      return;
    }
    place.replaceChildren(make("div", { className: "heat" }, table(names,
      names.map((_, r) => `${r + 1}`), found.values,
      (i, r) => `${names[i]} at rank ${r + 1}`, marginalTint,
      { head: "mean rank", cells: means.map((mean) => mean.toFixed(2)) })));
  }

  function pairwise(place, setting, { pairwise: found }) {
    const { names } = setting;
    const n = names.length;
    document.getElementById("pairwise-how").textContent = how(found);
    if (n > TABLE) {
      const shown = found.values.map((row, i) => row.map((p, j) => (i === j ? 0.5 : p)));
      place.replaceChildren(make("div", { className: "heat" },
        picture(shown, `Pairwise chances of ${n} items`, pairTint)),
      make("p", { className: "hint", textContent:
        "Blue: the item of the row is probably above that of the column; orange: below." }));
      return;
    }
    place.replaceChildren(make("div", { className: "heat" }, table(names, names, found.values,
      (i, j) => (i === j ? null : `${names[i]} above ${names[j]}`), pairTint)));
  }

  function expected(place, { expected: rows, entropy }) {
    if (rows.every((row) => row.value === null && !row.absent)) {
      const text = rows.length === 0 ? "No measures were chosen."
        : "No measure is defined: give different labels to some items, 0 to irrelevant ones.";
      place.replaceChildren(make("p", { className: "hint", textContent: text }));
      return;
    }
    const head = ["", "expected", "", "", "ranked by score"];
    const lines = rows.map((row) => {
      const error = row.value === null ? (row.absent ? "not in this file" : "not defined")
        : row.draws === 0 ? "exact" : `± ${row.standard_error.toFixed(4)}`;
      const bar = make("div");
      if (row.value !== null) {
        const fill = make("span");
        fill.style.width = `${100 * Math.max(0, Math.min(1, row.value))}%`;
        const mark = make("i", { title: "ranked by score" });
        mark.style.left = `calc(${100 * Math.max(0, Math.min(1, row.by_score))}% - 1px)`;
        bar.append(fill, mark);
      }
      const value = make("td", { textContent: show(row.value) });
      value.dataset.value = row.value;
      value.dataset.measure = row.measure;
      return make("tr", {}, make("th", { scope: "row", textContent: row.measure }), value,
        make("td", { textContent: error, className: "word" }), make("td", { className: "bar" }, bar),
        make("td", { textContent: show(row.by_score) }));
    });
    if (entropy) {
      lines.push(make("tr", {}, make("th", { scope: "row", textContent: "entropy" }),
        make("td", { textContent: show(entropy.value) }),
        make("td", { className: "word", textContent:
          entropy.draws === 0 ? "exact" : `± ${entropy.standard_error.toFixed(4)}` }),
        make("td", { className: "bar", textContent: "nats" }), make("td")));
    }
    const heads = head.map((text, k) => make(text ? "th" : "td",
      { textContent: text, className: k === 3 ? "bar" : "", ...(text ? { scope: "col" } : {}) }));
    place.replaceChildren(make("table", {}, make("thead", {}, make("tr", {}, ...heads)),
      make("tbody", {}, ...lines)));
  }

  function draws(place, setting, { draws: found }) {
    place.replaceChildren(...found.map((buckets) => {
      const line = make("li");
      const few = buckets.slice(0, FEW);
      few.forEach((bucket, k) => {
        if (k) line.append(make("span", { textContent: " › " }));
        bucket.forEach((item, j) => {
          if (j) line.append(make("span", { textContent: " = " }));
          line.append(make("b", { textContent: setting.names[item],
            className: setting.labels[item] > 0 ? "relevant" : "" }));
        });
      });
      const left = buckets.slice(FEW).flat().length;
      if (left) line.append(make("span", { textContent: ` › ${left} more` }));
      return line;
    }));
  }

  function all(setting, answer) {
    const place = (id) => document.getElementById(id);
    expected(place("expected"), answer);
    marginals(place("marginals"), setting, answer);
    pairwise(place("pairwise"), setting, answer);
    draws(place("draws"), setting, answer);
  }
  return { all, make };
})();

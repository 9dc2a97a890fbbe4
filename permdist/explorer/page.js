/* The controls: they change the setting, ask for its answer, and have it drawn. */
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const { make } = drawing;
  const place = (id) => document.getElementById(id);
  const copy = (value) => JSON.parse(JSON.stringify(value));
  const family = (name) => data.families.find((one) => one.name === name);
  const WAIT = 40; // milliseconds without a change, before an answer is asked for
  let start = copy(data.setting); // what "Start over" goes back to
  let setting = copy(start);
  let latest = { setting: copy(start), answer: data.answer };
  let reach = 3; // sliders go from -reach to reach
  let timer = null;
  let busy = false;
  let waiting = false;

  // ---- asking --------------------------------------------------------------------------------
  async function post(path, body) {
    const found = await fetch(path, { method: "POST", body: JSON.stringify(body),
      headers: { "Content-Type": "application/json" } });
    const content = await found.json();
    if (!found.ok) throw new Error(content.error);
    return content;
  }
  const same = (one, two) => JSON.stringify(one) === JSON.stringify(two);

  async function ask(asked) {
    if (same(asked, data.setting)) return { answer: data.answer, how: data.live ? "" : "saved" };
    if (data.live) {
      const { answer, seconds } = await post("answer", asked);
      return { answer, how: `computed in ${(1000 * seconds).toFixed(0)} ms` };
    }
    if (!port.FAMILIES.includes(asked.model)) throw new Error("This model is frozen in this file.");
    const begin = performance.now();
    const answer = port.answer(asked);
    return { answer, how: `computed by this file in ${(performance.now() - begin).toFixed(0)} ms` };
  }

  // One question at a time; the newest setting is asked for when an answer is there.
  async function update() {
    if (busy) { waiting = true; return; }
    busy = true;
    const asked = copy(setting);
    const slow = setTimeout(() => say("Computing… The first answer of a model compiles it, once."), 700);
    try {
      const { answer, how } = await ask(asked);
      clearTimeout(slow);
      latest = { setting: asked, answer };
      present();
      place("answers").classList.remove("stale");
      say(describe(answer, how));
    } catch (error) {
      clearTimeout(slow);
      place("answers").classList.add("stale");
      const lost = error instanceof TypeError;
      say(lost ? "No answer: permdist explore has ended." : error.message, true);
    }
    busy = false;
    if (waiting) { waiting = false; update(); }
    else if (timer === null) place("answers").ariaBusy = "false";
  }
  function changed() {
    place("answers").ariaBusy = "true";
    clearTimeout(timer);
    timer = setTimeout(() => { timer = null; update(); }, WAIT);
  }
  function describe(answer, how) {
    const parts = [answer.rank_marginals, answer.pairwise, ...answer.expected];
    const drawn = parts.filter((one) => one.draws > 0).length;
    const exact = drawn === 0 ? "All answers are exact" : drawn === parts.length
      ? "All answers are estimates from draws" : "Some answers are exact, others from draws";
    const told = how === "saved" ? "computed by permdist when this file was saved" : how;
    return [`${exact}${told ? `; ${told}` : ""}.`, ...answer.notes].join(" ");
  }
  function say(text, wrong = false) {
    place("status").textContent = text;
    place("status").classList.toggle("wrong", wrong);
  }

  // ---- items ---------------------------------------------------------------------------------
  const stepOf = () => 10 ** Math.round(Math.log10(reach / 60));
  function fit() {
    const largest = Math.max(...setting.scores.map(Math.abs));
    if (largest > reach || largest < reach / 20) reach = Math.max(1e-3, 1.5 * largest);
    if (largest <= 3 && largest > 0.15) reach = 3;
  }
  function row(i) {
    const name = setting.names[i];
    const text = make("input", { value: name, maxLength: data.limits.name, spellcheck: false });
    const label = make("input", { type: "number", min: 0, max: data.limits.label, step: 1,
      value: setting.labels[i] });
    const number = make("input", { type: "number", step: "any", value: setting.scores[i] });
    const slider = make("input", { type: "range", min: -reach, max: reach, step: stepOf(),
      value: setting.scores[i] });
    const mean = make("output", { title: "mean rank" });
    const remove = make("button", { type: "button", className: "remove", textContent: "×" });
    remove.disabled = setting.scores.length <= 2;
    const called = () => {
      text.ariaLabel = `Name of item ${i + 1}`;
      label.ariaLabel = `Label of ${setting.names[i]}`;
      number.ariaLabel = `Score of ${setting.names[i]}, as a number`;
      slider.ariaLabel = `Score of ${setting.names[i]}`;
      remove.ariaLabel = remove.title = `Remove ${setting.names[i]}`;
    };
    called();
    text.addEventListener("input", () => { setting.names[i] = text.value; called(); changed(); });
    label.addEventListener("input", () => {
      setting.labels[i] = label.value === "" ? 0 : Number(label.value);
      changed();
    });
    slider.addEventListener("input", () => {
      setting.scores[i] = Number(slider.value);
      number.value = slider.value;
      changed();
    });
    number.addEventListener("input", () => {
      if (number.value === "" || !number.validity.valid) return;
      setting.scores[i] = Number(number.value);
      slider.value = number.value;
      changed();
    });
    number.addEventListener("change", () => {
      if (Math.abs(setting.scores[i]) <= reach) return;
      fit();
      for (const one of place("rows").querySelectorAll("input[type=range]")) {
        Object.assign(one, { min: -reach, max: reach, step: stepOf() });
      }
      [...place("rows").children].forEach((line, k) => {
        line.querySelector("input[type=range]").value = setting.scores[k];
      });
    });
    remove.addEventListener("click", () => {
      for (const list of [setting.names, setting.labels, setting.scores]) list.splice(i, 1);
      show();
      place("rows").querySelectorAll(".remove")[Math.max(0, i - 1)].focus();
      changed();
    });
    return make("li", {}, text, label, number, remove, slider, mean);
  }
  function add() {
    let number = setting.names.length + 1;
    while (setting.names.includes(`item ${number}`)) number += 1;
    setting.names.push(`item ${number}`);
    setting.labels.push(0);
    setting.scores.push(0);
    show();
    place("rows").lastChild.querySelector("input").focus();
    changed();
  }

  // ---- controls ------------------------------------------------------------------------------
  const isLive = (name) => data.live || port.FAMILIES.includes(name);
  function show() {
    fit();
    const ofModel = family(setting.model);
    place("model").value = setting.model;
    place("model-about").textContent = `${ofModel.about} At most ${ofModel.most} items.`;
    place("noise").value = Math.log2(setting.noise);
    place("ties").value = setting.ties;
    place("ties-field").hidden = setting.model !== "davidson-luce";
    place("measures").value = setting.measures.join(", ");
    place("rows").replaceChildren(...setting.scores.map((_, i) => row(i)));
    place("add").disabled = setting.scores.length >= Math.min(ofModel.most, data.limits.items);
    numbers();
    freeze();
  }
  function numbers() {
    const noise = Number(setting.noise.toPrecision(3));
    place("noise-value").textContent = noise;
    place("noise").setAttribute("aria-valuetext", `${noise}`);
    place("ties-value").textContent = Number(setting.ties.toFixed(2));
  }
  // In a shared file, controls of a model that it cannot compute are switched off.
  function freeze() {
    const frozen = !isLive(setting.model);
    for (const control of place("controls").querySelectorAll("input, button")) {
      if (["reset", "save"].includes(control.id)) continue;
      if (frozen) control.disabled = true;
      else if (control.disabled && !control.matches(".remove, #add")) control.disabled = false;
    }
    place("save").hidden = !data.live;
  }
  function explain() {
    if (data.live) return;
    const live = port.FAMILIES.map((name) => family(name).title).join(", ");
    const note = place("frozen");
    note.replaceChildren(make("strong", { textContent: "A shared file." }), ` It works without permdist \
and without a network. Live, computed by the file itself: ${live}. Plackett-Luce is exact up to ${
      port.SUBSETS} items (measures: ${port.LISTED}); everything else is estimated from ${
      port.DRAWS.toLocaleString("en")} draws, and there is no entropy. Frozen: ${
      isLive(data.setting.model) ? "the answers to the setting as it was saved, which permdist computed"
        : `${family(data.setting.model).title}, with the answers that permdist computed when the file was saved`
    }. “Start over” goes back to them. For more, run permdist explore.`);
    note.hidden = false;
  }
  function prepare() {
    for (const one of data.families) {
      const option = make("option", { value: one.name, textContent: one.title });
      if (!isLive(one.name)) {
        option.textContent += one.name === data.setting.model ? " (frozen)" : " (not in this file)";
        option.disabled = one.name !== data.setting.model;
      }
      place("model").append(option);
    }
    place("controls").addEventListener("submit", (event) => event.preventDefault());
    place("model").addEventListener("change", () => {
      setting.model = place("model").value;
      if (!isLive(setting.model)) setting = copy(data.setting);
      show();
      changed();
    });
    place("noise").addEventListener("input", () => {
      setting.noise = Number((2 ** Number(place("noise").value)).toPrecision(6));
      numbers();
      changed();
    });
    place("ties").addEventListener("input", () => {
      setting.ties = Number(place("ties").value);
      numbers();
      changed();
    });
    place("measures").addEventListener("input", () => {
      const text = place("measures").value;
      // Commas inside brackets are part of a name.
      setting.measures = text.split(/,(?![^[]*\])/).map((one) => one.trim()).filter(Boolean);
      changed();
    });
    place("add").addEventListener("click", add);
    place("again").addEventListener("click", () => { setting.seed += 1; changed(); });
    place("reset").addEventListener("click", () => { setting = copy(start); show(); changed(); });
    place("save").addEventListener("click", save);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", present);
    document.querySelector(".theme").addEventListener("click", present);
    if (data.queries.length) {
      place("query-field").hidden = false;
      place("queries").append(...data.queries.slice(0, 2000).map((value) => make("option", { value })));
      place("query").value = data.query ?? "";
      place("query").addEventListener("change", openQuery);
    }
  }
  function present() {
    const { answer } = latest;
    drawing.all(latest.setting, answer);
    const means = answer.rank_marginals.values.map((row) => row.reduce((sum, p, r) => sum + p * (r + 1), 0));
    place("rows").querySelectorAll("output").forEach((one, i) => {
      one.textContent = i in means ? means[i].toFixed(means[i] < 9.995 ? 2 : 1) : "";
    });
    // For phones, where the answers are below the controls.
    place("brief").textContent = answer.expected.filter((one) => one.value !== null)
      .slice(0, 3).map((one) => `${one.measure} ${one.value.toFixed(3)}`).join("  ·  ");
  }

  async function openQuery() {
    try {
      const found = await post("query", { query: place("query").value });
      start = { ...found.setting, model: setting.model, noise: setting.noise, ties: setting.ties,
        measures: setting.measures };
      place("title").textContent = document.title = found.title;
      place("about").textContent = found.about;
      setting = copy(start);
      show();
      changed();
    } catch (error) { say(error.message, true); }
  }
  async function save() {
    try {
      const { html } = await post("share", { setting, title: place("title").textContent,
        about: place("about").textContent });
      const address = URL.createObjectURL(new Blob([html], { type: "text/html" }));
      const link = make("a", { href: address, download: "permdist-explorer.html" });
      document.body.append(link);
      link.click();
      link.remove();
      setTimeout(() => URL.revokeObjectURL(address), 60000);
      say("Saved as permdist-explorer.html, in the folder of your downloads.");
    } catch (error) { say(error.message, true); }
  }

  document.addEventListener("DOMContentLoaded", () => {
    prepare();
    explain();
    show();
    update();
  });
})();

"""The style sheet and the script of a report, both embedded in the page.

The page can be read without the script, which adds sorting, enlarging and the choice of a theme.
"""

from __future__ import annotations

import base64
import hashlib

_DARK = """
  --ground: #16171a; --raised: #1f2125; --line: #383b41; --shade: #0009;
  --ink: #e4e5e8; --soft: #a8abb2; --accent: #8fbcf0; --warning: #e8b765;
  --first: #23456b; --second: #203549; --third: #1f2b37; --good: #84cf98; --bad: #ff9d94;
  --dim: brightness(0.86);
"""

STYLE = """
:root { color-scheme: light dark;
  --ground: #ffffff; --raised: #f5f5f3; --line: #dcdcd8; --shade: #0002;
  --ink: #1d1e20; --soft: #5a5c62; --accent: #0b559f; --warning: #8a5300;
  --first: #c9e0f8; --second: #dfecf9; --third: #eef4fa; --good: #17682f; --bad: #b0241b;
  --dim: none;
  --mono: ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace; }
@media screen and (prefers-color-scheme: dark) { :root:not([data-theme="light"]) {DARK} }
@media screen {
  :root[data-theme="dark"] {DARK}
  :root[data-theme="dark"] { color-scheme: dark; }
  :root[data-theme="light"] { color-scheme: light; }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0; color: var(--ink); background: var(--ground); overflow-wrap: break-word;
  font: 1rem/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
.page { max-width: 64rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
main, .page > header { min-width: 0; }
a { color: var(--accent); text-underline-offset: 0.15em; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
[hidden] { display: none !important; }
button { font: inherit; color: inherit; background: none; border: 0; padding: 0; cursor: pointer; }

h1 { font-size: clamp(1.6rem, 1.25rem + 1.6vw, 2.3rem); line-height: 1.15; margin: 0;
  font-weight: 650; letter-spacing: -0.02em; text-wrap: balance; padding-right: 6rem; }
.summary { font-size: 1.1rem; line-height: 1.55; color: var(--soft); margin: 0.7rem 0 0; }
h2 { font-size: 1.35rem; line-height: 1.25; font-weight: 620; letter-spacing: -0.01em;
  margin: 3.2rem 0 0.8rem; scroll-margin-top: 1.5rem; text-wrap: balance; }
h2 a { margin-left: 0.4em; font-weight: 400; text-decoration: none; opacity: 0; }
h2 a::before { content: "#"; }
h2:hover a, h2 a:focus-visible { opacity: 1; }
p { margin: 0 0 1rem; }
p, .note { max-width: 44rem; }

.page > header { position: relative; }
.theme { position: absolute; top: 0.1rem; right: 0; background: var(--ground);
  padding: 0.15rem 0.7rem; border: 1px solid var(--line); border-radius: 1rem;
  font-size: 0.85rem; color: var(--soft); }
.theme:hover { color: var(--ink); border-color: var(--soft); }

nav { margin: 1.4rem 0 0; font-size: 0.95rem; }
nav details { border: 1px solid var(--line); border-radius: 8px; }
nav summary { padding: 0.5rem 0.9rem; font-weight: 600; cursor: pointer; }
nav ol { margin: 0; padding: 0 0.9rem 0.6rem; list-style: none; }
nav li a { display: block; padding: 0.3rem 0; line-height: 1.35; text-decoration: none; }
nav li a:hover { text-decoration: underline; }

.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(9rem, 45%), 1fr));
  gap: 0.7rem; margin: 1.5rem 0; }
.facts div { display: flex; flex-direction: column-reverse; justify-content: flex-end;
  background: var(--raised); border-radius: 8px; padding: 0.7rem 0.9rem; min-width: 0; }
.facts dt { font-size: 0.85rem; line-height: 1.35; color: var(--soft); }
.facts dd { margin: 0; font-size: 1.45rem; line-height: 1.3; font-weight: 600;
  letter-spacing: -0.01em; font-variant-numeric: tabular-nums; }

.note { border-left: 3px solid var(--accent); background: var(--raised); margin: 1.2rem 0;
  border-radius: 0 8px 8px 0; padding: 0.6rem 1rem; }
.note strong { color: var(--accent); margin-right: 0.4em; }
.note.warning { border-color: var(--warning); }
.note.warning strong { color: var(--warning); }

figure { margin: 1.5rem 0 2rem; }
figcaption, .legend { font-size: 0.9rem; line-height: 1.45; color: var(--soft); max-width: 44rem; }
figure.table figcaption { margin-bottom: 0.5rem; }
figure.picture figcaption { margin-top: 0.5rem; }

.scroll { overflow: auto; max-height: 88vh; max-height: 88svh; overscroll-behavior-x: contain;
  background:
    linear-gradient(to left, var(--ground) 0.7rem, transparent) 100% 0 / 3rem 100% no-repeat local,
    linear-gradient(to top, var(--ground) 0.7rem, transparent) 0 100% / 100% 3rem no-repeat local,
    linear-gradient(to left, var(--shade), transparent) 100% 0 / 0.6rem 100% no-repeat scroll,
    linear-gradient(to top, var(--shade), transparent) 0 100% / 100% 0.6rem no-repeat scroll; }
table { border-collapse: separate; border-spacing: 0; min-width: 100%; font-size: 0.9rem;
  line-height: 1.4; font-variant-numeric: tabular-nums; }
th, td { padding: 0.42rem 0.75rem 0.42rem 0.5rem; text-align: right; white-space: nowrap;
  vertical-align: top; border-bottom: 1px solid var(--line); }
th { position: sticky; top: 0; z-index: 2; background: var(--ground); color: var(--soft);
  font-weight: 600; font-size: 0.88rem; vertical-align: bottom; border-bottom-color: var(--soft);
  white-space: normal; overflow-wrap: normal; }
th.word, td.word, th:first-child, td:first-child { text-align: left; }
td.word:not(:first-child):not(.long) { white-space: normal; min-width: 7rem; }
th.long, td.long { white-space: normal; min-width: 15rem; }
th:first-child.long, td:first-child.long { max-width: 24rem; }
th:first-child, td:first-child { position: sticky; left: 0; z-index: 1;
  background: var(--ground); }
th:first-child { z-index: 3; }
tbody tr:last-child td { border-bottom: 0; }
tbody tr:hover td { background: var(--raised); }
th button { position: relative; padding-right: 1.1em; font-weight: inherit; text-align: inherit;
  white-space: inherit; }
th button:hover, th[aria-sort] button { color: var(--ink); }
th button::after { content: "\\2195" / ""; position: absolute; right: 0; bottom: 0; width: 0.9em;
  text-align: center; opacity: 0.45; font-weight: 400; }
th[aria-sort] button::after { opacity: 1; }
th[aria-sort="ascending"] button::after { content: "\\2191" / ""; }
th[aria-sort="descending"] button::after { content: "\\2193" / ""; }
td[title] { cursor: help; }
tr:hover td[title] { text-decoration: underline dotted 1px var(--soft);
  text-underline-offset: 0.25em; }

tbody tr td.first, .legend .first { background: var(--first); font-weight: 650; }
tbody tr td.second, .legend .second { background: var(--second); }
tbody tr td.third, .legend .third { background: var(--third); }
.worse { color: var(--soft); }
.null { color: var(--bad); }
.reference { color: var(--soft); font-style: italic; }
.good { color: var(--good); }
.bad { color: var(--bad); }
.mark { position: relative; }
.mark::after { position: absolute; right: 0.1rem; top: 0.45rem; width: 0.7rem; line-height: 1;
  font-size: 0.7rem; font-weight: 400; text-align: center; }
.word.mark::after, td.mark:first-child::after, .legend .mark::after { position: static;
  display: inline-block; margin-left: 0.15rem; vertical-align: 0.35em; line-height: 1; }
.first::after { content: "\\2460"; content: "\\2460" / "first"; }
.second::after { content: "\\2461"; content: "\\2461" / "second"; }
.third::after { content: "\\2462"; content: "\\2462" / "third"; }
.worse::after { content: "\\25BE"; content: "\\25BE" / "worse"; }
.null::after { content: "\\2205"; content: "\\2205" / "null"; }
.reference::after { content: "\\2218"; content: "\\2218" / "reference"; }
.good::after { content: "\\2713"; content: "\\2713" / "good"; }
.bad::after { content: "\\2717"; content: "\\2717" / "bad"; }
.legend { display: flex; flex-wrap: wrap; gap: 0.3rem 0.5rem; margin: 0.6rem 0 0; }
.legend .mark { padding: 0 0.45rem; border-radius: 4px; }
.legend .first, .legend .second, .legend .third { color: var(--ink); }
.tip { position: fixed; z-index: 5; max-width: min(22rem, 100vw - 1rem); padding: 0.4rem 0.7rem;
  color: var(--ground); background: var(--ink); border-radius: 6px; font-size: 0.88rem;
  line-height: 1.4; pointer-events: none; }

pre { overflow: auto; max-height: 34rem; margin: 1.2rem 0; padding: 0.8rem 1rem; tab-size: 4;
  background: var(--raised); border-radius: 8px; font: 0.85rem/1.5 var(--mono); }
img { display: block; max-width: 100%; height: auto; background: #fff; }
.picture .frame { display: inline-block; max-width: 100%; padding: 0.5rem; vertical-align: top;
  background: #fff; border: 1px solid var(--line); border-radius: 8px; filter: var(--dim); }
.picture button { display: block; max-width: 100%; cursor: zoom-in; }
dialog { border: 0; padding: 0; margin: auto; width: 100vw; height: 100vh; height: 100dvh;
  max-width: none; max-height: none; color: var(--ink); background: var(--ground); overflow: auto; }
dialog[open] { display: grid; grid-template-rows: auto minmax(0, 1fr) auto; }
dialog div { overflow: auto; display: grid; padding: 0 1rem; cursor: zoom-out; }
dialog img { margin: auto; max-width: none; width: 42rem; border-radius: 8px; filter: var(--dim); }
dialog p { margin: 0; padding: 0.6rem 1rem 0.9rem; max-width: none; text-align: center;
  color: var(--soft); font-size: 0.9rem; }
dialog button { justify-self: end; margin: 0.7rem 1rem; padding: 0.15rem 0.8rem;
  border: 1px solid var(--line); border-radius: 1rem; font-size: 0.9rem; }
@media (min-width: 44rem) {
  dialog img { width: auto; max-width: 100%; max-height: calc(100vh - 7.5rem); }
}

.provenance { margin: 0; font-size: 0.93rem; }
.provenance dt { color: var(--soft); }
.provenance dd { margin: 0 0 0.7rem; overflow-wrap: anywhere; }
footer { margin-top: 3.5rem; padding-top: 1rem; border-top: 1px solid var(--line);
  color: var(--soft); font-size: 0.85rem; }

@media (max-width: 43.99rem) {
  table { font-size: 0.88rem; }
  th, td { padding: 0.4rem 0.75rem 0.4rem 0.55rem; }
  th:first-child, td:first-child { max-width: 40vw; white-space: normal; overflow-wrap: anywhere;
    min-width: min(var(--names) + 1.3rem, 40vw); border-right: 1px solid var(--line); }
  th.long:not(:first-child), td.long:not(:first-child) { min-width: 12rem; }
  .mark::after { right: 0; }
  .picture .frame { padding: 0.3rem; }
}
@media (min-width: 44rem) {
  .provenance { display: grid; grid-template-columns: max-content 1fr; gap: 0.35rem 1.6rem; }
  .provenance dd { margin: 0; }
}
@media screen and (min-width: 68rem) {
  .page { max-width: 84rem; padding: 3rem 2rem 6rem; }
  .page.listed { display: grid; grid-template-columns: 11.5rem minmax(0, 1fr); column-gap: 2.5rem;
    grid-template-rows: auto 1fr; }
  .page.listed > header, .page.listed > main { grid-column: 2; }
  nav { grid-column: 1; grid-row: 1 / span 2; margin: 0; font-size: 0.9rem; }
  nav details { position: sticky; top: 3rem; max-height: calc(100vh - 5rem); overflow: auto;
    border: 0; border-radius: 0; }
  nav details::details-content { content-visibility: visible; block-size: auto; }
  nav summary { list-style: none; pointer-events: none; padding: 0.3rem 0 0.5rem 0.8rem;
    font-size: 0.85rem; color: var(--soft); }
  nav summary::-webkit-details-marker { display: none; }
  nav ol { padding: 0; }
  nav li a { color: var(--soft); padding: 0.28rem 0.8rem; border-left: 2px solid var(--line); }
  nav li a:hover { color: var(--ink); text-decoration: none; }
  nav li a[aria-current] { color: var(--ink); border-left-color: var(--accent); }
}
@media print {
  .page { max-width: none; padding: 0; }
  nav, .theme, .tip, .hinted, dialog, h2 a { display: none !important; }
  body { font-size: 10pt; }
  h2 { break-after: avoid; }
  .scroll, pre { overflow: visible; max-height: none; background: none; }
  pre { white-space: pre-wrap; border: 1px solid var(--line); }
  table, th { font-size: 8pt; }
  th, td { position: relative !important; padding: 0.2rem 0.7rem; white-space: normal;
    print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  th.long, td.long, td.word:not(:first-child) { min-width: 0; }
  th button::after { display: none; }
  .mark::after { top: 0.25rem; font-size: 6pt; }
  tr, figure.picture, .facts div, .note { break-inside: avoid; }
}
""".replace("{DARK}", "{" + _DARK + "}")

SCRIPT = """
(() => {
  "use strict";
  const root = document.documentElement;
  const key = "permdist-report-theme";
  const recall = () => { try { return localStorage.getItem(key); } catch { return null; } };
  const keep = (theme) => { try { localStorage.setItem(key, theme); } catch { /* not allowed */ } };
  const all = (selector) => [...document.querySelectorAll(selector)];
  const make = (tag, facts, ...children) => {
    const element = Object.assign(document.createElement(tag), facts);
    element.append(...children);
    return element;
  };
  const kept = recall();
  if (kept === "light" || kept === "dark") root.dataset.theme = kept;  // before anything is drawn

  function offerThemes() {
    const button = document.querySelector(".theme");
    const preferred = matchMedia("(prefers-color-scheme: dark)");
    const isDark = () => (root.dataset.theme ?? (preferred.matches ? "dark" : "light")) === "dark";
    const name = () => { button.textContent = isDark() ? "Light theme" : "Dark theme"; };
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      keep(root.dataset.theme);
      name();
    });
    preferred.addEventListener("change", name);
    name();
    button.hidden = false;
  }

  function listContents() {
    const details = document.querySelector("nav details");
    if (!details) return;
    const wide = matchMedia("(min-width: 68rem)");
    const fit = () => { details.open = wide.matches; };
    wide.addEventListener("change", fit);
    fit();
    const links = all("nav li a");
    const headings = all("h2");
    for (const link of links) {
      link.addEventListener("click", () => { if (!wide.matches) details.open = false; });
    }
    let asked = false;
    const follow = () => {
      asked = false;
      const atEnd = innerHeight + scrollY >= root.scrollHeight - 2 && scrollY > 0;
      const passed = headings.filter((h) => h.getBoundingClientRect().top < innerHeight / 3);
      const current = atEnd ? headings.length - 1 : passed.length - 1;
      links.forEach((link, i) => {
        if (i === current) link.setAttribute("aria-current", "location");
        else link.removeAttribute("aria-current");
      });
    };
    const ask = () => { if (!asked) { asked = true; requestAnimationFrame(follow); } };
    addEventListener("scroll", ask, { passive: true });
    addEventListener("resize", ask);
    follow();
  }

  const words = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

  function sortBy(table, column, isNumber, sign) {
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => {
      const cell = row.cells[column];
      const text = cell.textContent.trim();
      const value = cell.dataset.value ?? text;
      const key = isNumber ? (value === "" ? NaN : Number(value)) : text;
      return { row, key, missing: isNumber ? Number.isNaN(key) : key === "" };
    });
    rows.sort((a, b) => {
      if (a.missing || b.missing) return a.missing - b.missing;
      if (isNumber) return a.key === b.key ? 0 : sign * (a.key < b.key ? -1 : 1);
      return sign * words.compare(a.key, b.key);
    });
    body.append(...rows.map(({ row }) => row));
  }

  function sortOnClick(table) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const isNumber = head.dataset.kind === "number";
      const button = make("button", { type: "button" }, ...head.childNodes);
      if (!button.textContent.trim()) button.ariaLabel = `Column ${column + 1}`;
      button.addEventListener("click", () => {
        const now = head.getAttribute("aria-sort");
        const falls = now ? now === "ascending" : isNumber;
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", falls ? "descending" : "ascending");
        sortBy(table, column, isNumber, falls ? -1 : 1);
      });
      head.append(button);
    });
  }

  function enlargeOnClick() {
    const images = all(".picture img");
    if (!images.length) return;
    const large = make("img");
    const caption = make("p");
    const close = make("button", { type: "button", textContent: "Close" });
    const dialog = make("dialog", { ariaLabel: "Enlarged picture" },
      close, make("div", {}, large), caption);
    dialog.addEventListener("click", () => dialog.close());
    document.body.append(dialog);
    for (const image of images) {
      const button = make("button", { type: "button", ariaLabel: `Enlarge: ${image.alt}` });
      image.replaceWith(button);
      button.append(image);
      button.addEventListener("click", () => {
        Object.assign(large, { src: image.src, alt: image.alt });
        caption.textContent = image.closest("figure").querySelector("figcaption").textContent;
        dialog.showModal();
      });
    }
  }

  // A tooltip needs a mouse; a tap on the cell shows the same words.
  function hintOnClick() {
    const tip = make("div", { className: "tip", hidden: true, role: "status" });
    document.body.append(tip);
    const hide = () => { tip.hidden = true; };
    document.addEventListener("click", (event) => {
      const cell = event.target.closest("td[title]");
      hide();
      if (!cell) return;
      tip.textContent = cell.title;
      tip.hidden = false;
      const box = cell.getBoundingClientRect();
      const below = box.bottom + 4;
      const fits = below + tip.offsetHeight < innerHeight;
      tip.style.left = `${Math.max(8, Math.min(box.left, innerWidth - tip.offsetWidth - 8))}px`;
      tip.style.top = `${fits ? below : box.top - tip.offsetHeight - 4}px`;
    });
    document.addEventListener("scroll", hide, { capture: true, passive: true });
    document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
  }

  document.addEventListener("DOMContentLoaded", () => {
    offerThemes();
    listContents();
    all("table[data-sortable]").forEach(sortOnClick);
    enlargeOnClick();
    hintOnClick();
  });
})();
"""

# The page may run this script and show embedded images, and load nothing else.
POLICY = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-"
    + base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    + "'"
)

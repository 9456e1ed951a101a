// Tables that sort: the moves, and the changes of a diff.

import { chipOf, link } from "./chips.js";
import { el, fill, prose } from "./dom.js";
import { bytes, count, plural, time } from "./words.js";

const FATES = { goes: "goes", folds: "goes (constant)", rewritten: "goes (rewritten)", stays: "stays" };

/** Rows that a table has at first; more on demand. */
const PAGE = 50;

/** A table whose columns are `{ title, number, of, show }`: `of` gives what a row is sorted by, `show` its cell. */
class Sorted {
  constructor(caption, columns, rows, by) {
    Object.assign(this, { columns, rows, all: rows, by, down: true, limit: PAGE });
    this.head = el("tr");
    this.body = el("tbody");
    this.more = el("p", { class: "more" });
    const table = el("table", {}, el("caption", { text: caption }), el("thead", {}, this.head), this.body);
    this.box = el("div", {}, el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, table), this.more);
    this.draw();
    // Paper has no button for more.
    addEventListener("beforeprint", () => this.#all());
  }

  sort(at) {
    this.down = this.by === at ? !this.down : Boolean(this.columns[at].number);
    this.by = at;
    this.draw();
    this.head.children[at].querySelector("button").focus();
  }

  filter(keep) {
    this.rows = this.all.filter(keep);
    this.draw();
  }

  draw() {
    const { of, number } = this.columns[this.by];
    const sign = this.down ? -1 : 1;
    const compare = number ? (a, b) => (of(a) ?? -1) - (of(b) ?? -1) : (a, b) => String(of(a)).localeCompare(String(of(b)));
    const rows = [...this.rows].sort((a, b) => sign * compare(a, b));
    fill(this.head, this.columns.map((column, at) => this.#title(column, at)));
    fill(this.body, rows.slice(0, this.limit).map((row) => el("tr", {}, this.columns.map((column, at) => cell(column, row, at)))));
    const hidden = rows.length - this.limit;
    fill(this.more, hidden > 0 ? el("button", { type: "button", onclick: () => this.#all() }, `Show ${plural(hidden, "more row")}`) : rows.length ? null : el("span", { class: "empty", text: "Nothing fits." }));
  }

  #all() {
    if (this.limit >= this.rows.length) return;
    this.limit = Infinity;
    this.draw();
  }

  #title(column, at) {
    const sorted = at === this.by ? (this.down ? "descending" : "ascending") : "none";
    const mark = at === this.by ? (this.down ? "▼" : "▲") : "";
    return el("th", { scope: "col", "aria-sort": sorted, class: column.number ? "number" : null },
      el("button", { type: "button", class: "sort", onclick: () => this.sort(at) }, column.title, el("span", { "aria-hidden": "true", class: "arrow", text: mark })));
  }
}

function cell(column, row, at) {
  const shown = column.show(row);
  return el(at === 0 ? "th" : "td", { class: column.number ? "number" : null, scope: at === 0 ? "row" : null }, shown);
}

function caption(report) {
  const here = (number) => report.moves.filter((m) => m.graph === number).length;
  if (report.graphs.length < 2) return plural(here(0), "move");
  if (report.kind === "audit") return report.graphs.map((graph) => `${plural(here(graph.number), "move")} in ${graph.title}`).join(", ");
  return `${plural(here(0), "move")} before, ${count(here(1))} left after`;
}

export function movesTable(report, choose) {
  const section = el("section", { id: "moves", "aria-labelledby": "moves-title", tabindex: "-1" });
  section.append(el("h2", { id: "moves-title", text: "All moves" }));
  if (!report.moves.length) {
    section.append(el("p", { class: "empty", text: report.figures.length ? "Nothing moves data in this model." : "None is known." }));
    return section;
  }
  const columns = [
    { title: "Value", of: (m) => m.value, show: (m) => link(m.value, report.graphs[m.graph], m.node === null ? null : report.graphs[m.graph].nodes[m.node], choose) },
    { title: "Where", of: (m) => report.graphs[m.graph].title + m.path, show: (m) => report.graphs[m.graph].title + (m.path ? `, in ${m.path}` : "") },
    { title: "What becomes of it", of: (m) => FATES[m.fate], show: (m) => el("span", { class: `fate ${m.fate}`, text: FATES[m.fate] }) },
    { title: "From → to", of: (m) => `${m.from} ${m.to}`, show: (m) => el("span", { class: "fromto" }, chipOf(report, m.from), " → ", chipOf(report, m.to)) },
    { title: "Bytes", number: true, of: (m) => m.bytes, show: (m) => bytes(m.bytes) },
    { title: "Time", number: true, of: (m) => m.cost_ns, show: (m) => (m.cost_ns === null ? "–" : time(m.cost_ns)) },
    { title: "Why", of: (m) => m.why, show: (m) => prose(m.why) },
  ].filter((column) => column.title !== "Where" || report.graphs.length > 1 || report.moves.some((m) => m.path));
  const table = new Sorted(caption(report), columns, report.moves, columns.findIndex((c) => c.title === "Bytes"));
  section.append(filterOf(table, "Find moves", (m, text) => [m.value, m.producer, m.from, m.to, m.why, ...m.readers].some((t) => t.toLowerCase().includes(text))), table.box);
  return section;
}

export function changesTable(report) {
  const section = el("section", { id: "moves", "aria-labelledby": "moves-title", tabindex: "-1" });
  section.append(el("h2", { id: "moves-title", text: "All changes" }));
  if (!report.changes.length) {
    section.append(el("p", { class: "empty", text: "Nothing that is compared differs." }));
    return section;
  }
  const columns = [
    { title: "Name", of: (c) => c.name, show: (c) => el("span", { class: "mono", text: c.name }) },
    { title: "Kind", of: (c) => c.section, show: (c) => c.section },
    { title: "Change", of: (c) => c.how, show: (c) => c.how },
    { title: "What it is", of: (c) => c.what, show: (c) => c.what },
    { title: "What differs", of: (c) => c.details.join(), show: (c) => c.details.map((text) => el("div", { text })) },
  ];
  const table = new Sorted(plural(report.changes.length, "change"), columns, report.changes, 1);
  section.append(filterOf(table, "Find changes", (c, text) => [c.name, c.what, c.section, ...c.details].some((t) => t.toLowerCase().includes(text))), table.box);
  return section;
}

function filterOf(table, label, fits) {
  const input = el("input", { type: "search", id: "filter", oninput: () => {
    const text = input.value.trim().toLowerCase();
    table.filter((row) => !text || fits(row, text));
  } });
  return el("p", { class: "filter" }, el("label", { for: "filter", text: `${label} ` }), input);
}

// Figures for people.

const grouped = new Intl.NumberFormat("en-US");

/** Three digits that count, of a number below 10,000. */
function digits(n) {
  if (n >= 100) return grouped.format(Math.round(n));
  return n >= 10 ? n.toFixed(1) : n.toFixed(2);
}

export function count(n) {
  return grouped.format(n);
}

export function bytes(n) {
  if (n < 1000) return `${n} B`;
  if (n < 1e6) return `${digits(n / 1e3)} kB`;
  return n < 1e9 ? `${digits(n / 1e6)} MB` : `${digits(n / 1e9)} GB`;
}

export function time(ns) {
  if (ns < 1000) return `${ns} ns`;
  if (ns < 1e6) return `${digits(ns / 1e3)} us`;
  return ns < 1e9 ? `${digits(ns / 1e6)} ms` : `${digits(ns / 1e9)} s`;
}

/** A figure in its unit: `count`, `bytes` or `ns`. */
export function figure(unit, n) {
  if (n === null || n === undefined) return "not known";
  return { count, bytes, ns: time }[unit](n);
}

export function signed(show, n) {
  return `${n < 0 ? "−" : "+"}${show(Math.abs(n))}`;
}

/** How much less, or more, in percent; nothing where that says nothing. */
export function change(before, after) {
  if (!before || after === null || after === undefined || before === after) return "";
  const percent = ((after - before) * 100) / before;
  const text = Math.abs(percent) < 10 ? Math.abs(percent).toFixed(1) : Math.abs(percent).toFixed(0);
  return percent < 0 ? `${text} % less` : `${text} % more`;
}

export function plural(n, one, many = `${one}s`) {
  return `${count(n)} ${n === 1 ? one : many}`;
}

/** The end of a long name, which says more than its beginning. */
export function short(name, most = 28) {
  return name.length <= most ? name : `…${name.slice(-most + 1)}`;
}

// Makes elements. Texts of a model are put in as text and never as markup.

/** An element with attributes and children. A child is an element or a text; `null` is left out. */
export function el(tag, attrs = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attrs)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "text") made.textContent = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) made.append(child);
  return made;
}

/** A name that may be broken after a slash. */
export function name(text) {
  return text.split(/(?<=\/)/).flatMap((part, at) => (at ? [document.createElement("wbr"), part] : [part]));
}

/** A text in which names stand between backticks, with these as code. */
export function prose(text) {
  return text.split("`").map((part, at) => (at % 2 ? el("code", {}, name(part)) : part));
}

/** Empties an element and fills it again. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined));
}

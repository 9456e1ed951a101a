// Light, dark, or as the system has it.

const NAMES = { auto: "Colours: system", light: "Colours: light", dark: "Colours: dark" };
const NEXT = { auto: "light", light: "dark", dark: "auto" };

/**
 * Makes the button of the header change the colours; `changed` is called after each change. Gives a function that makes the page light,
 * as paper is, until it is printed.
 */
export function theme(button, changed) {
  const root = document.documentElement;
  const show = (name) => {
    root.dataset.theme = name;
    button.textContent = NAMES[name];
    changed();
  };
  button.addEventListener("click", () => show(NEXT[root.dataset.theme]));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
  let chosen = null;
  const paper = () => {
    chosen ??= root.dataset.theme;
    root.dataset.theme = "light";
    changed();
  };
  addEventListener("beforeprint", paper);
  addEventListener("afterprint", () => {
    show(chosen ?? root.dataset.theme);
    chosen = null;
  });
  show("auto");
  return paper;
}

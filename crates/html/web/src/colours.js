// What the canvas is drawn with: the page's CSS variables, so that light and dark have one place.

/** Reads the colours as they are now. */
export function colours() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    ink: read("ink"),
    soft: read("soft"),
    card: read("card"),
    line: read("line"),
    move: read("move"),
    moveInk: read("move-ink"),
    gone: read("gone"),
    accent: read("accent"),
    fold: read("fold"),
    layouts: Array.from({ length: 9 }, (_, n) => read(`layout-${n}`)),
  };
}

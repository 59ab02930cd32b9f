// Colours that people with any colour vision tell apart (Okabe and Ito), and the page's own, which
// page.css has for light and for dark.

const PALETTE = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442"];
const SCALE_LIGHT = [[239, 243, 248], [158, 202, 225], [66, 146, 198], [8, 81, 156], [4, 36, 84]];
const SCALE_DARK = [[38, 43, 50], [27, 74, 120], [40, 124, 190], [120, 184, 230], [226, 240, 252]];

const given = new Map(); // gang -> index; a gang has its colour for as long as the page is open

/** The colour of a gang: of the next in the palette when it is seen first. */
export function colourOf(key) {
  if (!given.has(key)) given.set(key, given.size % PALETTE.length);
  return PALETTE[given.get(key)];
}

const isDark = matchMedia("(prefers-color-scheme: dark)");
export const onScheme = (listener) => isDark.addEventListener("change", listener);

/** The page's colours by name, as they are now. */
export function theme() {
  const style = getComputedStyle(document.documentElement);
  const named = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    text: named("text"), quiet: named("quiet"), page: named("page"), box: named("box"), outer: named("outer"),
    line: named("line"), cell: named("cell"), other: named("other"), closed: named("closed"), focus: named("focus"),
  };
}

/** The colour of a share from 0 to 1: the more is taken, the further from the page's own. */
export function shade(share) {
  const scale = isDark.matches ? SCALE_DARK : SCALE_LIGHT;
  const place = Math.min(1, Math.max(0, share)) * (scale.length - 1);
  const low = Math.min(Math.floor(place), scale.length - 2), part = place - low;
  return `rgb(${scale[low].map((each, at) => Math.round(each + (scale[low + 1][at] - each) * part)).join(" ")})`;
}

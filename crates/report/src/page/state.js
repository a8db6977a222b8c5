// State of the view. All of it except the crosshair is kept in the address, so that a link shows the same view.

const DEFAULTS = {
  section: "", theme: "auto", x: "step", log: false, smooth: 0.6, share: false, all: false,
  run: "", kind: "", step: "", sort: "logged", tint: "advantage", find: "",
};
const state = { ...DEFAULTS, hidden: new Set(), range: null, cursor: null };
const listeners = { view: [], cursor: [], samples: [], theme: [] };
let runs = [];

/** A run without times has no position on a time axis. */
const placeable = (run) => state.x !== "time" || run.has("timing_s/step");
const visibleRuns = () => runs.filter((run) => !state.hidden.has(run.key) && placeable(run));
const listen = (topic, listener) => listeners[topic].push(listener);

/** Changes the state, keeps it in the address and notifies the listeners of `topic`. */
function change(topic, values) {
  Object.assign(state, values);
  if (topic !== "cursor") remember();
  for (const listener of listeners[topic] || []) listener();
}

function remember() {
  const parts = state.section ? [state.section] : [];
  for (const [name, normal] of Object.entries(DEFAULTS)) {
    if (name !== "section" && state[name] !== normal) parts.push(`${name}=${encodeURIComponent(Number(state[name]) === state[name] ? state[name] : String(state[name]))}`);
  }
  if (state.hidden.size) parts.push(`hide=${[...state.hidden].map(encodeURIComponent).join(",")}`);
  if (state.range) parts.push(`range=${state.range.map((x) => +x.toPrecision(7)).join(",")}`);
  const hash = parts.length ? `#${parts.join("&")}` : "#";
  if (hash === (location.hash || "#")) return;
  history.replaceState(null, "", hash);
}

/** Reads the state from the address; invalid values keep their defaults. */
function recall() {
  Object.assign(state, DEFAULTS, { hidden: new Set(), range: null });
  for (const part of location.hash.slice(1).split("&").filter(Boolean)) {
    const cut = part.indexOf("=");
    if (cut < 0) { state.section = decoded(part); continue; }
    const name = part.slice(0, cut), value = part.slice(cut + 1);
    if (name === "hide") state.hidden = new Set(value.split(",").map(decoded));
    else if (name === "range") {
      const [from, to] = value.split(",").map(Number);
      if (to > from) state.range = [from, to];
    } else if (Object.hasOwn(DEFAULTS, name)) {
      const kind = typeof DEFAULTS[name];
      state[name] = kind === "boolean" ? value === "true" : kind === "number" ? Math.min(0.99, Math.max(0, Number(value) || 0)) : decoded(value);
    }
  }
}

function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

/** "light" or "dark", from the user's choice or the system; the page's style follows it. */
const darkSystem = matchMedia("(prefers-color-scheme: dark)");
function applyTheme(theme = state.theme) {
  document.documentElement.dataset.theme = theme === "auto" ? (darkSystem.matches ? "dark" : "light") : theme;
  colours.clear();
  change("theme", {});
}

/** Values of the style's custom properties, for the canvases. */
const colours = new Map();
function colour(name) {
  if (!colours.has(name)) colours.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
  return colours.get(name);
}
const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3], [14, 4], [5, 2, 1, 2, 1, 2]];
const runColour = (run) => colour(`run-${run.index % 6}`);

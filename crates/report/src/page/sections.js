// Sections of charts. An existing chart stays and is only redrawn, so that live data does not lose the focus.

const keptPlots = new Map();

/** Returns the chart of a key; `make` creates it if it does not exist. */
function kept(key, make) {
  if (!keptPlots.has(key)) keptPlots.set(key, make());
  const plot = keptPlots.get(key);
  plot.touch();
  return plot.element;
}

/** Puts elements into a grid. Existing ones are not moved, since a moved chart loses the focus. */
function arrange(grid, elements) {
  const wanted = new Set(elements);
  for (const child of [...grid.children]) if (!wanted.has(child)) child.remove();
  elements.forEach((element, i) => { if (grid.children[i] !== element) grid.insertBefore(element, grid.children[i] ?? null); });
}

/** A section with a grid of charts, created once. `constants` are the texts of series that need no chart. */
function gridSection(id, title, elements, { tools = [], constants = [] } = {}) {
  const section = byId(id);
  if (!elements.length && !constants.length) { section.hidden = true; return; }
  if (!section.querySelector(".grid")) {
    fill(id, title, tools.length ? h("div", { class: "tools" }, tools) : null, h("div", { class: "grid" }), h("p", { class: "hint constant" }));
  }
  section.hidden = false;
  arrange(section.querySelector(".grid"), elements);
  const line = section.querySelector(".constant");
  line.hidden = !constants.length;
  line.textContent = `Constant: ${constants.join(", ")}. All other series below have their charts.`;
}

/** Removes the entries whose series are constant, and returns a text for each. `namesOf` is a function of an entry. */
function takeConstants(entries, namesOf, titleOf) {
  const constants = [];
  for (let i = entries.length - 1; i >= 0; i--) {
    const value = entries[i].always ? undefined : constantValue(runs, namesOf(entries[i]));
    if (value === undefined) continue;
    constants.unshift(`${titleOf(entries[i])} ${format(value)}`);
    entries.splice(i, 1);
  }
  return constants;
}

const drawnAbove = new Set();

function renderCurves() {
  drawnAbove.clear();
  const drawn = ({ names, bands }) => runs.map((run) => nameOf(run, names)).filter(Boolean).flatMap((name) => [name, ...(bands?.[name] || [])]);
  const curves = CURVES.filter(({ names }) => runs.some((run) => nameOf(run, names)));
  const constants = takeConstants(curves, drawn, ({ title }) => title);
  const elements = curves.map((curve) => {
    drawn(curve).forEach((name) => drawnAbove.add(name));
    return kept(`curve ${curve.title}`, () => new Lines(curve));
  });
  gridSection("curves", "Curves", elements, { constants });
  if (elements.length && !byId("help")) byId("curves-title").after(h("p", { class: "hint", id: "help", text: "Drag to zoom, double-click or Escape to reset. On a focused chart: arrow keys, + and −." }));
}

function renderValidation() {
  const best = runs.map(validationMetric).filter(Boolean);
  const names = allNames(runs).filter(isValidation).sort((a, b) => best.includes(b) - best.includes(a) || b.startsWith("val-core/") - a.startsWith("val-core/"));
  const charts = names.map((name) => ({ name, always: name.startsWith("val-core/") || name === "val/loss" }));
  const constants = takeConstants(charts, ({ name }) => [name], ({ name }) => name);
  charts.forEach(({ name }) => drawnAbove.add(name));
  gridSection("validation", "Validation", charts.map(({ name }) => kept(`validation ${name}`, () => new Lines({ title: name, names: [name] }))), { constants });
}

function renderTiming() {
  for (const run of runs) run.phases = null;
  const timed = runs.filter((run) => phasesOf(run).list.length);
  for (const name of allNames(runs)) if (isPhase(name)) drawnAbove.add(name);
  const greatest = () => Math.max(0, ...visibleRuns().filter((run) => phasesOf(run).list.length).map((run) => {
    const { list } = phasesOf(run);
    let most = 0;
    const totals = Array.from(run.steps, (_, i) => list.reduce((sum, { values }) => sum + values[i], 0)).sort((a, b) => a - b);
    if (totals.length) most = totals[Math.floor((totals.length - 1) * 0.99)];
    return most;
  }));
  const elements = timed.map((run) => {
    const element = kept(`timing ${run.key}`, () => new Areas(run, greatest, runs.length > 1 ? run.name : "Time per step"));
    keptPlots.get(`timing ${run.key}`).run = run;
    element.hidden = state.hidden.has(run.key);
    return element;
  });
  const height = segmented("Height", [["time", "Seconds"], ["share", "Share"]], state.share ? "share" : "time", (kind) => change("view", { share: kind === "share" }));
  gridSection("timing", "Where the time goes", elements, { tools: [height] });
  byId("timing").querySelector(".grid")?.classList.toggle("single", timed.length === 1);
}

// All other series, by the first part of their names.
let seriesFind = "";
const openGroups = new Set();

function renderSeries() {
  const names = allNames(runs);
  const section = byId("series");
  if (!names.some((name) => !drawnAbove.has(name))) { section.hidden = true; return; }
  if (!byId("groups")) {
    const box = searchBox("Search all series", seriesFind, (text) => { seriesFind = text; listGroups(); });
    fill("series", "All other series", h("div", { class: "tools" }, box, h("p", { class: "hint", id: "series-note", role: "status" })), h("div", { id: "groups" }));
  }
  listGroups();
}

/** Closed groups hold no charts. A search finds series of the sections above too. */
function listGroups() {
  const names = allNames(runs).filter((name) => (seriesFind ? name.toLowerCase().includes(seriesFind) : !drawnAbove.has(name)));
  const groups = new Map();
  for (const name of names) {
    const prefix = name.includes("/") ? name.slice(0, name.indexOf("/")) : "no prefix";
    groups.set(prefix, [...(groups.get(prefix) || []), name]);
  }
  byId("series-note").textContent = `${names.length} series${seriesFind ? " found" : ` in ${groups.size} groups`}`;
  const searching = seriesFind !== "";
  const wanted = new Set();
  const elements = [...groups].map(([prefix, members]) => {
    const id = `group-${prefix}`;
    let details = byId(id);
    if (!details) {
      details = h("details", { class: "group", id }, h("summary", {}, h("h3", { text: prefix }), h("span", { class: "hint count" })), h("div", { class: "grid small" }));
      details.addEventListener("toggle", () => {
        if (!details.searching) details.open ? openGroups.add(prefix) : openGroups.delete(prefix);
        if (details.open) details.fillIn();
      });
    }
    details.querySelector(".count").textContent = String(members.length);
    details.searching = searching;
    details.open = searching || openGroups.has(prefix);
    details.fillIn = () => arrange(details.querySelector(".grid"), members.map((name) => kept(`series ${name}`, () => new Lines({ title: name, names: [name], height: 140, heading: "h4" }))));
    if (details.open) { details.fillIn(); members.forEach((name) => wanted.add(`series ${name}`)); }
    return details;
  });
  arrange(byId("groups"), elements);
}

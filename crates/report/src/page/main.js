// Starts the page: toolbar, navigation, address, live data.

let generated = 0;

const SECTIONS = [["compare", "Runs"], ["glance", "Glance"], ["curves", "Curves"], ["validation", "Validation"], ["timing", "Time"], ["samples", "Samples"], ["series", "All series"], ["config", "Config"]];

function renderNav() {
  const there = SECTIONS.filter(([id]) => !byId(id).hidden);
  if (there.length !== byId("nav").children.length) byId("nav").replaceChildren(...there.map(([id, text]) => h("a", { href: `#${id}`, "data-section": id, text })));
}

/** Links to sections keep the rest of the address. */
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("[data-section]");
  if (!link) return;
  event.preventDefault();
  change("section", { section: link.dataset.section });
  showSection(true);
});

function showSection(focus) {
  const section = state.section && byId(state.section);
  if (!section || section.hidden) return;
  section.scrollIntoView({ block: "start", behavior: "instant" });
  if (focus) { section.setAttribute("tabindex", "-1"); section.focus({ preventScroll: true }); }
}

function renderToolbar() {
  const bar = byId("toolbar");
  const weight = h("input", { type: "range", min: 0, max: 0.99, step: 0.01, id: "smooth", on: { input: () => { change("view", { smooth: Number(weight.value) }); } } });
  weight.value = state.smooth;
  const said = h("output", { for: "smooth", id: "smooth-now" });
  const legend = runs.length > 1 && h("div", { class: "legend", role: "group", "aria-label": "Runs shown" }, runs.map((run) => {
    const toggle = button("", () => {
      const hidden = new Set(state.hidden);
      if (!hidden.delete(run.key)) hidden.add(run.key);
      change("view", { hidden });
      renderTiming();
      renderSamples();
    }, { "data-run": run.key });
    toggle.append(swatch(run), h("span", { text: run.name }));
    return toggle;
  }));
  const timed = runs.some((run) => run.has("timing_s/step"));
  if (!timed) { state.x = "step"; refreshView(); }
  bar.replaceChildren(...[legend,
    h("label", { class: "field smooth" }, "Smoothing ", weight, said),
    timed && segmented("X axis", [["step", "Step"], ["time", "Time"]], state.x, (x) => change("view", { x, range: null, cursor: null })),
    segmented("Y axis", [["linear", "Linear"], ["log", "Log"]], state.log ? "log" : "linear", (kind) => change("view", { log: kind === "log" })),
    button("Reset zoom", () => zoom(null), { id: "reset" })].filter(Boolean));
  bar.hidden = false;
  followToolbar();
}

function followToolbar() {
  if (!byId("smooth")) return;
  byId("smooth-now").textContent = state.smooth ? state.smooth.toFixed(2) : "off";
  byId("reset").hidden = !state.range;
  for (const toggle of byId("toolbar").querySelectorAll("[data-run]")) {
    const run = runs.find(({ key }) => key === toggle.dataset.run);
    toggle.setAttribute("aria-pressed", String(!state.hidden.has(run.key)));
    toggle.disabled = !placeable(run);
    toggle.title = toggle.disabled ? "This run has no times" : `Show or hide ${run.name}`;
  }
}

function take(data) {
  generated = data.generated || 0;
  runs = (data.runs || []).map((raw, i) => new Run(raw, i));
  const seen = new Set();
  for (const run of runs) { if (seen.has(run.key)) run.key = `${run.key}-${run.index}`; seen.add(run.key); }
  refreshView();
}

/** Draws everything from the data; `live` means new data of the same runs. */
function render(live = false) {
  renderCompare();
  renderRuns();
  renderGlance();
  if (!live || toolbarMark() !== take.toolbar) renderToolbar();
  take.toolbar = toolbarMark();
  const series = allNames(runs).length > 0;
  byId("toolbar").hidden = !series;
  renderCurves();
  renderValidation();
  renderTiming();
  renderSeries();
  if (live && byId("sample-list") && runs.some((run) => run.samples.length)) { if (sampleMark() !== take.samples) listSamples(); } else renderSamples();
  if (!live || configMark() !== take.config) renderConfig();
  document.documentElement.style.setProperty("--runs", runs.length);
  take.samples = sampleMark();
  take.config = configMark();
  renderNav();
  byId("foot").textContent = `${series ? "" : "No metrics have been logged yet. "}Written by trainer report${generated ? `, ${moment(generated)}` : ""}.`;
}

const toolbarMark = () => runs.map((run) => `${run.key}:${run.has("timing_s/step")}`).join();
const sampleMark = () => runs.map((run) => `${run.key}:${run.samples.length}`).join();
const configMark = () => runs.map((run) => `${run.key}:${run.config.length}`).join();

listen("view", followToolbar);
listen("samples", listSamples);
listen("theme", () => { byId("theme").value = state.theme; });

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && state.range) zoom(null);
});
byId("theme").addEventListener("change", () => { state.theme = byId("theme").value; applyTheme(); });
darkSystem.addEventListener("change", () => applyTheme());
addEventListener("hashchange", () => { recall(); applyTheme(); change("view", {}); renderToolbar(); renderTiming(); renderSamples(); renderConfig(); showSection(false); });

// On paper: light theme, with every open chart drawn.
addEventListener("beforeprint", () => {
  applyTheme("light");
  for (const plot of plots) { plot.dirty = true; plot.draw(); }
});
addEventListener("afterprint", () => applyTheme());

// Live data, until the server is gone.
const POLL_MS = 3000;
const live = { failures: 0, text: "" };

/** Keeps the samples that are being read in view when newer ones arrive. */
function stayAtSamples() {
  const { top, bottom } = byId("samples").getBoundingClientRect(), { step } = chosenSamples();
  if (state.step === "" && step !== undefined && top < innerHeight / 2 && bottom > 0) change("", { step: String(step) });
}

async function poll() {
  const line = byId("live");
  try {
    const response = await fetch("data.json", { cache: "no-store" });
    if (!response.ok) throw new Error(response.statusText);
    const text = await response.text();
    live.failures = 0;
    if (text !== live.text) {
      live.text = text;
      stayAtSamples();
      take(JSON.parse(text));
      render(true);
    }
    line.className = "live on";
    if (line.dataset.said !== "live") line.textContent = line.dataset.said = "live";
    line.title = `Last checked ${moment(Date.now() / 1000)}`;
  } catch {
    if (++live.failures >= 3) {
      line.className = "live";
      line.dataset.said = "gone";
      line.replaceChildren("The server is gone; these are the latest values. ", button("Try again", () => { live.failures = 2; poll(); }, { class: "quiet" }));
      return;
    }
  }
  setTimeout(poll, POLL_MS);
}

const data = JSON.parse(byId("data").textContent);
recall();
applyTheme();
take(data);
render();
showSection(false);
if (data.watch) {
  byId("live").hidden = false;
  byId("live").className = "live on";
  byId("live").textContent = byId("live").dataset.said = "live";
  setTimeout(poll, POLL_MS);
}

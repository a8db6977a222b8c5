// Table of several runs: the settings in which they differ and their scores; runs that differ in seeds alone are one row.

/** Settings that name or place a run, and so differ between any two. */
const NAMING = new Set(["trainer.experiment_name", "trainer.default_local_dir", "trainer.project_name", "trainer.resume_mode", "trainer.resume_from_path"]);
const isSeed = (key) => /(^|[._])seed$/.test(key);

/** Last and best value of validation, or else of the reward or the training loss. */
function resultOf(run) {
  const name = validationMetric(run) || nameOf(run, [...curve("Reward").names, "train/loss"]);
  if (!name) return null;
  const { some, last, min, max } = statistics(run, name), isLoss = /loss$/.test(name);
  return some ? { name, isLoss, last: last.value, best: (isLoss ? min : max).value } : null;
}

/** Mean and standard deviation of numbers; no deviation for a single number. */
function spread(values) {
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { mean, deviation: values.length > 1 ? Math.sqrt(squares / (values.length - 1)) : null };
}

const withSpread = (values) => {
  if (!values.length) return "–";
  const { mean, deviation } = spread(values);
  return deviation === null ? format(mean) : `${format(mean)} ± ${format(deviation, 2)}`;
};

/** Groups of runs with the same settings but for seeds and names. Runs without recorded settings are groups of their own. */
function groupsOf(all) {
  const groups = new Map();
  for (const run of all) {
    const settings = run.config.filter(({ key }) => !NAMING.has(key) && !isSeed(key)).map(({ key, value }) => [key, JSON.stringify(value)]);
    const id = settings.length ? JSON.stringify([run.kind, settings.sort()]) : `alone ${run.index}`;
    if (!groups.has(id)) groups.set(id, { runs: [], settings: new Map(settings) });
    groups.get(id).runs.push(run);
  }
  return [...groups.values()];
}

/** The shortest end of a key that no other key has. */
function shortKey(key, keys) {
  const parts = key.split(".");
  for (let n = 1; n < parts.length; n++) {
    const end = parts.slice(-n).join(".");
    if (keys.filter((other) => other === end || other.endsWith(`.${end}`)).length === 1) return end;
  }
  return key;
}

function renderCompare() {
  const section = byId("compare");
  if (runs.length < 2) { section.hidden = true; return; }
  const groups = groupsOf(runs);
  for (const group of groups) group.scores = group.runs.map(resultOf).filter(Boolean);
  const known = groups.filter(({ settings }) => settings.size);
  const keys = [...new Set(known.flatMap(({ settings }) => [...settings.keys()]))].filter((key) => new Set(known.map(({ settings }) => settings.get(key))).size > 1);
  const metrics = [...new Set(groups.flatMap(({ scores }) => scores.map(({ name }) => name)))], only = metrics.length === 1 ? metrics[0] : null;
  const value = ({ scores }) => (scores.length ? spread(scores.map(({ last }) => last)).mean * (scores[0].isLoss ? -1 : 1) : -Infinity);
  if (only) groups.sort((a, b) => value(b) - value(a));
  const seeded = groups.some((group) => group.runs.length > 1), word = only && groups.some(({ scores }) => scores[0]?.isLoss) ? "Lowest" : "Best";
  const names = (group) => group.runs.map((run) => h("span", { class: "member" }, swatch(run), ` ${run.name}`, run.state !== "finished" && h("span", { class: "hint", text: ` ${run.state}` })));
  const cell = (name, text, title) => h("td", { "data-name": name, title, text });
  const text = (group, key) => { const found = group.settings.get(key); return found === undefined ? "–" : shownValue(JSON.parse(found)); };
  const row = (group) => h("tr", {}, h("th", { scope: "row" }, names(group)),
    keys.map((key) => cell(shortKey(key, keys), text(group, key), key)),
    seeded && cell("Count", String(group.runs.length)),
    cell("Last", withSpread(group.scores.map(({ last }) => last)), group.scores[0]?.name), cell(word, withSpread(group.scores.map(({ best }) => best)), group.scores[0]?.name),
    !only && cell("Metric", group.scores[0]?.name ?? "–"));
  const head = (title, name) => h("th", { scope: "col", title: name, text: title });
  const table = h("table", { class: "diff compared" }, h("caption", { class: "hidden", text: "Runs, compared" }),
    h("thead", {}, h("tr", {}, head("Runs"), keys.map((key) => head(shortKey(key, keys), key)), seeded && head("Count"), head("Last"), head(word), !only && head("Metric"))),
    h("tbody", {}, groups.map(row)));
  const notes = [only && `Last and ${word.toLowerCase()}: ${only}.`, seeded && "Runs that differ in their seed alone are one row: mean ± standard deviation.",
    !keys.length && "No other settings differ."].filter(Boolean);
  fill("compare", "Runs, compared", h("p", { class: "hint", text: notes.join(" ") }), h("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Table of the runs" }, table));
}

// Responses, step by step.

const KINDS = { train: "Training", val: "Validation" };
const SHOWN_AT_ONCE = 12;
// Regular ends of a conversation; others were cut off, or failed.
const FINE_ENDS = ["answer", "done"];
let shownSamples = SHOWN_AT_ONCE, fullTint = 1;

const scoreOf = (sample) => number(sample.score);
const searchText = (sample) => (sample.found ??= `${sample.prompt}\n${sample.response}\n${sample.end ?? ""}\n${JSON.stringify(sample.ground_truth ?? "")}\n${sample.data_source ?? ""}`.toLowerCase());

/** Samples of the chosen runs that pass the filters, and the steps that have some. */
function chosenSamples() {
  const having = runs.filter((run) => run.samples.length && !state.hidden.has(run.key));
  const both = having.length > 1 && (state.run === "" || !having.some((run) => run.key === state.run));
  const from = both ? having : having.filter((run) => having.length === 1 || run.key === state.run);
  const kinds = Object.keys(KINDS).concat([...new Set(from.flatMap((run) => run.samples.map((s) => s.kind)))].filter((kind) => !KINDS[kind])).filter((kind) => from.some((run) => run.samples.some((s) => s.kind === kind)));
  const kind = kinds.includes(state.kind) ? state.kind : kinds[0];
  const all = from.flatMap((run) => run.samples.filter((sample) => sample.kind === kind && (!state.find || searchText(sample).includes(state.find))).map((sample) => ({ run, sample })));
  const steps = [...new Set(all.map(({ sample }) => sample.step))].sort((a, b) => a - b);
  // The side-by-side view begins at the last step for which several runs have samples.
  const shared = both ? steps.filter((step) => new Set(all.filter(({ sample }) => sample.step === step).map(({ run }) => run)).size > 1) : [];
  const wanted = state.step === "" ? shared[shared.length - 1] ?? Infinity : Number(state.step);
  const step = steps[Math.max(0, lastUntil(steps.length, (i) => steps[i], wanted))];
  return { having, both, from, kinds, kind, all, steps, step, here: all.filter(({ sample }) => sample.step === step) };
}

function sorted(entries) {
  const sign = { best: -1, worst: 1 }[state.sort];
  const rank = ({ sample }) => scoreOf(sample) ?? (sign < 0 ? -Infinity : Infinity);
  return sign ? [...entries].sort((a, b) => sign * (rank(a) - rank(b)) || 0) : entries;
}

function sampleCard({ run, sample }, named, prompt = true) {
  const score = scoreOf(sample), cut = sample.finish === "length";
  const chips = Object.entries(sample.components || {}).map(([name, value]) => h("span", { class: "chip" }, `${name} `, h("b", { text: format(number(value)) })));
  const truth = sample.ground_truth;
  return h("article", { class: "sample" },
    h("div", { class: "sample-head" }, named && swatch(run), named && h("span", { class: "run-name", text: run.name }),
      h("span", { class: "score", title: score === null ? null : exact(score) }, "score ", h("b", { text: format(score) })),
      sample.advantage !== null && sample.advantage !== undefined && h("span", { class: "chip" }, "advantage ", h("b", { text: format(number(sample.advantage)) })), chips,
      sample.messages && h("span", { class: "chip" }, "turns ", h("b", { text: String(sample.num_turns) })),
      sample.messages && h("span", { class: FINE_ENDS.includes(sample.end) ? "chip" : "chip warn", text: `ended by ${String(sample.end).replaceAll("_", " ")}` }),
      h("span", { class: cut ? "chip warn" : "chip", text: cut ? "✂ truncated" : sample.finish === "stop" ? "✓ ended" : sample.finish || "" }),
      sample.data_source && h("span", { class: "hint", text: sample.data_source })),
    prompt && h("div", { class: "text" }, h("h4", { text: "Prompt" }), h("pre", { text: sample.prompt, tabindex: 0, "aria-label": "Prompt" })),
    sample.messages && h("div", { class: "text" }, h("h4", { text: "Conversation" }), turnsView(sample)),
    (!sample.messages || (sample.tokens?.length && state.tint !== "plain")) && h("div", { class: "text" }, h("h4", { text: sample.messages ? "Tokens" : "Response" }), sample.tokens?.length && state.tint !== "plain" ? tokenView(sample, state.tint, fullTint) : h("pre", { text: sample.response, tabindex: 0, "aria-label": "Response" })),
    truth !== null && truth !== undefined && h("div", { class: "text truth" }, h("h4", { text: "Ground truth" }), h("pre", { text: typeof truth === "string" ? truth : JSON.stringify(truth) })));
}

/** Side by side: one row per prompt and one column per run. Prompts that several runs have come first. */
function sideBySide({ here, all, from, step }) {
  const earlier = (run, prompt) => {
    const found = all.findLast((entry) => entry.run === run && entry.sample.prompt === prompt && entry.sample.step < step);
    return found ? [h("p", { class: "hint", text: `${run.name} has no sample at this step; its last one before is from step ${found.sample.step}:` }), sampleCard(found, true, false)]
      : h("p", { class: "hint" }, swatch(run), ` ${run.name}: no sample of this prompt up to this step`);
  };
  const byPrompt = new Map();
  for (const entry of here) byPrompt.set(entry.sample.prompt, [...(byPrompt.get(entry.sample.prompt) || []), entry]);
  const common = (entries) => new Set(entries.map(({ run }) => run)).size;
  return [...byPrompt].sort((a, b) => common(b[1]) - common(a[1])).map(([prompt, entries]) => h("section", { class: "pair" },
    h("div", { class: "text" }, h("h4", { text: "Prompt" }), h("pre", { text: prompt, tabindex: 0, "aria-label": "Prompt" })),
    h("div", { class: "columns", style: { "--n": Math.min(from.length, 3) } }, from.map((run) => h("div", { class: "column" },
      entries.some((entry) => entry.run === run) ? sorted(entries.filter((entry) => entry.run === run)).map((entry) => sampleCard(entry, true, false))
        : earlier(run, prompt))))));
}

function goTo(offset) {
  const { steps, step } = chosenSamples(), i = steps.indexOf(step) + offset;
  if (i < 0 || i >= steps.length) return;
  shownSamples = SHOWN_AT_ONCE;
  change("samples", { step: i === steps.length - 1 && !chosenSamples().both ? "" : String(steps[i]) });
  announce(`samples of step ${steps[i]}`);
}

/** The controls stay the same elements while browsing, so that they keep the focus. */
function renderSamples() {
  const section = byId("samples"), chosen = chosenSamples();
  if (!runs.some((run) => run.samples.length)) { section.hidden = true; return; }
  const set = (values) => { shownSamples = SHOWN_AT_ONCE; change("samples", values); };
  const withSamples = runs.filter((run) => run.samples.length);
  const slider = h("input", { type: "range", min: 0, step: 1, id: "sample-step", "aria-label": "Step of the samples", on: { input: () => {
    const { steps, both } = chosenSamples();
    set({ step: Number(slider.value) === steps.length - 1 && !both ? "" : String(steps[slider.value]) });
  } } });
  const tools = h("div", { class: "tools" },
    withSamples.length > 1 && select("Run", [["", "Side by side"], ...withSamples.map((run) => [run.key, run.name])], state.run, (run) => set({ run })),
    chosen.kinds.length > 1 && segmented("Kind", chosen.kinds.map((kind) => [kind, KINDS[kind] || kind]), chosen.kind, (kind) => set({ kind, step: "" })),
    select("Order", [["logged", "as logged"], ["best", "best score first"], ["worst", "worst score first"]], state.sort, (sort) => set({ sort })),
    segmented("Tint by", [["advantage", "Advantage"], ["probability", "Probability"], ["plain", "Nothing"]], state.tint, (tint) => set({ tint })),
    searchBox("Find in prompts and responses", state.find, (find) => set({ find })));
  const stepper = h("div", { class: "stepper" },
    button("← Previous", () => goTo(-1), { id: "sample-previous" }), slider, button("Next →", () => goTo(1), { id: "sample-next" }), h("output", { id: "sample-now", for: "sample-step" }));
  const list = h("div", { id: "sample-list", tabindex: 0, role: "region", "aria-label": "Samples; the arrow keys go from step to step" });
  const note = h("p", { class: "hint", text: "Training responses are kept at some steps: the first of each of trainer.num_sample_generations equal parts of the run." });
  fill("samples", "Samples", tools, stepper, list, runs.some((run) => run.samples.some(({ kind }) => kind === "train")) && note);
  section.onkeydown = (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || event.target.matches("input, select, textarea") || event.altKey || event.ctrlKey || event.metaKey) return;
    goTo(step);
    event.preventDefault();
  };
  listSamples();
}

function listSamples() {
  const list = byId("sample-list");
  if (!list) return;
  const chosen = chosenSamples(), { both, all, steps, step, here } = chosen, i = steps.indexOf(step), slider = byId("sample-step");
  slider.max = Math.max(0, steps.length - 1);
  slider.value = i;
  slider.disabled = steps.length < 2;
  slider.setAttribute("aria-valuetext", `step ${step}`);
  byId("sample-previous").disabled = i <= 0;
  byId("sample-next").disabled = i >= steps.length - 1;
  byId("sample-now").textContent = steps.length ? `Step ${step} · ${here.length} ${here.length === 1 ? "sample" : "samples"} · ${i + 1} of ${steps.length} steps${state.find ? ` · ${all.length} found in all` : ""}` : "Nothing found";
  fullTint = greatestAdvantage(here.map(({ sample }) => sample));
  const blocks = both ? sideBySide(chosen) : sorted(here).map((entry) => sampleCard(entry, runs.length > 1));
  const more = blocks.length - shownSamples;
  list.className = both ? "pairs" : "cards";
  list.replaceChildren(...blocks.slice(0, shownSamples), ...(more > 0 ? [button(`Show ${more} more`, () => { shownSamples = Infinity; listSamples(); })] : []));
  byId("tint-key")?.remove();
  if (here.some(({ sample }) => sample.tokens?.length)) {
    const key = tintKey(state.tint, here.some(({ sample }) => sample.sampled));
    key.id = "tint-key";
    list.before(key);
  }
}

// Head of the page: the runs, how they ended, and the most important facts.

const STATES = { running: "● running", finished: "✓ finished", failed: "✕ failed", interrupted: "‖ interrupted", killed: "✕ killed", unknown: "? unknown" };

/** Validation over the whole run: its first, last and best value. */
function course(run) {
  const name = validationMetric(run), isLoss = name === "val/loss";
  if (!name || !(isLoss || name.startsWith("val-core/") || run.best?.metric === name)) return null;
  const { some, first, last, min, max } = statistics(run, name), best = isLoss ? min : max, word = isLoss ? "lowest" : "highest";
  if (!some || first.step === last.step) return null;
  const start = first.step === 0 ? "before training" : `at step ${first.step}`, end = `at step ${last.step}`;
  const moved = first.value === last.value ? `Validation was ${format(first.value)} ${start} and is the same ${end}`
    : `Validation ${last.value > first.value ? "rose" : "fell"} from ${format(first.value)} ${start} to ${format(last.value)} ${end}`;
  return `${moved}, ${best.value === last.value ? `its ${word} value` : `after its ${word} value, ${format(best.value)} at step ${best.step}`}.`;
}

/** A warning if both responses of the pairs have become less probable: the margin then grows although the good responses are unlearned. */
function unlearning(run) {
  const sides = ["Chosen responses", "Rejected responses"].map((title) => nameOf(run, curve(title).names));
  if (!sides.every(Boolean)) return null;
  const [chosen, rejected] = sides.map((name) => ends(run, name));
  const fell = ({ start, end }) => start - end > Math.max(1, 0.1 * Math.abs(start));
  if (!fell(chosen) || !fell(rejected)) return null;
  return `Chosen responses have become less probable, from ${format(chosen.start, 3)} to ${format(chosen.end, 3)}, and rejected ones from ${format(rejected.start, 3)} to ${format(rejected.end, 3)}: `
    + "the model moves away from both. A lower learning rate, a larger β, or the additional loss `sft` keeps the chosen ones.";
}

function runCard(run) {
  const total = run.total_steps, share = total ? Math.min(1, run.step / total) : null;
  const best = run.best, metric = validationMetric(run), last = metric && statistics(run, metric).last;
  const facts = [
    ["Step", `${run.step ?? "–"}${total ? ` of ${total}` : ""}`],
    ["Model", run.model], ["Device", run.device], ["Started", moment(run.started)],
    [run.state === "running" ? "Running for" : "Took", typeof run.worked === "number" ? duration(run.worked) : "–"],
    metric && ["Last validation", last ? `${format(last.value)} at step ${last.step}` : "–", metric],
    best && ["Best validation", `${format(NAMED[best.value] ?? best.value)} at step ${best.step}`, best.metric],
    ["Version", run.burnish && `burnish ${run.burnish}`],
  ].filter((fact) => fact && fact[1]);
  const state = STATES[run.state] || run.state || "unknown";
  const copy = button("Copy", async () => {
    try { await navigator.clipboard.writeText(run.command); copy.textContent = "Copied"; } catch { copy.textContent = "Select and copy by hand"; }
    setTimeout(() => { copy.textContent = "Copy"; }, 1500);
  }, { class: "quiet", "aria-label": `Copy the command of ${run.name}` });
  return h("article", { class: "run" },
    h("div", { class: "run-head" }, swatch(run), h("h2", { text: run.name }),
      h("span", { class: `state ${STATES[run.state] ? run.state : ""}`, text: state }),
      run.resumable && h("span", { class: "state", text: "can be resumed", title: "The same command resumes from its last checkpoint" })),
    share !== null && h("progress", { max: 1, value: share, "aria-label": `Step ${run.step} of ${total}` }),
    (run.error || run.state === "failed") && h("p", { class: "error" }, h("strong", { text: run.phase ? `Failed in phase ${run.phase}: ` : "Failed: " }), run.error || "no message was recorded"),
    (run.problems || []).map((text) => h("p", { class: "error" }, h("strong", { text: "Some files cannot be read:  " }), text)),
    course(run) && h("p", { class: "hint", text: course(run), title: metric }),
    unlearning(run) && h("p", { class: "error" }, h("strong", { text: "Both sides fall: " }), unlearning(run)),
    run.alarms?.length && h("ul", { class: "alarms", "aria-label": "Alarms" }, run.alarms.map(({ name, step, sentence, remedy }) => h("li", { class: "error" },
      h("strong", { text: `▲ Alarm at step ${step}, ${name}: ` }), `${sentence}. `, h("span", { class: "hint", text: remedy })))),
    run.no_signal && h("p", { class: "error" }, h("strong", { text: "No signal: " }), run.no_signal),
    !run.error && run.phase && run.state !== "failed" && h("p", { class: "hint", text: `Phase: ${run.phase}` }),
    h("dl", { class: "facts" }, facts.map(([term, text, title]) => h("div", {}, h("dt", { text: term }), h("dd", { text, title })))),
    run.command && h("details", { class: "command" }, h("summary", { text: "Command" }), h("pre", { tabindex: 0, "aria-label": "Command" }, h("code", { text: run.command })), copy));
}

function renderRuns() {
  const section = byId("runs"), open = [...section.querySelectorAll("details")].map((details) => details.open);
  const stops = () => [...section.querySelectorAll("summary, button, pre")], focused = stops().indexOf(document.activeElement);
  section.className = runs.length > 1 ? "cards" : "";
  section.replaceChildren(...runs.map(runCard));
  section.querySelectorAll("details").forEach((details, i) => { details.open = open[i] || false; });
  stops()[focused]?.focus();
}

/** First and last tenth of a series, at least one and at most fifty points. */
function ends(run, name) {
  const series = run.series(name), n = Math.max(1, Math.min(50, Math.floor(series.v.length / 10)));
  return { n, start: meanOf(series, 0, n), end: meanOf(series, -n) };
}

/** Last value of a series as logged, finite or not. */
function lastOf(run, name) {
  const { at, v } = run.series(name);
  return { value: v[v.length - 1], step: run.steps[at[at.length - 1]] };
}

const trend = (start, end) => {
  if (!Number.isFinite(start) || !Number.isFinite(end)) return "";
  const size = Math.max(Math.abs(start), Math.abs(end)), change = end - start;
  return size === 0 || Math.abs(change) < size * 0.02 ? "→" : change > 0 ? "↗" : "↘";
};

/** Start and end of a series: with n > 1, the means of the first and of the last n steps. */
const moved = (start, end, n) => Number.isFinite(start) && (n > 1 ? `${trend(start, end)} mean of the first ${n} steps ${format(start, 3)}, of the last ${format(end, 3)}`
  : `${trend(start, end)} ${format(start, 3)} to ${format(end, 3)}`);

// Each fact has a title and a function of a run that returns [value, notes, series], or null if the run has no such series.
const FACTS = [
  ["Reward", (run) => {
    const name = nameOf(run, curve("Reward").names);
    if (!name) return null;
    const s = statistics(run, name), { n, start, end } = ends(run, name);
    return [format(lastOf(run, name).value), [s.some && `best ${format(s.max.value)} (step ${s.max.step})`, moved(start, end, n)], name];
  }],
  ["Training loss", (run) => {
    if (!run.has("train/loss")) return null;
    const s = statistics(run, "train/loss"), { n, start, end } = ends(run, "train/loss");
    return [format(lastOf(run, "train/loss").value), [s.some && `lowest ${format(s.min.value)} (step ${s.min.step})`, moved(start, end, n)]];
  }],
  ["Preference accuracy", (run) => {
    const name = nameOf(run, curve("Preference accuracy").names);
    if (!name) return null;
    const { n, start, end } = ends(run, name);
    return [percent(lastOf(run, name).value), [moved(start, end, n)], name];
  }],
  ["Validation", (run) => {
    const name = validationMetric(run);
    if (!name) return null;
    const s = statistics(run, name), last = lastOf(run, name), lower = name === "val/loss";
    const best = run.best?.metric === name ? { value: NAMED[run.best.value] ?? run.best.value, step: run.best.step, word: "best" } : s.some && { ...(lower ? s.min : s.max), word: lower ? "lowest" : "highest" };
    return [format(last.value), [best ? `${best.word} ${format(best.value)} (step ${best.step})` : "never finite", s.some && `first ${format(s.first.value, 3)}`], name];
  }],
  ["KL to the reference", (run) => {
    const name = nameOf(run, curve("KL to the reference").names);
    if (!name) return null;
    const s = statistics(run, name);
    return [format(lastOf(run, name).value), [s.some ? `greatest ${format(s.max.value, 3)} (step ${s.max.step})` : "never finite"], name];
  }],
  ["Entropy", (run) => {
    const name = nameOf(run, curve("Entropy").names);
    if (!name) return null;
    const { n, start, end } = ends(run, name);
    return [format(lastOf(run, name).value), [start > 0 && end >= 0 && `${percent(end / start)} of the start`, moved(start, end, n)], name];
  }],
  ["Truncated", (run) => {
    const name = nameOf(run, curve("Truncated responses").names), length = run.has("response_length/mean") && lastOf(run, "response_length/mean").value;
    return name ? [percent(lastOf(run, name).value), [`most ${percent(statistics(run, name).max.value)}`, length && `mean length ${format(length, 3)}`], name] : null;
  }],
  ["Tokens per second", (run) => (run.has("perf/throughput") ? [format(lastOf(run, "perf/throughput").value), [`mean ${format(meanOf(run.series("perf/throughput"), 0), 3)}`]] : null)],
  ["Mean time per step", (run) => {
    const { list, total } = phasesOf(run), name = nameOf(run, ["timing_s/step", "perf/time_per_step"]);
    const named = list.filter((phase) => phase.name !== "rest"), most = named.length && named.reduce((a, b) => (b.total > a.total ? b : a));
    if (!name && !most) return null;
    const step = name ? meanOf(run.series(name), 0) : total / run.steps.length;
    return [duration(step), [most && `${most.text}: ${percent(most.total / total)} of the time`]];
  }],
];

function renderGlance() {
  const tiles = FACTS.map(([title, of]) => {
    const rows = runs.map((run) => ({ run, said: of(run) })).filter(({ said }) => said);
    if (!rows.length) return null;
    return h("div", { class: "tile" }, h("h3", { text: title }), rows.map(({ run, said: [value, notes, name] }) => h("p", { title: name },
      runs.length > 1 && swatch(run), runs.length > 1 && h("span", { class: "hidden", text: `${run.name}: ` }), h("strong", { text: value }), notes.filter(Boolean).map((text) => h("span", { class: "hint", text })))));
  }).filter(Boolean);
  if (!tiles.length) { byId("glance").hidden = true; return; }
  fill("glance", "At a glance", h("div", { class: runs.length > 1 ? "tiles many" : "tiles" }, tiles));
}

// The page's data about the runs: decoded series, x positions, statistics, and the lists of important series.

const NAMED = { NaN, Infinity, "-Infinity": -Infinity };

/** A run of the data; its series are decoded on first use. */
class Run {
  constructor(raw, index) {
    Object.assign(this, raw);
    this.index = index;
    this.key = raw.id || String(index);
    this.name = raw.name || raw.dir || this.key;
    this.samples = raw.samples || [];
    this.config = raw.config || [];
    this.steps = Float64Array.from(raw.metrics?.steps || []);
    this.raw = raw.metrics?.series || {};
    this.decoded = new Map();
  }

  has(name) {
    return Object.hasOwn(this.raw, name) && this.raw[name].some((value) => value !== null);
  }

  /** Logged values of a series: `at` are positions in `steps`, `v` the values, finite or not. */
  series(name) {
    let found = this.decoded.get(name);
    if (found) return found;
    const raw = Object.hasOwn(this.raw, name) ? this.raw[name] : [];
    const at = [], v = [];
    for (let i = 0; i < raw.length && i < this.steps.length; i++) {
      if (raw[i] === null) continue;
      at.push(i);
      v.push(typeof raw[i] === "number" ? raw[i] : NAMED[raw[i]] ?? NaN);
    }
    found = { at: Uint32Array.from(at), v: Float64Array.from(v), smoothed: null, weight: 0 };
    this.decoded.set(name, found);
    return found;
  }

  /** One value per step; `missing` if nothing was logged or the value is not finite. */
  dense(name, missing = 0) {
    const all = new Float64Array(this.steps.length).fill(missing);
    const { at, v } = this.series(name);
    for (let i = 0; i < at.length; i++) if (Number.isFinite(v[i])) all[at[i]] = v[i];
    return all;
  }

  /** Position of each step on the x axis: its number, or the seconds trained until its end. */
  xs(mode) {
    if (mode !== "time") return this.steps;
    this.seconds ??= secondsUntil(this);
    return this.seconds;
  }
}

/** Phases between the steps, which are not part of `timing_s/step`. */
const OUTSIDE_STEP = ["timing_s/testing", "timing_s/save_checkpoint", "timing_s/tracking"];

function secondsUntil(run) {
  const parts = ["timing_s/step", ...OUTSIDE_STEP].filter((name) => run.has(name)).map((name) => run.dense(name));
  let total = 0;
  return Float64Array.from(run.steps, (_, i) => (total += parts.reduce((sum, part) => sum + part[i], 0)));
}

/** Exponential moving average, corrected for the bias at its start; values that are not finite are skipped. */
function smooth(series, weight) {
  if (series.weight === weight && series.smoothed) return series.smoothed;
  const out = new Float64Array(series.v.length);
  let mean = 0, norm = 0;
  for (let i = 0; i < out.length; i++) {
    const v = series.v[i];
    if (!Number.isFinite(v)) { out[i] = v; continue; }
    mean = weight * mean + (1 - weight) * v;
    norm = weight * norm + (1 - weight);
    out[i] = mean / norm;
  }
  series.smoothed = out;
  series.weight = weight;
  return out;
}

/** First, last, lowest and highest finite value with their steps, and the number of values that are not finite. */
function statistics(run, name) {
  const { at, v } = run.series(name);
  const point = (i) => ({ value: v[i], step: run.steps[at[i]] });
  let first = -1, last = -1, min = -1, max = -1, nan = 0, inf = 0;
  for (let i = 0; i < v.length; i++) {
    if (!Number.isFinite(v[i])) { Number.isNaN(v[i]) ? nan++ : inf++; continue; }
    if (first < 0) first = min = max = i;
    last = i;
    if (v[i] < v[min]) min = i;
    if (v[i] > v[max]) max = i;
  }
  const some = first >= 0;
  return {
    count: v.length, nan, inf, some,
    first: some && point(first), last: some && point(last), min: some && point(min), max: some && point(max),
  };
}

/** Fewer values than this may be equal by chance. */
const FEW = 3;

/** Returns the value that a series has at all steps of all its runs; undefined if it changes or there are few steps. */
function constantValue(runs, names) {
  let value;
  for (const run of runs) {
    for (const name of names.filter((it) => run.has(it))) {
      const { v } = run.series(name);
      if (v.length < FEW || v.some((x) => !Number.isFinite(x) || x !== (value ??= x))) return undefined;
    }
  }
  return value;
}

/** Mean of the finite values in a slice of a series; negative positions count from the end. */
function meanOf(series, from, to) {
  const values = Array.from(series.v.slice(from, to)).filter(Number.isFinite);
  return values.length ? values.reduce((a, b) => a + b, 0) / values.length : NaN;
}

/** Index of the last element that is at most `x`, or -1. */
function lastUntil(count, valueAt, x) {
  let low = 0, high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (valueAt(middle) <= x) low = middle + 1; else high = middle;
  }
  return low - 1;
}

/** Names of a metric of pairs: of a stage, of online DPO, and in TRL. */
const ofPairs = (name) => [`train/${name}`, `actor/${name}`, name];

// The most important curves: the first name that a run has is drawn. `bands` are [lowest, highest]. A constant curve without
// `always` is left out.
const CURVES = [
  { title: "Reward", hint: "mean score of the responses", always: true, names: ["critic/score/mean", "objective/scores"],
    bands: { "critic/score/mean": ["critic/score/min", "critic/score/max"] } },
  { title: "Training loss", hint: "of a step", always: true, names: ["train/loss"] },
  { title: "Preference accuracy", hint: "share of pairs whose chosen response has the higher reward", names: [...ofPairs("rewards/accuracies"), "train/accuracy"] },
  { title: "Preference margin", hint: "reward of the chosen response minus that of the rejected one", names: [...ofPairs("rewards/margins"), "train/margin"] },
  { title: "Chosen responses", hint: "log-probability", names: ofPairs("logps/chosen") },
  { title: "Rejected responses", hint: "log-probability", names: ofPairs("logps/rejected") },
  { title: "Scores of a reward model", hint: "mean over the responses of a step", names: ["train/mean_reward"],
    bands: { "train/mean_reward": ["train/min_reward", "train/max_reward"] } },
  { title: "Token accuracy", hint: "share of trained tokens that are the most probable", names: ["train/mean_token_accuracy"] },
  { title: "KL to the reference", hint: "distance from the start", names: ["actor/kl_loss", "actor/reward_kl_penalty", "objective/kl", "critic/kl", "actor/kl"] },
  { title: "Entropy", hint: "of the next token", names: ["actor/entropy", "policy/entropy_avg", "actor/entropy_loss", "objective/entropy"] },
  { title: "Response length", hint: "mean tokens", names: ["response_length/mean"],
    bands: { "response_length/mean": ["response_length/min", "response_length/max"] } },
  { title: "Tool calls", hint: "mean per conversation", names: ["tool_call_counts/mean"], bands: { "tool_call_counts/mean": ["tool_call_counts/min", "tool_call_counts/max"] } },
  { title: "Failed calls", hint: "share of tool calls without a result", names: ["tools/failure_frequency"] },
  { title: "Truncated responses", hint: "share", names: ["response/truncated_ratio", "response_length/clip_ratio"] },
  { title: "Clip fraction", hint: "share of tokens whose ratio was clipped", names: ["actor/pg_clipfrac", "policy/clipfrac_avg"] },
  { title: "KL to the old policy", hint: "size of the update", names: ["actor/ppo_kl", "policy/approxkl_avg"] },
  { title: "Gradient norm", hint: "before clipping", names: ["actor/grad_norm", "train/grad_norm"] },
  { title: "Policy loss", hint: "", names: ["actor/pg_loss", "loss/policy_avg"] },
  { title: "Learning rate", hint: "", names: ["actor/lr", "train/lr", "lr"] },
  { title: "Throughput", hint: "tokens per second", names: ["perf/throughput"] },
];

const nameOf = (run, names) => names.find((name) => run.has(name));
const curve = (title) => CURVES.find((c) => c.title === title);
const isValidation = (name) => name.startsWith("val-") || name === "val/loss";
// `timing_s/agent_loop/…` are times within a phase.
const isPhase = (name) => /^timing_s\/[^/]+$/.test(name) && name !== "timing_s/step";

/** All names of series that some run has, in the order of the data. */
function allNames(runs) {
  const names = new Set();
  for (const run of runs) for (const name in run.raw) if (run.has(name)) names.add(name);
  return [...names];
}

/** The series that shows the result of validation. */
function validationMetric(run) {
  const names = Object.keys(run.raw).filter((name) => isValidation(name) && run.has(name));
  if (run.best && names.includes(run.best.metric)) return run.best.metric;
  return names.find((name) => name.startsWith("val-core/")) || names.find((name) => name === "val/loss") || names[0];
}

// Numbers and times as text.

const trimmed = (text) => text.replace(/(\.\d*?)0+(?=e|$)/, "$1").replace(/\.(?=e|$)/, "").replace("e+", "e");

/** Formats `digits` significant digits in the shortest form; values that are not finite as words. */
function format(value, digits = 4) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value);
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 10 ** Math.max(digits, 6) || size < 1e-3) return trimmed(value.toExponential(digits - 1)).replace(/^-/, "−");
  if (size >= 1000) return trimmed(value.toFixed(Math.max(0, digits - 1 - Math.floor(Math.log10(size)))))
    .replace(/^(-?\d{2,})(\d{3})(?!\d)/, "$1,$2").replace(/^-/, "−");
  return trimmed(value.toPrecision(digits)).replace(/^-/, "−");
}

/** Formats all digits of a number. */
const exact = (value) => (Number.isFinite(value) ? String(value).replace("e+", "e").replace(/^-/, "−") : format(value));

const percent = (share) => (Number.isFinite(share) ? `${format(share * 100, share < 0.1 ? 2 : 3)} %` : format(share));

function duration(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  if (seconds < 1) return `${format(seconds * 1000, 3)} ms`;
  if (seconds < 120) return `${format(seconds, 3)} s`;
  const minutes = Math.round(seconds / 60), hours = Math.floor(minutes / 60);
  if (hours === 0) return `${minutes} min`;
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** Formats local date and time. Not by Intl, whose first use takes longer than drawing a chart. */
function moment(seconds) {
  if (!seconds) return "–";
  const date = new Date(seconds * 1000), two = (n) => String(n).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${two(date.getHours())}:${two(date.getMinutes())}`;
}

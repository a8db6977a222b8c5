// Time of each phase as stacked areas, one chart per run.

const PHASE_ORDER = ["gen", "gen_max", "reward", "old_log_prob", "ref", "values", "adv", "update_critic", "update_actor"];
const LAST_PHASES = ["testing", "save_checkpoint", "tracking", "rest"];
const PHASE_TEXT = { gen: "generate", gen_max: "greedy baseline", reward: "score", old_log_prob: "old log-prob", ref: "reference", values: "values", adv: "advantages",
  update_critic: "update critic", update_actor: "update actor", testing: "validation", save_checkpoint: "save", tracking: "trackers", rest: "rest" };

/** Phases of a run in the order of a step: {name, text, values per step, total}, and their seconds together.
 *  `rest` is the part of `timing_s/step` outside of its phases; OUTSIDE_STEP is added to the step. */
function phasesOf(run) {
  if (run.phases) return run.phases;
  const names = Object.keys(run.raw).filter((name) => isPhase(name) && run.has(name)).map((name) => name.slice("timing_s/".length));
  const place = (name) => {
    const known = PHASE_ORDER.indexOf(name), late = LAST_PHASES.indexOf(name);
    return known >= 0 ? known : late >= 0 ? 1000 + late : 500;
  };
  names.sort((a, b) => place(a) - place(b));
  const list = names.map((name) => ({ name, values: run.dense(`timing_s/${name}`) }));
  if (run.has("timing_s/step")) {
    const inside = list.filter(({ name }) => !OUTSIDE_STEP.includes(`timing_s/${name}`));
    const rest = run.dense("timing_s/step").map((step, i) => Math.max(0, step - inside.reduce((sum, { values }) => sum + values[i], 0)));
    if (rest.some((v) => v > 0)) list.push({ name: "rest", values: rest });
  }
  let total = 0;
  for (const phase of list) {
    phase.text = PHASE_TEXT[phase.name] || phase.name.replaceAll("_", " ");
    phase.total = phase.values.reduce((a, b) => a + b, 0);
    total += phase.total;
  }
  run.phases = { list, total };
  return run.phases;
}

/** Returns the palette colour of a phase, the same in every run. */
function phaseColour(name) {
  const known = [...PHASE_ORDER, ...LAST_PHASES].indexOf(name);
  return name === "rest" ? "phase-rest" : `phase-${(known < 0 ? [...name].reduce((sum, c) => sum + c.charCodeAt(0), 0) : known) % 12}`;
}

class Areas extends Plot {
  constructor(run, greatest, heading) {
    super({ title: heading, hint: "", height: 230 });
    Object.assign(this, { run, greatest });
    this.element.classList.add("areas");
    this.subtitle.hidden = true;
  }

  /** Sums per bucket of about two pixels: [{x, sums per phase, steps}]. */
  buckets() {
    const { list } = phasesOf(this.run), xs = this.run.xs(state.x), width = Math.max(60, (this.area.clientWidth || 600) / 2);
    const from = Math.max(0, lastUntil(xs.length, (i) => xs[i], view.from - 1e-9)), to = lastUntil(xs.length, (i) => xs[i], view.to);
    const out = [];
    let current = null, cell = NaN;
    for (let i = from; i <= to; i++) {
      if (list.every(({ values }) => values[i] === 0)) continue;
      const at = Math.floor(((xs[i] - view.from) / (view.to - view.from)) * width);
      if (at !== cell) { cell = at; out.push((current = { x: xs[i], sums: new Float64Array(list.length), steps: 0 })); }
      current.steps++;
      list.forEach(({ values }, p) => { current.sums[p] += values[i]; });
    }
    return out;
  }

  yScale() {
    this.cells = this.buckets().map(({ x, sums, steps }) => {
      const total = sums.reduce((a, b) => a + b, 0);
      const parts = Array.from(sums, (sum) => (state.share ? (total ? sum / total : 0) : sum / steps));
      return { x, parts, total: parts.reduce((a, b) => a + b, 0) };
    });
    const top = state.share ? 1 : Math.max(1e-9, ...this.cells.map(({ total }) => total), state.range ? 0 : this.greatest());
    const scale = linearScale(0, top, this.height, true);
    for (const tick of scale.ticks) tick.text = state.share ? `${Math.round(tick.value * 100)} %` : duration(tick.value);
    return scale;
  }

  paint(ctx, box) {
    const { list } = phasesOf(this.run), cells = this.cells;
    const base = new Float64Array(cells.length);
    list.forEach((phase, p) => {
      ctx.fillStyle = colour(phaseColour(phase.name));
      ctx.beginPath();
      cells.forEach(({ x, parts }, i) => ctx.lineTo(box.x(x), box.y(base[i] + parts[p])));
      for (let i = cells.length - 1; i >= 0; i--) ctx.lineTo(box.x(cells[i].x), box.y(base[i]));
      if (cells.length === 1) ctx.rect(box.left, box.y(base[0] + cells[0].parts[p]), box.right - box.left, box.y(base[0]) - box.y(base[0] + cells[0].parts[p]));
      ctx.fill();
      ctx.strokeStyle = colour("panel");
      ctx.lineWidth = 1;
      ctx.beginPath();
      cells.forEach(({ x, parts }, i) => { base[i] += parts[p]; ctx.lineTo(box.x(x), box.y(base[i])); });
      ctx.stroke();
    });
    this.label(ctx, box, list);
  }

  /** Writes the name of a phase inside its area, if the area is high enough in the last tenth of the chart. */
  label(ctx, box, list) {
    const tail = this.cells.slice(-Math.max(1, Math.floor(this.cells.length / 10)));
    if (!tail.length) return;
    ctx.font = FONT;
    ctx.textAlign = "right";
    ctx.textBaseline = "middle";
    const right = Math.min(box.right, box.x(this.cells[this.cells.length - 1].x)) - 6;
    let base = 0;
    list.forEach((phase, p) => {
      const mean = tail.reduce((sum, { parts }) => sum + parts[p], 0) / tail.length, middle = base + mean / 2;
      base += mean;
      if (box.y(0) - box.y(mean) < 16) return;
      ctx.fillStyle = colour("phase-text");
      ctx.fillText(phase.text, right, box.y(middle));
    });
  }

  /** Shows the seconds of each phase at the crosshair; without crosshair, its mean over all steps and its share of all time. */
  tell(x) {
    const { list, total } = phasesOf(this.run), xs = this.run.xs(state.x), steps = this.run.steps;
    const i = x === null ? -1 : lastUntil(xs.length, (j) => xs[j], x);
    const timed = list[0] ? Math.max(1, steps.reduce((count, _, j) => count + (list.some(({ values }) => values[j] > 0) ? 1 : 0), 0)) : 1;
    const at = i >= 0 ? list.reduce((sum, { values }) => sum + values[i], 0) : total;
    this.readout.replaceChildren(...list.map((phase) => {
      const value = i >= 0 ? phase.values[i] : phase.total / timed, share = (i >= 0 ? phase.values[i] : phase.total) / (at || 1);
      return h("li", { style: { "--share": `${(share * 100).toFixed(2)}%`, "--c": `var(--${phaseColour(phase.name)})` } },
        h("span", { class: "patch", "aria-hidden": "true" }), h("span", { class: "run-name", text: phase.text }),
        h("output", { text: i >= 0 ? `${exact(value)} s` : duration(value), "data-phase": phase.name, "data-value": String(value) }),
        h("span", { class: "share", text: percent(share) }));
    }));
  }

  describe() {
    const { list, total } = phasesOf(this.run);
    const most = list.reduce((a, b) => (b.total > a.total ? b : a), list[0]);
    this.caption.textContent = most ? `${duration(total)} in all; ${most.text} takes ${percent(most.total / total)} of it. Without the crosshair: mean per step, share of all time.` : "";
  }

  rows() {
    const { list } = phasesOf(this.run), xs = this.run.xs(state.x), rows = [];
    for (let i = 0; i < xs.length; i++) if (xs[i] >= view.from && xs[i] <= view.to) rows.push([this.run.steps[i], ...list.map(({ values }) => values[i])]);
    return { columns: ["step", ...list.map(({ text }) => `${text} (s)`)], rows };
  }
}

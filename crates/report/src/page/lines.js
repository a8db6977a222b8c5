// Line charts: one series per run.

/** Series with fewer points are never smoothed: an average would hide them. */
const SMOOTHED_FROM = 30;

class Lines extends Plot {
  /** `names` are names of one quantity; each run uses the first that it has. `bands` are as in CURVES. */
  constructor({ names, bands = {}, ...rest }) {
    super(rest);
    Object.assign(this, { aliases: names, bands });
  }

  /** Visible runs that have the series: {run, name, series, line (smoothed or not), xs}. */
  shown() {
    return visibleRuns().map((run) => ({ run, name: nameOf(run, this.aliases) })).filter(({ name }) => name).map(({ run, name }) => {
      const series = run.series(name);
      const smoothed = state.smooth > 0 && series.v.length >= SMOOTHED_FROM;
      return { run, name, series, smoothed, line: smoothed ? smooth(series, state.smooth) : series.v, xs: run.xs(state.x) };
    });
  }

  /** Points inside the x range and one more on each side. */
  slice({ series, xs }) {
    const at = (i) => xs[series.at[i]];
    return [Math.max(0, lastUntil(series.at.length, at, view.from) - 1), Math.min(series.at.length, lastUntil(series.at.length, at, view.to) + 2)];
  }

  yScale() {
    this.lines = this.shown();
    this.band = this.lines.length === 1 ? this.bands[this.lines[0].name]?.filter((name) => this.lines[0].run.has(name)) : null;
    if (this.band?.length !== 2) this.band = null;
    let low = Infinity, high = -Infinity, lowPositive = Infinity;
    const take = (entry, values) => {
      const [from, to] = this.slice(entry);
      for (let i = from; i < to; i++) {
        const v = values[i], x = entry.xs[entry.series.at[i]];
        if (!Number.isFinite(v) || x < view.from || x > view.to) continue;
        if (v < low) low = v;
        if (v > high) high = v;
        if (v > 0 && v < lowPositive) lowPositive = v;
      }
    };
    for (const entry of this.lines) take(entry, entry.series.v);
    if (this.band) for (const name of this.band) take({ ...this.lines[0], series: this.lines[0].run.series(name) }, this.lines[0].run.series(name).v);
    this.noLog = state.log && !(high > 0);
    return state.log && high > 0 ? logScale(lowPositive, high, this.height) : linearScale(low, high, this.height);
  }

  paint(ctx, box, y) {
    ctx.lineJoin = "round";
    if (this.band) this.paintBand(ctx, box, y);
    this.paintAlarms(ctx, box);
    for (const entry of this.lines) {
      const { run, series, xs } = entry, [from, to] = this.slice(entry), count = to - from;
      const line = (values, width, alpha, dash) => {
        ctx.strokeStyle = runColour(run);
        ctx.lineWidth = width;
        ctx.globalAlpha = alpha;
        ctx.lineCap = dash.length ? "butt" : "round";
        ctx.setLineDash(dash);
        trace(ctx, count, (i) => box.x(xs[series.at[from + i]]), (i) => box.y(values[from + i]),
          (i) => Number.isFinite(values[from + i]) && (!y.log || values[from + i] > 0));
      };
      if (entry.smoothed) line(series.v, 1, 0.3, []);
      line(entry.line, 1.75, 1, DASHES[run.index % 6]);
      ctx.globalAlpha = 1;
      ctx.setLineDash([]);
      this.paintMarks(ctx, box, y, entry, from, to);
    }
  }

  paintBand(ctx, box, y) {
    const { run, xs } = this.lines[0], [low, high] = this.band.map((name) => run.series(name));
    const within = (v) => box.y(y.log ? Math.max(v, y.low) : v);
    const edge = (series) => {
      const points = [];
      for (let i = 0; i < series.at.length; i++) {
        const x = xs[series.at[i]];
        if (Number.isFinite(series.v[i]) && x >= view.from && x <= view.to) points.push([box.x(x), within(series.v[i])]);
      }
      return points;
    };
    ctx.globalAlpha = 0.1;
    ctx.fillStyle = runColour(run);
    ctx.beginPath();
    for (const [px, py] of [...edge(high), ...edge(low).reverse()]) ctx.lineTo(px, py);
    ctx.fill();
    ctx.globalAlpha = 1;
  }

  /** Draws a triangle at the top and a thin line at the step of each alarm of the shown runs. */
  paintAlarms(ctx, box) {
    for (const { run } of this.lines) {
      const xs = run.xs(state.x);
      for (const { step } of run.alarms || []) {
        const at = run.steps.indexOf(step);
        if (at < 0 || xs[at] < view.from || xs[at] > view.to) continue;
        const x = box.x(xs[at]);
        ctx.strokeStyle = ctx.fillStyle = colour("bad");
        ctx.lineWidth = 1;
        ctx.globalAlpha = 0.5;
        ctx.beginPath();
        ctx.moveTo(x, box.top);
        ctx.lineTo(x, box.bottom);
        ctx.stroke();
        ctx.globalAlpha = 1;
        ctx.beginPath();
        ctx.moveTo(x - 4, box.top + 6); ctx.lineTo(x + 4, box.top + 6); ctx.lineTo(x, box.top);
        ctx.fill();
      }
    }
  }

  /** Draws dots if points are few, and marks values that are not finite at the axis: a triangle up or down, a cross for NaN. */
  paintMarks(ctx, box, y, { run, series, line, xs }, from, to) {
    const dots = (to - from) * 14 < box.right - box.left;
    ctx.fillStyle = ctx.strokeStyle = runColour(run);
    ctx.lineWidth = 1.5;
    for (let i = from; i < to; i++) {
      const v = series.v[i], x = box.x(xs[series.at[i]]);
      if (Number.isFinite(v)) {
        if (!dots || (y.log && v <= 0)) continue;
        ctx.beginPath();
        ctx.arc(x, box.y(line[i]), 2.5, 0, 7);
        ctx.fill();
        continue;
      }
      const at = v === Infinity ? box.top + 2 : box.bottom - 2, tip = v === Infinity ? -4 : 4;
      ctx.beginPath();
      if (Number.isNaN(v)) {
        const bottom = box.bottom - 4;
        ctx.moveTo(x - 3, bottom - 3); ctx.lineTo(x + 3, bottom + 3); ctx.moveTo(x + 3, bottom - 3); ctx.lineTo(x - 3, bottom + 3);
        ctx.stroke();
      } else {
        ctx.moveTo(x - 4, at); ctx.lineTo(x + 4, at); ctx.lineTo(x, at + tip);
        ctx.fill();
      }
    }
  }

  /** Shows the value of each run at the crosshair (or the last before it, with its step), or the last of all. */
  tell(x) {
    this.lines ??= this.shown();
    const several = runs.length > 1;
    this.readout.replaceChildren(...this.lines.map(({ run, series, line, smoothed, xs }) => {
      const i = x === null ? series.v.length - 1 : lastUntil(series.at.length, (j) => xs[series.at[j]], x);
      const here = i >= 0 && (x === null || xs[series.at[i]] === x);
      const value = i >= 0 ? series.v[i] : null;
      return h("li", {}, swatch(run), several && h("span", { class: "run-name", text: run.name }),
        h("output", { text: value === null ? "–" : exact(value), "data-run": run.key, "data-value": value === null ? "" : String(value), "data-step": i >= 0 ? String(run.steps[series.at[i]]) : "" }),
        smoothed && Number.isFinite(value) && h("span", { class: "smoothed", title: "smoothed", text: `avg ${format(line[i])}` }),
        i >= 0 && (!here || x === null) && h("span", { class: "at", text: `step ${run.steps[series.at[i]]}` }));
    }));
  }

  describe() {
    const used = [...new Set(this.lines.map(({ name }) => name))];
    this.names.textContent = used.join(", ");
    this.subtitle.hidden = used.length === 1 && used[0] === this.title;
    this.subtitle.title = this.subtitle.textContent;
    const notes = [], summary = [], asides = [];
    for (const { run, name } of this.lines) {
      const s = statistics(run, name), who = runs.length > 1 ? `${run.name}: ` : "";
      if (s.some && s.min.value === s.max.value) summary.push(`${who}always ${format(s.min.value)}`);
      else if (s.some) summary.push(`${who}first ${format(s.first.value)} · last ${format(s.last.value)} · min ${format(s.min.value)} (step ${s.min.step}) · max ${format(s.max.value)} (step ${s.max.step})`);
      const wrong = [s.nan && `${s.nan} NaN`, s.inf && `${s.inf} infinite`].filter(Boolean).join(", ");
      if (wrong) notes.push(`${who}${s.nan + s.inf} of ${s.count} values not finite (${wrong}), marked at the axis`);
      const hiddenByLog = state.log && !this.noLog ? Array.from(run.series(name).v).filter((v) => v <= 0 && v > -Infinity).length : 0;
      if (hiddenByLog) notes.push(`${who}${hiddenByLog} values ≤ 0 not on the log axis`);
    }
    if (this.noLog && this.lines.length) asides.push("no value above 0: linear axis");
    if (this.band) asides.push("band: min to max of the batch");
    this.caption.replaceChildren(
      h("span", { class: runs.length > 1 ? "hidden" : null, text: summary.join("; ") || (this.lines.length ? "no finite value" : "no visible run has this series") }),
      asides.length ? h("span", { text: `${summary.length && runs.length < 2 ? " · " : ""}${asides.join("; ")}` }) : "",
      notes.length ? h("span", { class: "note", text: notes.join("; ") }) : "");
  }

  rows() {
    const shown = this.shown(), byStep = new Map();
    shown.forEach(({ run, series, xs }, column) => {
      for (let i = 0; i < series.at.length; i++) {
        const x = xs[series.at[i]], step = run.steps[series.at[i]];
        if (x < view.from || x > view.to) continue;
        if (!byStep.has(step)) byStep.set(step, new Array(shown.length).fill(null));
        byStep.get(step)[column] = series.v[i];
      }
    });
    return { columns: ["step", ...shown.map(({ run, name }) => (runs.length > 1 ? run.name : name))], rows: [...byStep].sort((a, b) => a[0] - b[0]).map(([step, values]) => [step, ...values]) };
  }
}

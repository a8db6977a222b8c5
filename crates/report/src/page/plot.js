// Base of all charts: one canvas with axes, a crosshair at the same step in all charts, zoom, keys and a table.
// A chart is drawn when it is in view, at most once per frame.

const plots = new Set();
const waiting = new Set();
let frame = 0;

const inView = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    target.plot.visible = isIntersecting;
    if (isIntersecting) target.plot.later();
  }
}, { rootMargin: "300px" });
const resized = new ResizeObserver((entries) => {
  for (const { target } of entries) if (target.clientWidth !== target.plot.width) target.plot.touch();
});

/** The x range of all charts, and the x of every step that some visible run has. */
const view = { key: null, from: 0, to: 1, xs: new Float64Array() };
function refreshView() {
  const shown = visibleRuns();
  const key = shown;
  const all = new Set();
  for (const run of shown) for (const x of run.xs(state.x)) all.add(x);
  view.key = key;
  view.xs = Float64Array.from(all).sort();
  const [first, last] = [view.xs[0] ?? 0, view.xs[view.xs.length - 1] ?? 1];
  [view.from, view.to] = state.range || (first === last ? [first - 1, last + 1] : [first, last]);
}

class Plot {
  constructor({ title, hint = "", height = 190, heading = "h3" }) {
    Object.assign(this, { title, height, width: 0, dirty: true, visible: false, box: null });
    this.canvas = h("canvas", { "aria-hidden": "true" });
    this.where = h("span");
    this.cross = h("div", { class: "cross", hidden: true }, this.where);
    this.brush = h("div", { class: "brush", hidden: true });
    this.area = h("div", { class: "area", tabindex: 0, role: "slider", "aria-label": `${title}: step`, style: { "--height": `${height}px` } }, this.canvas, this.cross, this.brush);
    this.readout = h("ul", { class: "readout" });
    this.names = h("code");
    this.subtitle = h("p", { class: "subtitle" }, this.names, hint && h("span", { text: ` ${hint}` }));
    this.caption = h("figcaption");
    this.table = h("div", { class: "table-box", hidden: true, tabindex: 0, role: "region", "aria-label": `${title}: table` });
    this.toggle = button("Table", () => this.showTable(this.table.hidden), { class: "quiet", "aria-pressed": "false", "aria-label": `Table of ${title}` });
    this.head = h("div", { class: "plot-head" }, h(heading, { text: title }), this.toggle);
    this.element = h("figure", { class: "plot" }, this.head, this.subtitle, this.readout, this.area, this.table, this.caption);
    this.area.plot = this;
    this.listen();
    plots.add(this);
    inView.observe(this.area);
    resized.observe(this.area);
  }

  /** Redraws the chart when it is next in view. */
  touch() {
    this.dirty = true;
    if (this.visible) this.later();
  }

  later() {
    waiting.add(this);
    frame ||= requestAnimationFrame(drawWaiting);
  }

  draw() {
    if (!this.element.isConnected) return;
    if (this.dirty) {
      this.dirty = false;
      this.paintAll();
      this.describe();
      if (!this.table.hidden) this.showTable(true);
    }
    this.point();
  }

  paintAll() {
    const width = this.width = this.area.clientWidth, scale = devicePixelRatio || 1;
    if (!width || this.area.hidden) return;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(this.height * scale);
    const ctx = this.canvas.getContext("2d");
    ctx.scale(scale, scale);
    const y = this.yScale();
    ctx.font = FONT;
    const left = Math.ceil(Math.max(24, ...y.ticks.map((tick) => ctx.measureText(tick.text).width))) + 8;
    const box = this.box = { left, top: 8, right: width - 8, bottom: this.height - 22 };
    box.x = (x) => box.left + ((x - view.from) / (view.to - view.from)) * (box.right - box.left);
    box.unx = (px) => view.from + ((px - box.left) / (box.right - box.left)) * (view.to - view.from);
    box.y = (v) => box.bottom - y.share(v) * (box.bottom - box.top);
    drawAxes(ctx, box, y, width);
    ctx.save();
    ctx.beginPath();
    ctx.rect(box.left - 4, box.top - 6, box.right - box.left + 8, box.bottom - box.top + 10);
    ctx.clip();
    this.paint(ctx, box, y);
    ctx.restore();
  }

  /** Moves the crosshair and shows the values there; without crosshair, the last values. */
  point() {
    const x = state.cursor;
    const on = x !== null && this.box && x >= view.from && x <= view.to;
    this.cross.hidden = !on;
    if (on) {
      const px = this.box.x(x);
      this.cross.style.transform = `translateX(${px.toFixed(1)}px)`;
      this.where.textContent = xText(x);
      this.where.className = px > (this.box.left + this.box.right) / 2 ? "left" : "";
    }
    this.tell(on ? x : null);
    const text = [...this.readout.children].map((row) => row.textContent).join("; ");
    this.area.setAttribute("aria-valuetext", `${on ? xText(x) : "last"}: ${text}`);
    this.area.setAttribute("aria-valuenow", on ? +x.toPrecision(6) : +view.to.toPrecision(6));
    this.area.setAttribute("aria-valuemin", +view.from.toPrecision(6));
    this.area.setAttribute("aria-valuemax", +view.to.toPrecision(6));
  }

  listen() {
    const { area, brush } = this;
    let start = null;
    const at = (event) => event.clientX - area.getBoundingClientRect().left;
    const inside = (px) => this.box && Math.min(this.box.right, Math.max(this.box.left, px));
    area.addEventListener("pointermove", (event) => {
      if (!this.box) return;
      const px = inside(at(event));
      moveCursor(nearest(this.box.unx(px)));
      if (start === null) return;
      brush.hidden = Math.abs(px - start) < 4;
      brush.style.left = `${Math.min(px, start)}px`;
      brush.style.width = `${Math.abs(px - start)}px`;
    });
    area.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || !this.box) return;
      moveCursor(nearest(this.box.unx(inside(at(event)))));
      if (event.pointerType !== "mouse") return;
      start = inside(at(event));
      area.setPointerCapture(event.pointerId);
    });
    area.addEventListener("pointerup", (event) => {
      if (start === null) return;
      const [from, to] = [start, inside(at(event))].sort((a, b) => a - b).map(this.box.unx);
      const wide = !brush.hidden;
      start = null;
      brush.hidden = true;
      if (wide && to > from) zoom([from, to]);
    });
    area.addEventListener("pointercancel", () => { start = null; brush.hidden = true; });
    area.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse" && start === null && document.activeElement !== area) moveCursor(null); });
    area.addEventListener("dblclick", () => zoom(null));
    area.addEventListener("blur", () => moveCursor(null));
    area.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageUp: -10, PageDown: 10 }[event.key];
      const inRange = view.xs.filter((x) => x >= view.from && x <= view.to);
      const now = state.cursor === null ? inRange.length - 1 : lastUntil(inRange.length, (i) => inRange[i], state.cursor);
      const to = event.key === "Home" ? 0 : event.key === "End" ? inRange.length - 1 : step && now + step * (state.cursor === null ? 0 : 1);
      if (to !== undefined) moveCursor(inRange[Math.min(inRange.length - 1, Math.max(0, to))] ?? null);
      else if (event.key === "+" || event.key === "=") zoomBy(0.5);
      else if (event.key === "-") zoomBy(2);
      else return;
      event.preventDefault();
    });
  }

  showTable(on) {
    this.toggle.setAttribute("aria-pressed", String(on));
    this.table.hidden = !on;
    if (!on) return;
    const { columns, rows } = this.rows();
    this.table.replaceChildren(h("table", {}, h("caption", { text: `${this.title}, ${rows.length} ${rows.length === 1 ? "row" : "rows"}` }),
      h("thead", {}, h("tr", {}, columns.map((text) => h("th", { scope: "col", text })))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map((value, i) => h(i ? "td" : "th", { scope: i ? null : "row", text: value === null ? "" : exact(value) })))))));
  }

  remove() {
    plots.delete(this);
    waiting.delete(this);
    inView.unobserve(this.area);
    resized.unobserve(this.area);
    this.element.remove();
  }
}

function drawWaiting() {
  frame = 0;
  const now = [...waiting];
  waiting.clear();
  for (const plot of now) plot.draw();
  if (now.length && !performance.getEntriesByName("charts drawn").length) performance.mark("charts drawn");
}

const xText = (x) => (state.x === "time" ? `after ${duration(x)}` : `step ${exact(x)}`);

function nearest(x) {
  const i = lastUntil(view.xs.length, (j) => view.xs[j], x);
  const [before, after] = [view.xs[i], view.xs[i + 1]];
  if (before === undefined || before < view.from) return after ?? null;
  return after === undefined || after > view.to || x - before <= after - x ? before : after;
}

function moveCursor(x) {
  if (x === state.cursor) return;
  change("cursor", { cursor: x });
}

function zoom(range) {
  change("view", { range });
  announce(range ? `${xText(range[0])} to ${xText(range[1])}` : "all steps");
}

function zoomBy(factor) {
  const middle = state.cursor ?? (view.from + view.to) / 2, half = ((view.to - view.from) / 2) * factor;
  const [first, last] = [view.xs[0], view.xs[view.xs.length - 1]];
  const [from, to] = [Math.max(first, middle - half), Math.min(last, middle + half)];
  if (from <= first && to >= last) zoom(null);
  else if (to > from) zoom([from, to]);
}

listen("view", () => { refreshView(); for (const plot of plots) plot.touch(); });
listen("theme", () => { for (const plot of plots) plot.touch(); });
listen("cursor", () => {
  for (const plot of plots) if (plot.visible) plot.later();
  if (state.cursor !== null && document.activeElement?.plot) announce(xText(state.cursor));
});

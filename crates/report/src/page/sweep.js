// A sweep: the table of combinations, and the curves of a metric as bands over the seeds.

const sweep = JSON.parse(byId("data").textContent);
const all = sweep.combinations;
const chosen = { metric: sweep.metrics[0], band: "range", hidden: new Set() };
const DASHES = ["", "7 4", "2 3"];
const SIZE = { width: 1000, height: 380, left: 64, right: 16, top: 14, bottom: 34 };

const text = (value) => (typeof value === "number" ? String(+value.toPrecision(4)) : value ?? "–");
const spread = (numbers) => (numbers ? `${text(numbers[1])}${numbers[2] === null ? "" : ` ± ${+numbers[2].toPrecision(2)}`}` : "–");
const colourOf = (i) => ({ "--c": `var(--run-${i % 6})` });
const dashOf = (i) => DASHES[Math.floor(i / 6) % DASHES.length];

function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "style") for (const [property, it] of Object.entries(value)) element.style.setProperty(property, it);
    else if (name === "text") element.textContent = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.flat().filter(Boolean));
  return element;
}

/** Lists the jobs of a combination by their states. */
function states(one) {
  const counts = {};
  for (const job of one.jobs) counts[job.state] = (counts[job.state] || 0) + 1;
  return Object.entries(counts).map(([state, count]) => `${count} ${state}`).join(", ");
}

const legend = (i) => svg("svg", { width: 30, height: 10, "aria-hidden": "true", class: "bands-key", style: colourOf(i) },
  svg("line", { x1: 0, x2: 30, y1: 5, y2: 5, stroke: "var(--c)", "stroke-width": 3, "stroke-dasharray": dashOf(i) }));

function tableOf() {
  const heads = ["combination", "n", sweep.metric ?? "no results yet", "min", "max", "jobs"];
  const row = (one, i) => {
    const [count, , , least, greatest] = one.spread || [0];
    const show = (on) => { if (on) chosen.hidden.delete(i); else chosen.hidden.add(i); draw(); };
    return h("tr", { class: i === 0 && one.spread ? "best" : null }, h("th", { scope: "row" }, checkbox(one.label, !chosen.hidden.has(i), show), legend(i)),
      h("td", { text: String(count) }), h("td", { text: spread(one.spread) }),
      h("td", { text: text(least) }), h("td", { text: text(greatest) }), h("td", { text: states(one) }));
  };
  return h("div", { class: "wide" }, h("table", {}, h("caption", { text: "mean ± standard deviation of the last value of finished jobs over the seeds, the best first" }),
    h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col", text: head })))), h("tbody", {}, all.map(row))));
}

function ends([, [, mean, deviation, least, greatest]]) {
  return chosen.band === "range" ? [least, greatest] : [mean - (deviation ?? 0), mean + (deviation ?? 0)];
}

/** Returns about `count` round numbers between two numbers. */
function rounds(from, to, count) {
  const power = 10 ** Math.floor(Math.log10((to - from) / count)), rough = (to - from) / count;
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999);
  const found = [];
  for (let i = Math.ceil(from / step - 1e-9); i * step <= to + step * 1e-9; i++) found.push(+(i * step).toPrecision(10));
  return found;
}

function chart() {
  const { width, height, left, right, top, bottom } = SIZE;
  const curves = all.map((one, i) => ({ i, points: (one.curves[chosen.metric] || []).filter(([, numbers]) => typeof numbers[1] === "number") }))
    .filter(({ i, points }) => points.length > 0 && !chosen.hidden.has(i));
  if (!curves.length) return h("p", { class: "note", text: "no values" });
  const xs = curves.flatMap(({ points }) => points.map(([step]) => step)), ys = curves.flatMap(({ points }) => points.flatMap(ends));
  let [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  if (x0 === x1) [x0, x1] = [x0 - 1, x1 + 1];
  if (y0 === y1) [y0, y1] = [y0 - (Math.abs(y0) || 1) * 0.1, y1 + (Math.abs(y1) || 1) * 0.1];
  const x = (step) => left + ((step - x0) / (x1 - x0)) * (width - left - right), y = (value) => height - bottom - ((value - y0) / (y1 - y0)) * (height - top - bottom);
  const at = (step, value) => `${x(step).toFixed(1)},${y(value).toFixed(1)}`;
  const grid = rounds(y0, y1, 6).flatMap((value) => [svg("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }),
    svg("text", { x: left - 8, y: y(value) + 4, "text-anchor": "end", text: text(value) })]);
  const steps = rounds(x0, x1, 8).filter(Number.isInteger).map((step) => svg("text", { x: x(step), y: height - 12, "text-anchor": "middle", text: String(step) }));
  const drawn = curves.map(({ i, points }) => svg("g", { style: colourOf(i) },
    svg("path", { class: "band", d: `M${[...points.map((p) => at(p[0], ends(p)[1])), ...points.map((p) => at(p[0], ends(p)[0])).reverse()].join("L")}Z` }),
    svg("path", { class: "line", "stroke-dasharray": dashOf(i), d: `M${points.map(([step, numbers]) => at(step, numbers[1])).join("L")}` }),
    points.map(([step, numbers]) => svg("circle", { class: "dot", cx: x(step), cy: y(numbers[1]), r: points.length > 40 ? 0 : 3 },
      svg("title", { text: `${all[i].label}, step ${step}: ${spread(numbers)}, n ${numbers[0]}, ${text(numbers[3])} to ${text(numbers[4])}` })))));
  return svg("svg", { class: "bands", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${chosen.metric} by step; the table has the last values` }, grid, steps, drawn);
}

function draw() {
  const tools = h("div", { class: "tools" }, select("Metric", sweep.metrics.map((name) => [name, name]), chosen.metric, (name) => { chosen.metric = name; draw(); }),
    segmented("Band", [["range", "min to max"], ["deviation", "± sd"]], chosen.band, (band) => { chosen.band = band; draw(); }));
  fill("curves", "Curves", sweep.metrics.length > 0 && tools, h("p", { class: "hint", text: `${chosen.metric ?? ""} by step: the line is the mean over the seeds` }), chart());
}

function jobsOf() {
  const jobs = all.flatMap((one) => one.jobs.map((job) => ({ ...job, label: one.label })));
  const row = (job) => h("tr", {}, h("th", { scope: "row" }, h("code", { text: job.name })), h("td", { text: job.label }), h("td", { text: job.state }), h("td", { text: text(job.value) }), h("td", { text: job.error ?? "" }));
  return h("div", { class: "wide" }, h("table", {}, h("caption", { text: `${jobs.length} jobs; trainer report FOLDER shows one with its samples` }),
    h("thead", {}, h("tr", {}, ["folder", "combination", "state", sweep.metric ?? "result", "error"].map((head) => h("th", { scope: "col", text: head })))), h("tbody", {}, jobs.map(row))));
}

fill("table", `Sweep ${sweep.dir}`, tableOf(), h("p", { class: "hint" }, h("code", { text: sweep.command })));
draw();
fill("jobs", "Jobs", jobsOf());

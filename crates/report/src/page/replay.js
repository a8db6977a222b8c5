// One step made again: its proof, its samples token by token, and the size of its update.

const steps = JSON.parse(byId("data").textContent);
const step = steps[0];
const shown = (value) => (typeof value === "number" ? (Number.isInteger(value) ? String(value) : value.toPrecision(4)) : value ?? "–");
const rows = (caption, heads, lines) => h("div", { class: "wide" }, h("table", {}, h("caption", { text: caption }),
  h("thead", {}, h("tr", {}, heads.map((text) => h("th", { scope: "col", text })))),
  h("tbody", {}, lines.map((line) => h("tr", {}, line.map((text) => h("td", { text: shown(text) })))))));

function proofOf(one) {
  const changed = one.set.length > 0;
  const text = one.equal ? `step ${one.step}: equal to the record, ${one.compared} metrics byte for byte`
    : changed ? `step ${one.step}: ${one.differences.length} of ${one.compared} metrics change`
      : `step ${one.step}: ${one.differences.length} of ${one.compared} metrics differ from the record`;
  return [h("p", { class: one.equal || changed ? "note" : "error", text: `${text}; ${one.not_compared} of time and memory are not compared` }),
    one.differences.length > 0 && rows(changed ? `with ${one.set.join(" ")}` : "differences", ["metric", "record", "replay"],
      one.differences.map((pair) => [pair.metric, pair.record, pair.replay]))];
}

const last = (list) => list[list.length - 1];
const percent = (share) => (typeof share === "number" ? `${(100 * share).toFixed(1)} %` : "–");

function tokenTitle(text, columns, t) {
  const at = (name, column) => column && `${name} ${shown(column[t])}`;
  return [JSON.stringify(text.tokens[t]), text.mask[t] === 0 && "not trained", at("log π", columns?.log_prob), at("entropy", columns?.entropy),
    at("ratio", columns?.ratio), at("advantage", text.advantage), at("generated log π", text.generated_log_prob), columns?.clipped?.[t] && "clipped"].filter(Boolean).join(" · ");
}

function tokensOf(text, columns) {
  const greatest = Math.max(1e-9, ...(text.advantage || []).map((a) => Math.abs(a)));
  const line = h("p", { class: "token-line", role: "status", text: "point at a token for its numbers" });
  const spans = text.tokens.map((token, t) => {
    const advantage = text.mask[t] === 0 ? 0 : text.advantage?.[t] || 0;
    const doubt = 1 - Math.exp(Math.min(0, columns?.log_prob?.[t] ?? 0));
    const share = text.advantage ? Math.min(1, Math.abs(advantage) / greatest) : doubt;
    const tint = text.advantage ? (advantage > 0 ? "up" : advantage < 0 ? "down" : "none") : "doubt";
    return h("span", { class: `token${text.mask[t] === 0 ? " context" : ""}`, "data-tint": tint, title: tokenTitle(text, columns, t), text: token,
      style: { "--share": share.toFixed(3), "--weight": columns?.clipped?.[t] ? "3px" : "1px" }, on: { pointerover: () => { line.textContent = tokenTitle(text, columns, t); } } });
  });
  return [h("div", { class: "tokens", tabindex: 0, role: "group", "aria-label": "Response, token by token" }, spans), line];
}

function sampleOf(sample) {
  const gradient = last(sample.gradients);
  const facts = [`sample ${sample.sample}, row ${sample.row}`, sample.score !== null && `score ${shown(sample.score)}`,
    gradient && `‖g‖ ${shown(gradient.norm)}, ${percent(gradient.share)} of the gradient`, sample.finish && `ended by ${sample.finish}`];
  return h("article", { class: "sample" }, h("p", { class: "sample-head", text: facts.filter(Boolean).join(" · ") }),
    sample.texts.map((text) => h("div", { class: "text" }, h("h4", { text: "Prompt" }), h("pre", { text: text.prompt }), h("h4", { text: "Response" }), tokensOf(text, last(text.updates)))));
}

fill("proof", `Step ${step.step} of ${step.run}`, ...steps.flatMap(proofOf).filter(Boolean));
if (step.samples) {
  const sorted = [...step.samples].sort((a, b) => Math.abs(last(b.gradients)?.share ?? 0) - Math.abs(last(a.gradients)?.share ?? 0));
  const tokens = (sample) => sample.texts.reduce((sum, text) => sum + text.tokens.length, 0);
  fill("gradient", "Shares of the gradient", rows("at the last update that read the sample", ["sample", "row", "score", "tokens", "‖g‖", "share"],
    sorted.map((sample) => [sample.sample, sample.row, sample.score, tokens(sample), last(sample.gradients)?.norm, percent(last(sample.gradients)?.share)])));
  fill("texts", "Samples", ...sorted.map(sampleOf));
}
if (step.layers) {
  fill("layers", "Size of the update", rows("all updates of the step", ["layer", "‖ΔW‖", "‖W‖", "‖ΔW‖/‖W‖"],
    step.layers.map((layer) => [layer.layer, layer.change, layer.weights, layer.weights > 0 ? layer.change / layer.weights : "–"])));
}
fill("metrics", "Metrics", rows("all metrics of the step", ["metric", "record", "replay"], Object.keys({ ...step.record, ...step.replay }).map((name) => [name, step.record[name], step.replay[name]])));

// Scales, ticks and axes of the canvases.

const FONT = '11px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif';

/** Returns round numbers that divide a range into about `count` parts. */
function niceTicks(from, to, count) {
  const rough = (to - from) / Math.max(1, count), power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999) || rough;
  const ticks = [];
  for (let i = Math.ceil(from / step - 1e-9); i * step <= to + step * 1e-9 && ticks.length < 50; i++) ticks.push(i * step);
  return ticks.map((t) => (Math.abs(t) < step * 1e-9 ? 0 : +t.toPrecision(12)));
}

const THOUSANDS = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
function tickText(value) {
  const [size, letter] = (Math.abs(value) >= 10000 && Math.abs(value) < 1e15 && THOUSANDS.find(([size]) => Math.abs(value) >= size)) || [1, ""];
  return format(value / size, 5) + letter;
}

/** A linear scale over [low, high], with room above and below; it starts at 0 if that wastes little. */
function linearScale(low, high, height, tight = false) {
  if (!(high >= low)) [low, high] = [0, 1];
  if (low === 0 && high === 0) high = 1;
  else if (low === high) { const pad = Math.abs(low) * 0.1 || 1; low -= pad; high += pad; }
  else if (!tight) {
    const pad = (high - low) * 0.06, positive = low >= 0;
    high += pad;
    low = positive && low < high * 0.35 ? 0 : low - pad;
    if (positive) low = Math.max(0, low);
  }
  const ticks = niceTicks(low, high, height / 40).map((value) => ({ value, text: tickText(value) }));
  return { low, high, ticks, log: false, share: (v) => (v - low) / (high - low) };
}

/** A logarithmic scale; `low` and `high` are above 0. */
function logScale(low, high, height) {
  let [from, to] = [Math.log10(low), Math.log10(high)];
  if (to - from < 0.05) { from -= 0.1; to += 0.1; }
  const pad = (to - from) * 0.05;
  from -= pad; to += pad;
  const stride = Math.max(1, Math.ceil((to - from) / (height / 30)));
  const parts = to - from < 1.5 ? [1, 2, 3, 5, 7] : [1];
  let ticks = [];
  for (let e = Math.floor(from); e <= to; e += stride) for (const m of parts) ticks.push(m * 10 ** e);
  ticks = ticks.filter((t) => Math.log10(t) >= from && Math.log10(t) <= to);
  if (ticks.length < 2) ticks = niceTicks(10 ** from, 10 ** to, 4).filter((t) => t > 0);
  return {
    low: 10 ** from, high: 10 ** to, log: true, ticks: ticks.map((value) => ({ value, text: tickText(+value.toPrecision(3)) })),
    share: (v) => (Math.log10(v) - from) / (to - from),
  };
}

const TIME_UNITS = [[1, "s"], [60, "min"], [3600, "h"], [86400, "d"]];

function xTicks(box) {
  const count = (box.right - box.left) / 75;
  if (state.x !== "time") return niceTicks(view.from, view.to, count).filter(Number.isInteger).map((value) => ({ value, text: tickText(value) }));
  const [size, unit] = TIME_UNITS.findLast(([seconds]) => view.to >= seconds * 2) || TIME_UNITS[0];
  return niceTicks(view.from / size, view.to / size, count).map((value) => ({ value: value * size, text: `${tickText(value)} ${unit}` }));
}

function drawAxes(ctx, box, y, width) {
  ctx.clearRect(0, 0, width, box.bottom + 40);
  ctx.lineWidth = 1;
  ctx.strokeStyle = colour("grid");
  ctx.fillStyle = colour("muted");
  ctx.textAlign = "right";
  ctx.textBaseline = "middle";
  ctx.beginPath();
  for (const { value, text } of y.ticks) {
    const at = Math.round(box.y(value)) + 0.5;
    if (at < box.top - 1 || at > box.bottom + 1) continue;
    ctx.moveTo(box.left, at);
    ctx.lineTo(box.right, at);
    ctx.fillText(text, box.left - 6, at);
  }
  ctx.stroke();
  ctx.textBaseline = "top";
  ctx.textAlign = "center";
  ctx.strokeStyle = colour("axis");
  ctx.beginPath();
  ctx.moveTo(box.left, box.bottom + 0.5);
  ctx.lineTo(box.right, box.bottom + 0.5);
  for (const { value, text } of xTicks(box)) {
    const at = Math.round(box.x(value)) + 0.5, half = ctx.measureText(text).width / 2;
    ctx.moveTo(at, box.bottom);
    ctx.lineTo(at, box.bottom + 4);
    ctx.fillText(text, Math.max(half, Math.min(width - half, at)), box.bottom + 7);
  }
  ctx.stroke();
}

/** Draws a line through points in x order. Of several points in one pixel column, it keeps the first, lowest, highest and last.
 *  Points that cannot be drawn (`ok` false) leave a gap, and a point between two gaps is a dot. */
function trace(ctx, count, xAt, yAt, ok) {
  let pen = 0, column = NaN, first = 0, low = 0, high = 0, last = 0, x0 = 0;
  const flush = () => {
    if (Number.isNaN(column)) return;
    if (pen++) ctx.lineTo(x0, first); else ctx.moveTo(x0, first);
    if (low !== high) { ctx.lineTo(x0, low); ctx.lineTo(x0, high); ctx.lineTo(x0, last); }
    column = NaN;
  };
  const lift = () => {
    flush();
    if (pen === 1) ctx.lineTo(x0 + 0.1, last);
    pen = 0;
  };
  ctx.beginPath();
  for (let i = 0; i < count; i++) {
    if (!ok(i)) { lift(); continue; }
    const x = xAt(i), y = yAt(i), c = Math.round(x);
    if (c === column) {
      if (y < low) low = y;
      if (y > high) high = y;
      last = y;
    } else {
      flush();
      column = c; x0 = x; first = low = high = last = y;
    }
  }
  lift();
  ctx.stroke();
}

// Tokens of a response, tinted by advantage or probability. The underline shows the same as the colour.

/** Text of a tool or a user has no log-probability and no advantage. */
const isContext = (sample, i) => sample.sampled?.[i] === 0;
const token = (sample, i) => ({ text: sample.tokens[i],
  logProb: isContext(sample, i) ? null : number(sample.log_probs?.[i]), advantage: isContext(sample, i) ? null : number(sample.advantages?.[i]) });
const number = (value) => (typeof value === "number" ? value : value in NAMED ? NAMED[value] : null);

function tokenText(sample, i, tint) {
  const { text, logProb, advantage } = token(sample, i);
  const parts = [`token ${i + 1} of ${sample.tokens.length}: ${JSON.stringify(text)}`];
  if (isContext(sample, i)) return [...parts, "not sampled: text of a tool, a user or an environment"].join(" · ");
  const said = {
    advantage: advantage !== null && `advantage ${exact(advantage)}`,
    probability: logProb !== null && `log-prob ${exact(logProb)}, probability ${percent(Math.exp(logProb))}`,
  };
  return [...parts, ...(tint === "probability" ? [said.probability, said.advantage] : [said.advantage, said.probability]).filter(Boolean)].join(" · ");
}

/** Advantage at full tint: the largest of these samples. */
function greatestAdvantage(samples) {
  let most = 1e-9;
  for (const { advantages } of samples) for (const a of advantages || []) if (Math.abs(a) > most && Number.isFinite(a)) most = Math.abs(a);
  return most;
}

/** A response as tinted tokens. It is one stop of the Tab key; arrow keys move between tokens, and the line below describes the token. */
function tokenView(sample, tint, greatest) {
  const spans = sample.tokens.map((text, i) => {
    const { logProb, advantage } = token(sample, i);
    const attributes = { class: `token${text.includes("\n") ? " line" : ""}${isContext(sample, i) ? " context" : ""}`, title: tokenText(sample, i, tint), "data-i": i };
    if (tint === "advantage" && advantage) {
      const share = Math.min(1, Math.abs(advantage) / greatest);
      attributes["data-tint"] = advantage > 0 ? "up" : advantage < 0 ? "down" : "none";
      attributes.style = { "--share": share.toFixed(3), "--weight": `${Math.max(1, Math.round(share * 3))}px` };
    } else if (tint === "probability" && logProb !== null) {
      const doubt = 1 - Math.exp(Math.min(0, logProb));
      attributes["data-tint"] = doubt < 0.02 ? "none" : "doubt";
      attributes.style = { "--share": doubt.toFixed(3), "--weight": `${doubt < 0.02 ? 0 : Math.max(1, Math.round(doubt * 3))}px` };
    }
    return h("span", { ...attributes, text });
  });
  const line = h("p", { class: "token-line", role: "status" });
  let current = -1;
  const show = (i, mark) => {
    if (i === current) return;
    spans[current]?.classList.remove("current");
    current = i;
    line.textContent = i < 0 ? hintLine : tokenText(sample, i, tint);
    if (i >= 0 && mark) spans[i].classList.add("current");
  };
  const hintLine = spans.length ? `${spans.length} tokens; point at one, or focus here and use the arrow keys` : "no tokens";
  line.textContent = hintLine;
  const of = (event) => Number(event.target.closest?.(".token")?.dataset.i ?? -1);
  const box = h("div", { class: "tokens", tabindex: 0, role: "group", "aria-label": "Response, token by token", on: {
    pointerover: (event) => { if (of(event) >= 0) show(of(event), true); },
    click: (event) => { if (of(event) >= 0) show(of(event), true); },
    pointerleave: () => { if (document.activeElement !== box) show(-1); },
    focus: () => { if (current < 0 && spans.length && box.matches(":focus-visible")) show(0, true); },
    blur: () => show(-1),
    keydown: (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      const to = event.key === "Home" ? 0 : event.key === "End" ? spans.length - 1 : step && Math.min(spans.length - 1, Math.max(0, current + step));
      if (to === undefined || !spans.length) return;
      show(to, true);
      event.preventDefault();
      event.stopPropagation();
    },
  } }, spans);
  return [box, line];
}

/** Legend of the tints. */
function tintKey(tint, talks) {
  const keys = { advantage: [["up", 1, "advantage above 0: more of this"], ["down", 1, "below 0: less of this"]], probability: [["doubt", 1, "improbable"], ["doubt", 0.4, "likely"], ["none", 0, "certain"]] }[tint];
  return h("p", { class: "tint-key hint" }, keys && keys.map(([kind, share, text]) => h("span", {}, h("span", { class: "token", "data-tint": kind, text: "abc", style: { "--share": share, "--weight": `${Math.round(share * 3)}px` } }), ` ${text}`)),
    talks && h("span", {}, h("span", { class: "token context", text: "abc" }), " not sampled"),
    tint === "advantage" && h("span", { text: "thicker = larger among the shown samples" }), tint === "probability" && h("span", { text: "thicker = less probable" }));
}

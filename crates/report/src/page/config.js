// The configuration with the source of each value; for several runs, the settings that differ.

let configFind = "";

const shownValue = (value) => (value === undefined ? "not set" : typeof value === "string" ? value : JSON.stringify(value));

function renderConfig() {
  const having = runs.filter((run) => run.config.length);
  if (!having.length) { byId("config").hidden = true; return; }
  const several = having.length > 1;
  const note = h("p", { class: "hint", role: "status" });
  const body = h("tbody");
  const table = h("table", { class: several ? "diff" : "" }, h("caption", { class: "hidden", text: "Configuration" }),
    h("thead", {}, h("tr", {}, h("th", { scope: "col", text: "Key" }), several ? having.map((run) => h("th", { scope: "col" }, swatch(run), ` ${run.name}`)) : [h("th", { scope: "col", text: "Value" }), h("th", { scope: "col", text: "From" })])), body);
  const byKey = new Map();
  having.forEach((run, column) => run.config.forEach((entry) => {
    if (!byKey.has(entry.key)) byKey.set(entry.key, new Array(having.length).fill(undefined));
    byKey.get(entry.key)[column] = entry;
  }));
  const differs = (entries) => new Set(entries.map((entry) => (entry ? JSON.stringify(entry.value) : "unset"))).size > 1;
  const list = () => {
    const rows = [...byKey].filter(([key, entries]) => (!several || state.all || differs(entries))
      && (!configFind || `${key}\n${entries.map((e) => (e ? `${shownValue(e.value)}\n${e.from}` : "")).join("\n")}`.toLowerCase().includes(configFind)));
    body.replaceChildren(...rows.map(([key, entries]) => h("tr", { class: several && differs(entries) ? "differs" : null }, h("th", { scope: "row" }, h("code", { text: key })),
      several ? entries.map((entry, column) => h("td", { "data-name": having[column].name }, h("code", { text: shownValue(entry?.value) }), entry && h("span", { class: "hint from", text: entry.from })))
        : [h("td", { "data-name": "Value" }, h("code", { text: shownValue(entries[0].value) })), h("td", { class: "hint", "data-name": "From", text: entries[0].from })])));
    const all = byKey.size, different = [...byKey.values()].filter(differs).length;
    note.textContent = several ? `${different} of ${all} keys differ${rows.length === different && !state.all ? "" : `; ${rows.length} shown`}` : `${rows.length === all ? all : `${rows.length} of ${all}`} keys`;
  };
  fill("config", several ? "Configuration, compared" : "Configuration",
    h("div", { class: "tools" }, searchBox("Filter keys, values and sources", configFind, (text) => { configFind = text; list(); }),
      several && checkbox("Show all keys", state.all, (all) => { change("config", { all }); list(); }), note),
    h("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Configuration table" }, table));
  list();
}

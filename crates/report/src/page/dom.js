// Elements. Every text is set by textContent, so that a model's output is never markup.

/** Creates an element: `text` is its text, `on` its listeners, `style` its custom properties; null and false attributes are left out. */
function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") element.textContent = value;
    else if (name === "on") for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else if (name === "style") for (const [property, it] of Object.entries(value)) element.style.setProperty(property, it);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

const byId = (id) => document.getElementById(id);

/** Fills a section with a heading and its contents, and shows it. */
function fill(id, title, ...children) {
  const section = byId(id);
  section.replaceChildren(h("div", { class: "section-head" }, h("h2", { id: `${id}-title`, text: title })), ...children.filter(Boolean));
  section.hidden = false;
  return section;
}

let controls = 0;

/** A labelled choice of a few options, as radio buttons in one row. */
function segmented(label, options, value, choose) {
  const name = `choice-${++controls}`;
  return h("fieldset", { class: "segmented" }, h("legend", { text: label }),
    options.map(([id, text]) => h("label", {},
      h("input", { type: "radio", name, value: id, checked: id === value, on: { change: () => choose(id) } }), h("span", { text }))));
}

function select(label, options, value, choose) {
  const list = h("select", { on: { change: () => choose(list.value) } }, options.map(([id, text]) => h("option", { value: id, selected: id === value, text })));
  return h("label", { class: "field" }, `${label} `, list);
}

function checkbox(label, checked, choose) {
  const box = h("input", { type: "checkbox", checked, on: { change: () => choose(box.checked) } });
  return h("label", { class: "check" }, box, h("span", { text: label }));
}

/** A search box that reports its text when typing pauses. */
function searchBox(label, value, found) {
  let timer = 0;
  const box = h("input", { type: "search", placeholder: label, "aria-label": label, autocomplete: "off", spellcheck: "false",
    on: { input: () => { clearTimeout(timer); timer = setTimeout(() => found(box.value.trim().toLowerCase()), 120); } } });
  box.value = value;
  return box;
}

const button = (text, press, attributes = {}) => h("button", { type: "button", text, on: { click: press }, ...attributes });

/** A short line in the colour and dash pattern of a run. */
function swatch(run) {
  return h("span", { class: "swatch", "aria-hidden": "true", style: { "--c": `var(--run-${run.index % 6})` }, "data-dash": run.index % 6 });
}

const announce = (() => {
  let timer = 0;
  return (text) => {
    clearTimeout(timer);
    timer = setTimeout(() => { byId("announce").textContent = text; }, 250);
  };
})();

// The controls of a calculator: sliders with a field for any value, menus with a filter.  Each is a `row` and a `refresh`.

// What a control is, in words; at the end of the line its name in code, for who wants it.
const called = (control, id) => make("label", { for: id }, make("span", {}, control.label), " ", make("code", { class: "sb-word", title: "its name in Python" }, control.name));

// Of what kind an assumption is, for who has not yet opened the fold: by its unit, and what is counted by what its meaning counts.
const KINDS = [["how the work is split", (x) => !x.unit && /\b(ways|stages?|devices?|sites?|ports|domain|micro-batches)\b/.test(x.label)], ["number formats", (x) => x.unit === "bit"],
  ["shares and efficiencies", (x) => x.unit === "%"], ["prices", (x) => x.unit?.startsWith("$")], ["electricity and carbon", (x) => x.unit?.endsWith("MWh")], ["times", (x) => x.unit === "s"], ["memory and links", (x) => /^B/.test(x.unit)], ["the work itself", () => true]];
function grouped(controls) {
  const groups = new Map(KINDS.map(([kind]) => [kind, []]));
  for (const x of controls) groups.get(KINDS.find(([, holds]) => holds(x))[0]).push(x);
  return [...groups].filter(([, own]) => own.length);
}

function slider(control, id, change) {
  const range = make("input", { type: "range", id, min: 0, max: control.values.length - 1, step: 1, class: "sb-range" });
  const typed = make("input", { type: "text", class: "sb-typed", "aria-label": `${control.label}, typed`, autocomplete: "off", spellcheck: "false" });
  const wrong = make("p", { class: "sb-wrong", role: "alert", hidden: true, id: `${id}-wrong` });
  const row = make("div", { class: "sb-control", "data-name": control.name }, called(control, id), make("div", { class: "sb-inputs" }, range, typed), wrong);
  const refuse = (text) => {
    wrong.textContent = text ?? "";
    wrong.hidden = !text;
    typed.toggleAttribute("aria-invalid", Boolean(text));
    if (text) typed.setAttribute("aria-describedby", wrong.id);
  };
  range.addEventListener("input", () => change(control.values[Number(range.value)]));
  const enter = () => {
    const { value, error } = parse(typed.value, control.unit);
    const needs = { positive: "more than zero", nonnegative: "zero or more", share: "between 0 and 100 %", real: "a number" }[control.sign];
    if (error) return refuse(error);
    if (!good(value, control.sign)) return refuse(`this must be ${needs}`);
    if (control.whole && !Number.isInteger(value)) return refuse("this must be a whole number");
    refuse();
    change(value);
    return undefined;
  };
  typed.addEventListener("change", enter);
  typed.addEventListener("keydown", (event) => { if (event.key === "Enter") enter(); });
  typed.addEventListener("focus", () => typed.select());
  const nearest = (value) => {
    const far = control.values.map((x) => (x > 0 && value > 0 ? Math.abs(Math.log(x / value)) : Math.abs(x - value)));
    return far.indexOf(Math.min(...far));
  };
  return { row, refresh(state) {
    const value = state[control.name], text = plural(exact(value, control.unit));
    range.value = nearest(value);
    range.setAttribute("aria-valuetext", text);
    const short = /tokens?\b/.test(control.label) ? text.replace(/ tokens?$/, "") : text; // the label has said it
    if (typed.value !== short) { typed.value = short; refuse(); }
  } };
}

// What stands at one of two values is no slider; a link may still bring a third, which is then offered too.
function pair(control, id, change) {
  const select = make("select", { id }), option = (x) => make("option", { value: x }, plural(exact(x, control.unit)));
  select.append(...control.values.map(option));
  select.addEventListener("change", () => change(Number(select.value)));
  const row = make("div", { class: "sb-control", "data-name": control.name }, called(control, id), make("div", { class: "sb-inputs" }, select));
  return { row, refresh(state) {
    const value = state[control.name], own = [...select.options].some((x) => Number(x.value) === value);
    if (!own) { select.options[2]?.remove(); select.append(option(value)); }
    select.value = [...select.options].find((x) => Number(x.value) === value).value;
  } };
}

const MANY = 12;

function chooser(control, id, change, spec) {
  const select = make("select", { id }), precise = control.name === "precision";
  const groups = new Map();
  for (const option of control.options) {
    const node = make("option", { value: option.key }, option.label), group = control.groups?.[option.key];
    if (group === undefined || control.options.length <= MANY) select.append(node);
    else {
      if (!groups.has(group)) { groups.set(group, make("optgroup", { label: group })); select.append(groups.get(group)); }
      groups.get(group).append(node);
    }
  }
  select.addEventListener("change", () => change(select.value));
  const row = make("div", { class: "sb-control", "data-name": control.name }, make("label", { for: id }, control.label));
  const inputs = make("div", { class: "sb-inputs" }, select);
  row.append(inputs);
  if (control.options.length > MANY) {
    const filter = make("input", { type: "search", class: "sb-filter-menu", placeholder: "find", "aria-label": `search the menu: ${control.label}` });
    const nodes = [...select.querySelectorAll("option")];
    const fits = (node) => filter.value.toLowerCase().split(/\s+/).every((word) => node.textContent.toLowerCase().includes(word));
    filter.addEventListener("input", () => {
      for (const node of nodes) node.hidden = node.disabled = !fits(node);
      for (const group of groups.values()) group.hidden = [...group.children].every((x) => x.hidden);
      const left = nodes.filter((x) => !x.hidden);
      filter.setAttribute("aria-invalid", String(!left.length));
      if (filter.value && left.length && !left.includes(select.selectedOptions[0])) change(left[0].value);
    });
    filter.addEventListener("keydown", (event) => { if (event.key === "Escape") { filter.value = ""; filter.dispatchEvent(new Event("input")); } });
    inputs.append(filter);
  }
  return { row, refresh(state) {
    if (precise) {
      const has = new Set(offered(spec, state).map((x) => x.key));
      for (const node of select.options) node.hidden = node.disabled = !has.has(node.value) && node.value !== state.precision;
    }
    for (const node of select.options) if (node.value === state[control.name]) node.hidden = node.disabled = false;
    select.value = state[control.name];
  } };
}

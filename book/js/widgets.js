// Show the widgets stored in a page, with no kernel.  All of them are anywidgets: a module that draws, and a model that
// holds traits and says when one changes.  This is such a model.
const STATE = 'script[type="application/vnd.jupyter.widget-state+json"]';
const VIEW = 'script[type="application/vnd.jupyter.widget-view+json"]';

class Model {
  #state;
  #heard = new Map();
  constructor(state) { this.#state = { ...state }; }
  get(name) { return this.#state[name]; }
  set(name, value) {
    if (Object.is(this.#state[name], value)) return;
    this.#state[name] = value;
    for (const event of [`change:${name}`, "change"]) for (const f of [...(this.#heard.get(event) ?? [])]) f();
  }
  save_changes() {}  // there is nobody to tell
  send() {}
  on(event, f) { this.#heard.set(event, (this.#heard.get(event) ?? new Set()).add(f)); }
  off(event, f) {
    if (f) this.#heard.get(event)?.delete(f);
    else this.#heard.delete(event);
  }
}

// What draws widgets of one kind is made, and its style added, once.
const kinds = new Map();
function kind(id) {
  if (!kinds.has(id)) {
    const { make, css } = globalThis.scalebook.modules[id], style = document.createElement("style");
    style.textContent = css ?? "";
    document.head.append(style);
    kinds.set(id, make());
  }
  return kinds.get(id);
}

async function show(tag, saved) {
  const own = saved[JSON.parse(tag.textContent).model_id]?.state;
  if (!own) return;
  const made = kind(own._anywidget_id), widget = typeof made === "function" ? await made() : made;
  const place = document.createElement("div"), el = document.createElement("div"), model = new Model(own);
  place.className = "sb-widget";
  place.append(el);
  tag.before(place);
  await widget.initialize?.({ model });
  await widget.render?.({ model, el });
}

// Equations were set when the site was built.  Those with a reader's own numbers are set here: what does it is fetched
// when the first of them is opened.
let katex;
function fetched() {
  return katex ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = `${document.documentElement.dataset.content_root}_static/katex/katex.min.js`;
    script.onload = () => resolve(globalThis.katex);
    script.onerror = reject;
    document.head.append(script);
  });
}

async function typeset(node) {
  if (!globalThis.katex) node.style.visibility = "hidden";  // rather than TeX
  const { renderToString } = await fetched();
  const walk = document.createTreeWalker(node, NodeFilter.SHOW_TEXT), texts = [];
  while (walk.nextNode()) if (/\\[([]/.test(walk.currentNode.data)) texts.push(walk.currentNode);
  for (const text of texts) {
    const pieces = text.data.split(/(\\\(.+?\\\)|\\\[.+?\\\])/s).map((x) => {
      if (!/^\\[([]/.test(x)) return x;
      const place = document.createElement("span");
      place.innerHTML = renderToString(x.slice(2, -2), { displayMode: x[1] === "[", strict: false, throwOnError: false, errorColor: "currentColor" })
        .replaceAll("\nMM", "\nM");  // as book/js/typeset.js does
      return place;
    });
    text.replaceWith(...pieces);
  }
  node.style.visibility = "";
}

async function start() {
  (globalThis.scalebook ??= {}).typeset = typeset;
  const state = document.querySelector(STATE);
  if (!state) return;
  const saved = JSON.parse(state.textContent).state;
  for (const tag of document.querySelectorAll(VIEW)) await show(tag, saved);
  document.documentElement.dataset.widgets = "live";
}

if (document.readyState === "loading") addEventListener("DOMContentLoaded", start);
else start();

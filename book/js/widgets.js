// Show the widgets stored in a page, with no kernel: a manager for the stock controls and for anywidget,
// the only two families the book uses.  (The general html-manager carries a notebook's whole output
// machinery, four times the weight.)
import * as base from "@jupyter-widgets/base";
import { ManagerBase } from "@jupyter-widgets/base-manager";
import * as controls from "@jupyter-widgets/controls";
import { Widget } from "@lumino/widgets";
import anywidget from "anywidget";
import "@lumino/widgets/style/index.css";
import "@jupyter-widgets/base/css/index.css";
import "@jupyter-widgets/controls/css/labvariables.css";
import "@jupyter-widgets/controls/css/widgets-base.css";

const FAMILIES = { "@jupyter-widgets/base": base, "@jupyter-widgets/controls": controls, anywidget };
const STATE = 'script[type="application/vnd.jupyter.widget-state+json"]';
const VIEW = 'script[type="application/vnd.jupyter.widget-view+json"]';

// anywidget gives a widget up that has not started within two seconds; a busy phone may need longer.
const timeout = AbortSignal.timeout.bind(AbortSignal);
AbortSignal.timeout = (milliseconds) => timeout(Math.max(milliseconds, 60_000));

class Manager extends ManagerBase {
  async loadClass(name, family) {
    const found = FAMILIES[family]?.[name];
    if (!found) throw new Error(`${family} ${name} works in JupyterLab only`);
    return found;
  }
  async _get_comm_info() { return {}; }
  async _create_comm() { return { on_close() {}, on_msg() {}, close() {} }; }
}

async function show(manager, tag) {
  const { model_id } = JSON.parse(tag.textContent);
  if (!manager.has_model(model_id)) return;
  const view = await manager.create_view(await manager.get_model(model_id));
  const place = document.createElement("div");
  place.className = "sb-widget";
  tag.before(place);
  Widget.attach(view.luminoWidget, place);
}

async function start() {
  const state = document.querySelector(STATE);
  if (!state) return;
  const manager = new Manager(), saved = JSON.parse(state.textContent);
  // A widget's own script is the same on every page: it stands in the file that all of them share.
  for (const { state: own } of Object.values(saved.state)) Object.assign(own, globalThis.scalebook?.modules[own._anywidget_id]);
  await manager.set_state(saved);
  for (const tag of document.querySelectorAll(VIEW)) await show(manager, tag);
  document.documentElement.dataset.widgets = "live";
}

if (document.readyState === "loading") addEventListener("DOMContentLoaded", start);
else start();

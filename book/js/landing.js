// The sentence of the landing page: three menus, the package's own formulas, no kernel and no widget.
import { answers, show, whole } from "../../scalebook/display/live.js";

const ORDER = ["model", "weight_bits", "device"];

function sentence(box, { spec, data }) {
  const at = whole(spec, data), units = { ...at.units, ...Object.fromEntries(at.outputs.map((x) => [x.letter, x.unit])) };
  const menus = ORDER.map((name) => box.querySelector(`[name=${name}]`));
  const put = (name, text) => { box.querySelector(`[data-said=${name}]`).textContent = text; };
  function say() {
    const chosen = Object.fromEntries(menus.map(({ name, value }) => [name, name === "weight_bits" ? +value : value]));
    const { values, message } = answers(at, { ...spec.start, ...chosen });
    const of = (letter) => show(values[letter], units[letter]);
    const fits = values.decode_memory <= values.hbm_capacity, waiting = 1 - values.compute_time / values.memory_time;
    box.toggleAttribute("data-full", !fits);
    box.querySelector(".sb-answered").hidden = !fits;
    box.querySelector(".sb-refused").hidden = fits;
    if (!fits) {
      const devices = Math.ceil(values.decode_memory / values.hbm_capacity);
      put("refused", Number.isFinite(devices)
        ? `it does not fit. Weights and a cache of ${show(values.context, "")} tokens are ${of("decode_memory")}, `
          + `the device holds ${of("hbm_capacity")}; ${devices} of them would hold it.`
        : message);
    } else {
      put("time", of("token_time"));
      put("waiting", show(Math.max(0, waiting), "%"));
      box.querySelector(".sb-at-work").style.flexGrow = Math.min(1, 1 - waiting);
      box.querySelector(".sb-waits").style.flexGrow = Math.max(0, waiting);
    }
    for (const x of box.querySelectorAll("[data-letter]")) x.textContent = of(x.dataset.letter);
  }
  menus.forEach((menu) => menu.addEventListener("input", say));
  say();
}

const box = document.querySelector(".sb-sentence");
if (box) sentence(box, globalThis.scalebook_landing);

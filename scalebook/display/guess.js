// A box for the reader's own answer: it says whether the answer is right, and else by which factor it is off.

// How far a typed number is from the answer, in words.
export function judged(value, { answer, unit, within }) {
  const ratio = value / answer, factor = ratio > 1 ? ratio : 1 / ratio;
  if (Math.abs(ratio - 1) <= within) return `Right: ${show(answer, unit)}.`;
  if (!(ratio > 0)) return "The answer is a positive number.";
  const off = factor < 2 ? `${Math.round(100 * Math.abs(ratio - 1))} %` : factor < 1e4 ? `a factor of ${plain(Number(factor.toPrecision(2)))}` : "more than a factor of 10,000";
  return `Too ${ratio > 1 ? "high" : "low"}, by ${off}.`;
}

export default {
  render({ model, el }) {
    const asked = model.get("asked"), like = show(asked.answer, asked.unit).split(" ").slice(1).join(" ");
    const id = `sb-guess-${Math.random().toString(36).slice(2)}`;
    const typed = make("input", { type: "text", id, autocomplete: "off", spellcheck: "false", placeholder: `your answer${like ? `, in ${like}` : ""}` });
    const check = make("button", { type: "submit", title: `right within ${Math.round(100 * asked.within)} %` }, "check");
    const said = make("output", { "aria-live": "polite" });
    const reveal = make("button", { type: "button", onclick: () => { said.textContent = show(asked.answer, asked.unit); } }, "show the answer");
    const line = make("div", { class: "sb-buttons" }, typed, check, reveal, said);
    const box = make("form", { class: "sb-calculator sb-guess" }, make("label", { for: id }, asked.question), line);
    el.append(box);
    box.addEventListener("submit", (event) => {
      event.preventDefault();
      const { value, error } = parse(typed.value, asked.unit);
      said.textContent = error ?? judged(value, asked);
      typed.toggleAttribute("aria-invalid", Boolean(error));
    });
  },
};

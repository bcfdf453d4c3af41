// How far down the page the answer and the first control of its first calculator end, in pixels.
() => {
  const box = document.querySelector(".sb-calculator");
  const below = (x) => box.querySelector(x).getBoundingClientRect().bottom;
  return [below(".sb-first .sb-value"), below(".sb-control")]; }

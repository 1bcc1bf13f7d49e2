// Small things that all blocks use. Text of the data goes through textContent and setAttribute alone.
const charts = {};

function el(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "on") for (const [event, act] of Object.entries(value)) node.addEventListener(event, act);
    else if (value !== null && value !== undefined) node.setAttribute(key, value);
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) node.append(child);
  }
  return node;
}

// An SVG of this size inside `host`, with the drawing moved by the margins.
function canvas(host, width, height, margin, title) {
  const svg = d3.select(host).append("svg").attr("viewBox", `0 0 ${width} ${height}`)
    .attr("width", width).attr("height", height).attr("role", "img").attr("aria-label", title);
  return svg.append("g").attr("transform", `translate(${margin.left},${margin.top})`);
}

const kColors = 10;
const colorOf = index => `k${index % kColors}`;

// Ticks read as people write them: 1.5k, 20M, 0.05; bytes by powers of 1024.
function tickText(value, bytes) {
  if (bytes) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let step = 0;
    for (; Math.abs(value) >= 1024 && step + 1 < units.length; ++step) value /= 1024;
    return `${+value.toFixed(value < 10 ? 1 : 0)} ${units[step]}`;
  }
  if (value === 0) return "0";
  if (Math.abs(value) < 1) return `${+value.toPrecision(3)}`;
  return Math.abs(value) < 10000 ? `${+value.toPrecision(4)}` : d3.format("~s")(value).replace("G", "B");
}

// Even steps of bytes are powers of two.
function byteTicks(most, wanted) {
  const step = Math.pow(2, Math.ceil(Math.log2(most / wanted)));
  const ticks = [];
  for (let at = 0; at <= most; at += step) ticks.push(at);
  return ticks;
}

// Pixels that a text takes in a chart.
const ruler = document.createElement("canvas").getContext("2d");
function textWidth(text, size = 12) {
  ruler.font = `${size}px ${getComputedStyle(document.body).fontFamily}`;
  return ruler.measureText(text).width;
}

// The longest of ever shorter texts that has room.
function fitted(text, pixels, size, shortened) {
  if (textWidth(text, size) <= pixels) return text;
  let kept = Math.min(text.length - 1, Math.ceil(pixels / 3));
  while (kept > 2 && textWidth(shortened(kept), size) > pixels) --kept;
  return shortened(kept);
}

// Text that ends with an ellipsis where it has no room.
const cut = (text, pixels, size = 12) => fitted(text, pixels, size, kept => text.slice(0, kept) + "…");

// Names differ at their ends as often as at their beginnings: what has no room goes from the middle.
const cutMiddle = (text, pixels, size = 12) => fitted(text, pixels, size, kept => {
  const head = Math.floor(kept * 0.4);
  return text.slice(0, head) + "…" + text.slice(text.length - (kept - head));
});

// Text whose flags and per cents no line break parts.
function flagged(text) {
  return String(text).replace(/(\d) %/g, "$1\u00a0%").split(/(--[a-z][a-z0-9-]*)/).map((part, i) => i % 2 ? el("span", {class: "flag"}, part) : part);
}

function legend(items) {
  return el("div", {class: "legend"}, items.map(([kind, label]) => {
    const mark = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    mark.setAttribute("width", 11);
    mark.setAttribute("height", 11);
    const square = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    for (const [key, value] of [["width", 11], ["height", 11], ["rx", 2], ["class", kind]]) square.setAttribute(key, value);
    mark.append(square);
    return el("span", {}, mark, label);
  }));
}

// Buttons of which one is pressed.
function choice(labels, act, first = 0) {
  const buttons = labels.map((label, i) => el("button", {type: "button", "aria-pressed": i === first, on: {click: () => {
    buttons.forEach((b, j) => b.setAttribute("aria-pressed", i === j));
    act(i);
  }}}, label));
  return el("div", {class: "controls", role: "group"}, buttons);
}

// Puts the page together, and draws charts anew when their width changes.
const page = JSON.parse(document.getElementById("data").textContent);
// Texts that are in many places stand once, by number.
(function restore(node) {
  if (node === null || typeof node !== "object") return;
  for (const [key, value] of Object.entries(node)) {
    if ((key === "basis" || key === "note") && typeof value === "number") node[key] = page.texts[value];
    else restore(value);
  }
})(page);
const root = document.getElementById("page");

function theme() {
  const button = el("button", {type: "button", title: "light or dark"});
  const dark = () => (document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches
    ? "dark" : "light")) === "dark";
  const name = () => { button.textContent = dark() ? "Light" : "Dark"; };
  button.addEventListener("click", () => { document.documentElement.dataset.theme = dark() ? "light" : "dark"; name(); });
  name();
  return button;
}

function drawn(block) {
  const host = el("div", {class: `block ${block.kind}`});
  const state = {};
  let width = 0;
  state.redraw = () => {
    hideTip();
    host.replaceChildren();
    if (block.title) host.append(el("h3", {}, block.title));
    charts[block.kind](host, block, Math.max(260, width), state);
  };
  if (block.kind === "table" || block.kind === "sentences") {
    state.redraw();
    return host;
  }
  new ResizeObserver(entries => {
    const now = Math.floor(entries[0].contentRect.width);
    if (now === 0 || now === width) return;
    width = now;
    state.redraw();
  }).observe(host);
  return host;
}

function show() {
  root.append(el("header", {class: "top"}, el("div", {}, el("h1", {}, page.title), el("div", {class: "subtitle"}, page.subtitle)),
    theme()));
  const head = page.headline;
  if (head) {
    root.append(el("div", {class: `headline ${head.verdict}`}, el("strong", {}, head.text),
      head.lines.map(line => el("p", {}, flagged(line)))));
  }
  if (page.tiles.length) {
    root.append(el("div", {class: "tiles"}, page.tiles.map(t => el("div", {class: "tile"}, el("div", {class: "label"}, t.label),
      el("div", {class: "value"}, figureNode(t.figure)), el("div", {class: "band"}, t.figure.band || t.note || "")))));
  }
  for (const part of page.sections) {
    root.append(el("section", {class: part.blocks.some(b => b.kind === "table" || b.kind === "heat_map") ? "long" : null},
      el("h2", {}, part.title), part.lead ? el("p", {class: "lead"}, flagged(part.lead)) : null, part.blocks.map(drawn)));
  }
  root.append(el("footer", {}, el("dl", {}, page.footer.flatMap(f => [el("dt", {}, f.label),
    el("dd", {}, flagged(f.items.join("; ")))])), el("p", {class: "made"}, `stoker ${page.tool} ${page.kind}`)));
  document.body.append(tip);
}

show();

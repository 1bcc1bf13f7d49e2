// What is said of whatever is pointed at, touched or reached by the keyboard.
const tip = el("div", {id: "tip", role: "status"});

function placeTip(x, y) {
  const box = tip.getBoundingClientRect();
  const left = Math.min(Math.max(8, x + 14), innerWidth - box.width - 8);
  const below = y + 18 + box.height < innerHeight;
  tip.style.left = `${left}px`;
  tip.style.top = `${Math.max(8, below ? y + 18 : y - box.height - 12)}px`;
}

function showTip(lines, x, y) {
  tip.replaceChildren(...lines.filter(line => line).map((line, i) => el(i === 0 ? "b" : "div", {}, line)));
  tip.style.visibility = "visible";
  placeTip(x, y);
}

const hideTip = () => { tip.style.visibility = "hidden"; };

function withTip(node, lines) {
  node.setAttribute("data-tip", "");
  const written = () => typeof lines === "function" ? lines() : lines;
  node.addEventListener("pointerenter", event => showTip(written(), event.clientX, event.clientY));
  node.addEventListener("pointermove", event => placeTip(event.clientX, event.clientY));
  node.addEventListener("pointerleave", hideTip);
  node.addEventListener("focus", () => {
    const box = node.getBoundingClientRect();
    showTip(written(), box.left + box.width / 2, box.bottom - 12);
  });
  node.addEventListener("blur", hideTip);
  return node;
}

// The band of a figure and what it rests on.
function figureLines(figure) {
  return [figure.band ? `${figure.band_is ?? "90 % band"}: ${figure.band}` : "", figure.basis ? `rests on ${figure.basis}` : ""];
}

function figureNode(figure) {
  if (!figure.band && !figure.basis) return document.createTextNode(figure.text);
  return withTip(el("span", {class: "figure", tabindex: 0}, figure.text), [figure.text, ...figureLines(figure)]);
}

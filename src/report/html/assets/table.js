// Tables: a click on a column sorts, "Copy CSV" takes values with their bands.
const isFigure = cell => cell !== null && typeof cell === "object";
const sortKey = cell => isFigure(cell) ? cell.v : cell;

function csvField(value) {
  const text = String(value);
  // A cell that begins like a formula is text to a spreadsheet.
  const tame = /^[=+\-@\t]/.test(text) && Number.isNaN(Number(text)) ? "'" + text : text;
  return /[",\n]/.test(tame) ? `"${tame.replaceAll('"', '""')}"` : tame;
}

function csvOf(block) {
  const banded = block.columns.map((_, c) => block.rows.some(row => isFigure(row[c]) && row[c].band));
  const numeric = block.columns.map((_, c) => block.rows.some(row => isFigure(row[c])));
  const head = block.columns.flatMap((column, c) => banded[c] ? [column.name, column.name + " low", column.name + " high"]
    : [column.name]);
  const lines = block.rows.map(row => row.flatMap((cell, c) => {
    if (!numeric[c]) return [cell];
    const own = isFigure(cell) ? cell.v : "";
    return banded[c] ? [own, isFigure(cell) ? cell.lo ?? cell.v : "", isFigure(cell) ? cell.hi ?? cell.v : ""] : [own];
  }));
  return [head, ...lines].map(line => line.map(csvField).join(",")).join("\n") + "\n";
}

async function copyText(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = el("textarea", {});
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  const label = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = label; }, 1200);
}

// Words are kept whole, but for those that no column has room for; sentences get a column that is worth reading.
function cellClass(cell, numeric) {
  const none = !isFigure(cell) && ["", "-"].includes(String(cell ?? "")) ? "none" : "";
  if (numeric || none || isFigure(cell)) return [numeric ? "n" : "", none].filter(Boolean).join(" ") || null;
  const text = String(cell);
  const names = [text.split(/\s+/).some(word => word.length > 24) ? "long" : "", text.length > 40 ? "prose" : text.length > 18 ? "phrase" : ""];
  return names.filter(Boolean).join(" ") || null;
}

// Rows with sentences are cards on a narrow page: what stands behind its edge there nobody reads.
function isForCards(block) {
  const sentences = block.rows.some(row => row.some(cell => /phrase|prose|long/.test(cellClass(cell, false) ?? "")));
  return sentences && block.columns.length > 2 && block.columns.length * block.rows.length <= 120;
}

charts.table = (host, block) => {
  const body = el("tbody", {});
  const fill = rows => body.replaceChildren(...rows.map(row => el("tr", {}, row.map((cell, c) =>
    el("td", {class: cellClass(cell, block.columns[c].numeric), "data-name": c || block.columns[c].numeric ? block.columns[c].name : null},
      isFigure(cell) ? figureNode(cell) : flagged(cell ?? ""))))));
  const heads = block.columns.map((column, c) => {
    const head = el("th", {class: column.numeric ? "n" : null, scope: "col"});
    head.append(el("button", {type: "button", title: "sort", on: {click: () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...block.rows].sort((a, b) => {
        const [x, y] = [sortKey(a[c]), sortKey(b[c])];
        const order = typeof x === "number" && typeof y === "number" ? x - y
          : String(x).localeCompare(String(y), "en", {numeric: true});
        return down ? -order : order;
      });
      fill(rows);
    }}}, column.name));
    return head;
  });
  fill(block.rows);
  const copy = el("button", {type: "button", on: {click: () => copyText(csvOf(block), copy)}}, "Copy CSV");
  host.append(el("div", {class: "scroll"}, el("table", {class: isForCards(block) ? "cards" : null}, el("thead", {}, el("tr", {}, heads)), body)),
    el("div", {class: "controls csv"}, copy));
};

charts.sentences = (host, block) => {
  host.append(el("ul", {class: "sentences" + (block.items.length === 1 ? " single" : "")},
    block.items.map(item => el("li", {}, flagged(item)))));
};

// The data of a chart as a table, folded away.
function dataTable(columns, rows) {
  const inside = el("div", {});
  const numeric = rows.length ? rows[0].map((_, c) => rows.some(row => isFigure(row[c]))) : [];
  charts.table(inside, {columns: columns.map((name, c) => ({name, numeric: numeric[c]})), rows});
  return el("details", {}, el("summary", {}, "as a table"), inside);
}

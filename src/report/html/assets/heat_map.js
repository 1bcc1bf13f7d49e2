// Numbers over two settings, one panel for each value of a third; hue is the verdict, strength the number.
const kVerdictWords = {good: "fits", risky: "may not fit", bad: "does not fit", none: ""};

// What a cell says in its few pixels.
function shortOf(cell, metric) {
  const figure = cell.figures[metric];
  return (cell.verdict === "risky" ? "~" : "") + (figure ? figure.text.split(" ")[0] : cell.verdict === "bad" ? "×" : "");
}

function heatPanel(host, block, panel, metric, scale, width) {
  const margin = {top: 20, right: 2, bottom: 4, left: width < 480 ? 38 : 52};
  const longest = d3.max([...block.columns, ...panel.rows.flatMap(row => row.cells.map(cell => shortOf(cell, metric)))], text => textWidth(text));
  const cellWidth = Math.max(30, longest + 9, Math.min(96, (width - margin.left - margin.right) / block.columns.length));
  const cellHeight = 32;
  const full = margin.left + margin.right + cellWidth * block.columns.length;
  const g = canvas(host, full, margin.top + margin.bottom + cellHeight * panel.rows.length, margin,
    `${panel.title}: ${block.metrics[metric].name}`);
  d3.select(host).select("svg:last-child").style("max-width", "none");
  g.append("text").attr("class", "soft").attr("x", -margin.left).attr("y", -6).text(block.row_label);
  block.columns.forEach((column, c) => g.append("text").attr("class", "soft").attr("x", (c + 0.5) * cellWidth).attr("y", -6)
    .attr("text-anchor", "middle").text(column));
  panel.rows.forEach((row, r) => {
    g.append("text").attr("x", -10).attr("y", r * cellHeight + 20).attr("text-anchor", "end").text(row.label);
    row.cells.forEach((cell, c) => {
      const figure = cell.figures[metric];
      const box = g.append("g").attr("transform", `translate(${c * cellWidth},${r * cellHeight})`).attr("tabindex", 0);
      box.append("rect").attr("class", `verdict-${cell.verdict}`).attr("width", cellWidth - 2).attr("height", cellHeight - 2)
        .attr("rx", 3).attr("fill-opacity", figure ? 0.12 + 0.6 * scale(figure.v) : cell.verdict === "bad" ? 0.1 : 0.05);
      if (cell.chosen) {
        box.append("rect").attr("class", "chosen").attr("x", 0.5).attr("y", 0.5).attr("width", cellWidth - 3)
          .attr("height", cellHeight - 3).attr("rx", 3);
        // What is framed is seen first, where not all columns have room.
        host.scrollLeft = margin.left + (c + 1.5) * cellWidth - width;
      }
      box.append("text").attr("x", (cellWidth - 2) / 2).attr("y", 19.5).attr("text-anchor", "middle")
        .attr("class", figure ? "" : "soft").style("font-weight", cell.chosen ? "700" : null)
        .text(shortOf(cell, metric));
      withTip(box.node(), [
        `${panel.title}, ${block.row_label} ${row.label}, ${block.column_label} ${block.columns[c]}`,
        kVerdictWords[cell.verdict], ...cell.figures.flatMap((other, m) => other
          ? [`${block.metrics[m].name}: ${other.text}${other.band ? ` (${other.band})` : ""}`] : []),
        cell.note, figure && figure.basis ? `rests on ${figure.basis}` : ""]);
    });
  });
}

charts.heat_map = (host, block, width, state) => {
  const metric = state.metric ?? 0;
  if (block.metrics.length > 1) {
    host.append(choice(block.metrics.map(m => m.name), i => { state.metric = i; state.redraw(); }, metric));
  }
  const figures = block.panels.flatMap(p => p.rows.flatMap(r => r.cells.map(c => c.figures[metric]))).filter(f => f);
  const [low, high] = d3.extent(figures, f => f.v);
  const spread = high > low ? high - low : 1;
  const scale = v => block.metrics[metric].more_is_better ? (v - low) / spread : (high - v) / spread;
  for (const panel of block.panels) {
    if (panel.title) host.append(el("h3", {}, panel.title));
    const inside = el("div", {class: "scroll"});
    host.append(inside);
    heatPanel(inside, block, panel, metric, scale, width);
  }
  const used = new Set(block.panels.flatMap(p => p.rows.flatMap(r => r.cells.map(c => c.verdict))));
  const marks = [["good", "fits"], ["risky", "~ may not fit: the band crosses the memory there is"], ["bad", "× does not fit"]];
  host.append(legend([...marks.filter(([v]) => used.has(v)).map(([v, words]) => [`verdict-${v}`, words]),
    ...(used.has("none") ? [] : [])]),
    dataTable([block.row_label, block.column_label, "setting", "verdict", ...block.metrics.map(m => m.name)],
      block.panels.flatMap(p => p.rows.flatMap(r => r.cells.map((cell, c) =>
        [r.label, block.columns[c], p.title, kVerdictWords[cell.verdict], ...cell.figures.map(f => f ?? "")])))));
};

// A bar a row with its band, and parts of a whole in one bar.

// Room for the labels of rows beside what is drawn; on a narrow page long ones stand above it, `above` pixels high.
function labelRoom(labels, width) {
  const longest = 12 + (d3.max(labels, label => textWidth(label)) || 0);
  const isAbove = width < 560 && longest > width * 0.36;
  return {above: isAbove ? 15 : 0, labelWidth: isAbove ? 2 : Math.max(72, Math.min(longest, 280, width * 0.4))};
}

function drawLabel(line, label, y, above, labelWidth, width) {
  line.append("text").attr("x", above ? 0 : -8).attr("y", above ? 13 : y).attr("text-anchor", above ? "start" : "end")
    .text(cutMiddle(label, above ? width - 8 : labelWidth - 10));
}
charts.bars = (host, block, width) => {
  const {above, labelWidth} = labelRoom(block.rows.map(row => row.label), width);
  const margin = {top: 4, right: 84, bottom: 4, left: labelWidth};
  const rowHeight = 25 + above;
  const height = margin.top + margin.bottom + rowHeight * block.rows.length;
  const inner = width - margin.left - margin.right;
  const most = d3.max(block.rows, row => row.figure.hi ?? row.figure.v) || 1;
  const x = d3.scaleLinear().domain([0, most]).range([0, inner]);
  const g = canvas(host, width, height, margin, block.axis);
  block.rows.forEach((row, i) => {
    const line = g.append("g").attr("transform", `translate(0,${i * rowHeight})`).attr("tabindex", 0);
    drawLabel(line, row.label, 16, above, labelWidth, width);
    line.append("rect").attr("class", "k0").attr("y", 5 + above).attr("height", 15).attr("rx", 2)
      .attr("width", Math.max(1, x(row.figure.v)));
    if (row.figure.band) {
      line.append("line").attr("class", "whisker").attr("x1", x(row.figure.lo)).attr("x2", x(row.figure.hi))
        .attr("y1", 12.5 + above).attr("y2", 12.5 + above);
    }
    line.append("text").attr("class", "soft").attr("x", x(row.figure.hi ?? row.figure.v) + 7).attr("y", 16 + above)
      .text(row.figure.text);
    withTip(line.node(), [`${row.label}: ${row.figure.text}`, ...figureLines(row.figure), row.note]);
  });
  host.append(dataTable(["", block.axis], block.rows.map(row => [row.label, row.figure])));
};

charts.stack = (host, block, width) => {
  const margin = {top: 2, right: 2, bottom: 4, left: 2};
  const total = block.rows.reduce((sum, row) => sum + Math.max(0, row.figure.v), 0) || 1;
  const x = d3.scaleLinear().domain([0, total]).range([0, width - margin.left - margin.right]);
  const g = canvas(host, width, 44, margin, block.axis);
  let at = 0;
  block.rows.forEach((row, i) => {
    const size = x(Math.max(0, row.figure.v));
    const part = g.append("g").attr("transform", `translate(${at},0)`).attr("tabindex", 0);
    part.append("rect").attr("class", colorOf(i)).attr("width", Math.max(0.5, size - 1)).attr("height", 36).attr("rx", 2);
    if (size > 54) {
      part.append("text").attr("x", 7).attr("y", 22.5).attr("class", "on").style("fill", "var(--on)").style("font-weight", "600")
        .text(cut(`${Math.round(100 * row.figure.v / total)} %`, size - 8));
    }
    withTip(part.node(), [`${row.label}: ${row.figure.text}`, `${(100 * row.figure.v / total).toFixed(1)} % of ${block.axis}`,
      ...figureLines(row.figure), row.note]);
    at += size;
  });
  host.append(legend(block.rows.map((row, i) => [colorOf(i), `${row.label} ${row.figure.text}`])),
    dataTable(["part", block.axis], block.rows.map(row => [row.label, row.figure])));
};

// A forecast's band, its value, and what was measured, on one line each.
charts.pairs = (host, block, width) => {
  const {above, labelWidth} = labelRoom(block.rows.map(row => row.label), width);
  const margin = {top: 6, right: 20, bottom: 42, left: above ? 14 : labelWidth};
  const words = block.words;
  const any = block.rows.some(row => row.measured);
  const rowHeight = 26 + above;
  const inner = width - margin.left - margin.right;
  const height = rowHeight * block.rows.length;
  const values = block.rows.flatMap(row => [row.forecast.lo ?? row.forecast.v, row.forecast.hi ?? row.forecast.v,
    ...(row.measured ? [row.measured.v] : [])]).concat(block.base ?? []);
  const x = axisScale(block.axis, values, [0, inner]);
  const g = canvas(host, width, height + margin.top + margin.bottom, margin, `forecast and measured: ${block.axis.label}`);
  g.append("g").attr("transform", `translate(0,${height})`).call(d3.axisBottom(x)
    .tickValues(tickValues(x, block.axis, Math.max(3, width / 130))).tickFormat(v => tickText(v, block.axis.label === "bytes"))
    .tickSize(-height).tickPadding(8));
  g.append("text").attr("class", "soft").attr("x", inner).attr("y", height + 36).attr("text-anchor", "end").text(block.axis.label);
  if (block.base !== null) {
    g.append("line").attr("x1", x(block.base)).attr("x2", x(block.base)).attr("y2", height).attr("stroke", "var(--ink)")
      .attr("stroke-opacity", 0.6);
  }
  block.rows.forEach((row, i) => {
    const f = row.forecast;
    const line = g.append("g").attr("transform", `translate(0,${i * rowHeight})`).attr("tabindex", 0);
    line.append("rect").attr("x", -margin.left).attr("width", width).attr("height", rowHeight).attr("fill", "transparent");
    drawLabel(line, row.label, 17, above, labelWidth, width);
    if (f.band) {
      line.append("rect").attr("class", "k0").attr("fill-opacity", 0.3).attr("x", x(f.lo)).attr("y", 8 + above)
        .attr("width", Math.max(1, x(f.hi) - x(f.lo))).attr("height", 10).attr("rx", 2);
    }
    line.append("rect").attr("class", "k0").attr("x", x(f.v) - 1.25).attr("y", 5 + above).attr("width", 2.5).attr("height", 16);
    if (row.measured) {
      line.append("circle").attr("class", `verdict-${row.verdict}`).attr("stroke", "var(--card)").attr("stroke-width", 1.5)
        .attr("cx", x(row.measured.v)).attr("cy", 13 + above).attr("r", 5.5);
    }
    withTip(line.node(), [row.label, `${words.value} ${f.text}`, ...figureLines(f), row.measured ? `measured ${row.measured.text}`
      : any ? "not measured" : "", row.measured ? `forecast off by ${(100 * (f.v / row.measured.v - 1)).toFixed(1)} %` : ""]);
  });
  host.append(legend([["k0", words.band], ...(any ? [["verdict-good", words.within],
    ["verdict-bad", words.outside]] : [])]),
    dataTable(["", words.value, ...(any ? ["measured"] : [])],
      block.rows.map(row => [row.label, row.forecast, ...(any ? [row.measured ?? ""] : [])])));
};

// A forecast's band, its value, and what was measured, on one line each.
charts.pairs = (host, block, width) => {
  const margin = {top: 6, right: 20, bottom: 42, left: Math.min(230, width * 0.34)};
  const rowHeight = 26;
  const inner = width - margin.left - margin.right;
  const height = rowHeight * block.rows.length;
  const values = block.rows.flatMap(row => [row.forecast.lo ?? row.forecast.v, row.forecast.hi ?? row.forecast.v,
    ...(row.measured ? [row.measured.v] : [])]);
  const x = axisScale(block.axis, values, [0, inner]);
  const g = canvas(host, width, height + margin.top + margin.bottom, margin, `forecast and measured: ${block.axis.label}`);
  g.append("g").attr("transform", `translate(0,${height})`).call(d3.axisBottom(x)
    .tickValues(tickValues(x, block.axis, Math.max(3, width / 130))).tickFormat(v => tickText(v, block.axis.label === "bytes"))
    .tickSize(-height).tickPadding(8));
  g.append("text").attr("class", "soft").attr("x", inner).attr("y", height + 36).attr("text-anchor", "end").text(block.axis.label);
  block.rows.forEach((row, i) => {
    const f = row.forecast;
    const line = g.append("g").attr("transform", `translate(0,${i * rowHeight})`).attr("tabindex", 0);
    line.append("rect").attr("x", -margin.left).attr("width", width).attr("height", rowHeight).attr("fill", "transparent");
    line.append("text").attr("x", -8).attr("y", 17).attr("text-anchor", "end").text(cut(row.label, margin.left - 10));
    if (f.band) {
      line.append("rect").attr("class", "k0").attr("fill-opacity", 0.3).attr("x", x(f.lo)).attr("y", 8)
        .attr("width", Math.max(1, x(f.hi) - x(f.lo))).attr("height", 10).attr("rx", 2);
    }
    line.append("rect").attr("class", "k0").attr("x", x(f.v) - 1.25).attr("y", 5).attr("width", 2.5).attr("height", 16);
    if (row.measured) {
      line.append("circle").attr("class", `verdict-${row.verdict}`).attr("stroke", "var(--card)").attr("stroke-width", 1.5)
        .attr("cx", x(row.measured.v)).attr("cy", 13).attr("r", 5.5);
    }
    withTip(line.node(), [row.label, `forecast ${f.text}`, ...figureLines(f), row.measured ? `measured ${row.measured.text}`
      : "not measured", row.measured ? `forecast off by ${(100 * (f.v / row.measured.v - 1)).toFixed(1)} %` : ""]);
  });
  host.append(legend([["k0", "forecast, with its 90 % band"], ["verdict-good", "measured, within the band"],
    ["verdict-bad", "measured, outside it"]]),
    dataTable(["", "forecast", "measured"], block.rows.map(row => [row.label, row.forecast, row.measured ?? ""])));
};

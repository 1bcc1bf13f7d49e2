// Lines of their own x; what is pointed at comes forward. Many lines are grey but for the chosen.
charts.lines = (host, block, width) => {
  const margin = {top: 28, right: 16, bottom: 46, left: 58};
  const height = Math.max(230, Math.min(380, width * 0.46)) - margin.top - margin.bottom;
  const inner = width - margin.left - margin.right;
  const x = axisScale(block.x, block.lines.flatMap(l => l.x), [0, inner]);
  const y = axisScale(block.y, block.lines.flatMap(l => l.y), [height, 0]);
  const g = canvas(host, width, height + margin.top + margin.bottom, margin, `${block.y.label} over ${block.x.label}`);
  drawAxes(g, block, x, y, inner, height, width);
  const few = block.lines.length <= kColors;
  const shape = line => d3.line().x((_, i) => x(line.x[i])).y((_, i) => y(line.y[i]))(line.x);
  const drawn = block.lines.map((line, i) => {
    const part = g.append("g");
    const color = few ? i : line.chosen ? 1 : 7;
    if (line.dots || line.x.length === 1) {
      line.x.forEach((v, j) => part.append("circle").attr("class", colorOf(color)).attr("r", 4.5).attr("cx", x(v)).attr("cy", y(line.y[j]))
        .attr("stroke", "var(--card)").attr("stroke-width", 1));
    } else {
      part.append("path").attr("class", `l${color % kColors}`).attr("fill", "none").attr("d", shape(line))
        .attr("stroke-width", line.chosen ? 2.75 : 1.5).attr("stroke-opacity", line.chosen || few ? 1 : 0.55);
    }
    if (line.end !== "none") {
      part.append("circle").attr("class", `verdict-${line.end}`).attr("cx", x(line.x.at(-1))).attr("cy", y(line.y.at(-1)))
        .attr("r", line.chosen ? 5.5 : 4).attr("stroke", "var(--card)").attr("stroke-width", 1.25);
    }
    return part;
  });
  block.lines.forEach((line, i) => { if (line.chosen) drawn[i].raise(); });
  const mark = g.append("circle").attr("r", 6).attr("fill", "none").attr("stroke", "var(--ink)").attr("stroke-width", 1.75)
    .style("visibility", "hidden");
  const pad = g.append("rect").attr("width", inner).attr("height", height).attr("fill", "transparent").node();
  const point = event => {
    const box = pad.getBoundingClientRect();
    const px = (event.clientX - box.left) / box.width * inner, py = (event.clientY - box.top) / box.height * height;
    let best = null;
    block.lines.forEach(line => line.x.forEach((v, j) => {
      const away = (x(v) - px) ** 2 + (y(line.y[j]) - py) ** 2;
      if (!best || away < best.away) best = {away, line, j};
    }));
    const {line, j} = best;
    mark.attr("cx", x(line.x[j])).attr("cy", y(line.y[j])).style("visibility", "visible");
    drawn.forEach((part, i) => part.attr("opacity", block.lines[i] === line || line.dots ? 1 : 0.4));
    showTip([line.label, `${block.y.label}: ${tickText(line.y[j])}`, `${block.x.label}: ${tickText(line.x[j])}`, line.note],
      event.clientX, event.clientY);
  };
  pad.addEventListener("pointermove", point);
  pad.addEventListener("pointerdown", point);
  pad.addEventListener("pointerleave", () => {
    mark.style("visibility", "hidden");
    drawn.forEach(part => part.attr("opacity", 1));
    hideTip();
  });
  host.append(legend([...(few && block.lines.length > 1 ? block.lines.map((line, i) => [colorOf(i), line.label]) : []),
    ...block.ends.map(end => [`verdict-${end.verdict}`, end.words])]),
    dataTable(["", block.x.label, block.y.label, "note"], block.lines.map(l => [l.label, {text: tickText(l.x.at(-1)), v: l.x.at(-1)},
      {text: tickText(l.y.at(-1)), v: l.y.at(-1)}, l.note])));
};

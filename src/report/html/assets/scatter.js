// Points in a plane: a front that nothing beats, or roofs that nothing exceeds.
function axisScale(axis, values, range) {
  const known = values.filter(v => v > 0 || !axis.log);
  let [low, high] = d3.extent(known);
  if (axis.log) return d3.scaleLog().domain([low / 1.25, high * 1.25]).range(range);
  const room = (high - low || Math.abs(high) || 1) * 0.08;
  low = low >= 0 && low - room < 0.35 * high ? 0 : low - room;
  return d3.scaleLinear().domain([low, high + room]).range(range).nice();
}

// Powers of two from `low` to `high`, so many at most.
function powersOfTwo(low, high, wanted) {
  const first = Math.ceil(Math.log2(low)), count = Math.floor(Math.log2(high)) - first + 1;
  const step = Math.max(1, Math.ceil(count / wanted));
  return Array.from({length: Math.ceil(count / step)}, (_, i) => 2 ** (first + i * step));
}

// A logarithmic axis has room for some ticks only.
function tickValues(scale, axis, wanted) {
  if (!axis.log) return scale.ticks(wanted);
  const [low, high] = scale.domain();
  if (axis.label === "bytes" && high >= 4 * low) return powersOfTwo(low, high, wanted);
  if (high < 5 * low) return d3.scaleLinear().domain([low, high]).ticks(wanted);
  const all = scale.ticks(wanted);
  const powers = all.filter(v => { const p = Math.log10(v); return Math.abs(p - Math.round(p)) < 1e-9; });
  if (powers.length >= 3) return powers;
  const plain = all.filter(v => /^[125]/.test(v.toExponential()));
  return plain.length ? plain : all;
}

function drawAxes(g, block, x, y, inner, height, width) {
  const bottom = d3.axisBottom(x).tickValues(tickValues(x, block.x, Math.max(3, width / 110)))
    .tickFormat(v => tickText(v)).tickSize(-height).tickPadding(8);
  const left = d3.axisLeft(y).tickValues(tickValues(y, block.y, 6)).tickFormat(v => tickText(v, block.bytes)).tickSize(-inner)
    .tickPadding(8);
  g.append("g").attr("transform", `translate(0,${height})`).call(bottom);
  g.append("g").call(left);
  g.append("text").attr("class", "soft").attr("x", inner).attr("y", height + 36).attr("text-anchor", "end").text(block.x.label);
  g.append("text").attr("class", "soft").attr("x", -50).attr("y", -12).text(block.y.label);
}

function drawRoofs(g, block, x, y) {
  const [from, to] = x.domain();
  for (const [i, roof] of block.roofs.entries()) {
    const at = v => roof.slope ? Math.min(roof.rate, roof.slope * v) : roof.rate;
    const knee = roof.slope ? roof.rate / roof.slope : from;
    const points = [from, ...(knee > from && knee < to ? [knee] : []), to].map(v => [v, at(v)]).filter(p => p[1] > 0);
    g.append("path").attr("fill", "none").attr("class", `l${(i + 1) % kColors}`).attr("stroke-width", 1.75)
      .attr("stroke-dasharray", i ? "5 4" : null).attr("d", d3.line().x(p => x(p[0])).y(p => y(p[1]))(points));
    g.append("text").attr("class", "soft").attr("x", x(to)).attr("y", y(at(to)) - 6 + (i ? 22 : 0)).attr("text-anchor", "end").text(roof.label);
  }
}

charts.scatter = (host, block, width) => {
  const margin = {top: 28, right: 16, bottom: 46, left: 58};
  const height = Math.max(240, Math.min(400, width * 0.5)) - margin.top - margin.bottom;
  const inner = width - margin.left - margin.right;
  const roofed = block.roofs.length > 0;
  const ys = block.points.map(p => p.y.v).concat(block.roofs.map(r => r.rate));
  const xs = block.points.map(p => p.x.v).concat(block.roofs.filter(r => r.slope).map(r => r.rate / r.slope));
  const x = axisScale(block.x, xs, [0, inner]);
  const y = axisScale(block.y, ys, [height, 0]);
  const g = canvas(host, width, height + margin.top + margin.bottom, margin, `${block.y.label} over ${block.x.label}`);
  drawAxes(g, block, x, y, inner, height, width);
  if (roofed) drawRoofs(g, block, x, y);
  const front = block.points.filter(p => p.front).sort((a, b) => a.x.v - b.x.v);
  if (front.length > 1) {
    g.append("path").attr("fill", "none").attr("stroke", "var(--ink)").attr("stroke-opacity", 0.55).attr("stroke-width", 1.5)
      .attr("d", d3.line().x(p => x(p.x.v)).y(p => y(p.y.v))(front));
  }
  const groups = [...new Set(block.points.map(p => p.group))];
  const shapes = [d3.symbolCircle, d3.symbolDiamond, d3.symbolSquare, d3.symbolTriangle];
  const drawn = [...block.points].sort((a, b) => a.front - b.front || a.chosen - b.chosen);
  for (const point of drawn) {
    const kind = groups.indexOf(point.group);
    const mark = g.append("g").attr("tabindex", 0).attr("transform", `translate(${x(point.x.v)},${y(point.y.v)})`);
    if (point.chosen || point.front) {
      const clamp = (v, scale) => { const [a, b] = scale.range(); return Math.min(Math.max(v, Math.min(a, b)), Math.max(a, b)); };
      const whisker = (x1, x2, y1, y2) => mark.append("line").attr("class", "whisker").attr("stroke-opacity", 0.3)
        .attr("x1", x1).attr("x2", x2).attr("y1", y1).attr("y2", y2);
      if (point.y.band) whisker(0, 0, clamp(y(Math.max(point.y.lo, 1e-12)), y) - y(point.y.v), clamp(y(point.y.hi), y) - y(point.y.v));
      if (point.x.band) whisker(clamp(x(Math.max(point.x.lo, 1e-12)), x) - x(point.x.v), clamp(x(point.x.hi), x) - x(point.x.v), 0, 0);
    }
    mark.append("path").attr("class", colorOf(kind)).attr("fill-opacity", point.front || point.chosen || roofed ? 1 : 0.5)
      .attr("stroke", "var(--card)").attr("stroke-width", 1)
      .attr("d", d3.symbol().type(shapes[kind % shapes.length]).size(point.chosen ? 150 : point.front || roofed ? 80 : 40)());
    if (point.chosen) mark.append("circle").attr("r", 11).attr("class", "chosen");
    withTip(mark.node(), [point.label, `${block.x.label}: ${point.x.text}${point.x.band ? ` (${point.x.band})` : ""}`,
      `${block.y.label}: ${point.y.text}${point.y.band ? ` (${point.y.band})` : ""}`, point.note,
      point.y.basis ? `rests on ${point.y.basis}` : ""]);
  }
  host.append(legend([...groups.filter(name => name).map((name, i) => [colorOf(i), name])]),
    dataTable(["", "group", block.x.label, block.y.label], block.points.map(p => [p.label, p.group, p.x, p.y])));
};

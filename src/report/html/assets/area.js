// Columns stacked over an order of events, or lines over it, with phases and levels.
charts.area = (host, block, width) => {
  const margin = {top: 30, right: 14, bottom: 40, left: 66};
  const inner = width - margin.left - margin.right;
  const height = Math.max(200, Math.min(320, width * 0.4));
  const count = block.series[0].values.length;
  const at = block.at ?? Array.from({length: count}, (_, i) => i);
  // A column holds from half way to the one before until half way to the one behind.
  const stepped = block.stacked && count <= 400, half = i => (at[i + 1] - at[i]) / 2 || 0.5;
  const edges = !stepped ? at : [at[0] - half(0), ...at.slice(1).map((v, i) => (at[i] + v) / 2), at[count - 1] + half(count - 2)];
  const x = d3.scaleLinear().domain([edges[0], edges.at(-1)]).range([0, inner]);
  const base = Array.from({length: count}, () => 0);
  const layers = block.series.map(series => series.values.map((v, i) => {
    const low = block.stacked ? base[i] : 0;
    if (block.stacked) base[i] += v;
    return [low, low + v];
  }));
  const overlay = block.overlay ?? [];
  const peak = Math.max(d3.max(layers, layer => d3.max(layer, p => p[1])), d3.max(overlay, s => d3.max(s.values)) || 0, 1e-12);
  const level = d3.max(block.levels, l => l.value) || 0;
  const most = level > 3 * peak ? peak * 1.15 : Math.max(peak * 1.05, level * 1.03);
  const y = d3.scaleLinear().domain([0, most]).range([height, 0]);
  const g = canvas(host, width, height + margin.top + margin.bottom, margin, block.y.label);
  const ticks = block.bytes ? byteTicks(most, 6) : y.ticks(6);
  g.append("g").call(d3.axisLeft(y).tickValues(ticks).tickFormat(v => tickText(v, block.bytes)).tickSize(-inner).tickPadding(8));
  g.append("text").attr("class", "soft").attr("x", -58).attr("y", -16).text(block.y.label);
  g.append("text").attr("class", "soft").attr("x", inner).attr("y", height + 32).attr("text-anchor", "end").text(block.x.label);
  if (block.at) {
    g.append("g").attr("transform", `translate(0,${height})`)
      .call(d3.axisBottom(x).ticks(Math.max(3, width / 120)).tickFormat(v => tickText(v)));
  }
  const shape = d3.area().x((_, i) => x(edges[i])).y0(p => y(p[0])).y1(p => y(p[1]));
  const line = d3.line().x((_, i) => x(at[i])).y(p => y(p[1]));
  if (stepped) shape.curve(d3.curveStepAfter);
  layers.forEach((layer, i) => g.append("path").attr("class", block.stacked ? colorOf(i) : `l${i % kColors}`)
    .attr("fill", block.stacked ? null : "none").attr("stroke-width", block.stacked ? 0 : 1.75)
    .attr("fill-opacity", 0.9).attr("d", block.stacked ? shape(stepped ? [...layer, layer.at(-1)] : layer) : line(layer)));
  overlay.forEach((series, i) => g.append("path").attr("class", `l${(block.series.length + i) % kColors}`).attr("fill", "none")
    .attr("stroke-width", 1.75).attr("d", d3.line().x((_, j) => x(at[j])).y(v => y(v))(series.values)));
  block.marks.forEach((mark, i) => {
    const from = x(mark.from), to = i + 1 < block.marks.length ? x(block.marks[i + 1].from) : inner;
    if (i) g.append("line").attr("x1", from).attr("x2", from).attr("y2", height).attr("stroke", "var(--faint)")
      .attr("stroke-dasharray", "3 3");
    // A label that has no room to its right ends at its stroke, or at the axis' end, where that covers no other.
    const letter = 6.5, before = i ? block.marks[i - 1] : null, room = block.at ? inner - from : to - from - 4;
    const free = block.at ? from : to - (before ? x(before.from) + letter * before.label.length : 0);
    const turned = mark.label.length * letter > room && mark.label.length * letter + 10 < free && (block.at || to === inner);
    if (turned || to - from > 16) g.append("text").attr("class", "soft").attr("y", block.at ? 10 : height + 15)
      .attr("x", turned ? (block.at ? from - 3 : inner) : from + 3).attr("text-anchor", turned ? "end" : "start")
      .text(turned ? mark.label : cut(mark.label, room));
  });
  block.levels.filter(l => l.value <= most).forEach(l => {
    g.append("line").attr("x2", inner).attr("y1", y(l.value)).attr("y2", y(l.value)).attr("stroke", "var(--ink)")
      .attr("stroke-dasharray", "6 4").attr("stroke-opacity", 0.7);
    g.append("text").attr("class", "soft").attr("x", inner).attr("y", y(l.value) - 5).attr("text-anchor", "end").text(l.label);
  });
  const cursor = g.append("line").attr("y2", height).attr("stroke", "var(--ink)").attr("stroke-opacity", 0.5)
    .style("visibility", "hidden");
  const pad = g.append("rect").attr("width", inner).attr("height", height).attr("fill", "transparent").node();
  const point = event => {
    const box = pad.getBoundingClientRect();
    const where = x.invert((event.clientX - box.left) / box.width * inner);
    const i = Math.max(0, Math.min(count - 1, d3.bisector(v => v).left(edges, where) - (stepped ? 1 : 0)));
    cursor.attr("x1", x(at[i])).attr("x2", x(at[i])).style("visibility", "visible");
    const phase = block.marks.filter(m => m.from <= at[i]).pop();
    const sum = block.series.reduce((s, series) => s + series.values[i], 0);
    const place = block.at ? `${tickText(at[i])} ${block.x.label}` : "";
    showTip([[phase ? phase.label : "", place, block.stacked ? tickText(sum, block.bytes) : ""].filter(t => t).join(", "),
      ...overlay.map(s => `${s.label}: ${tickText(s.values[i], block.bytes)}`), ...block.series.filter(s => s.values[i] > 0.004 * most).reverse().map(s => `${s.label}: ${tickText(s.values[i], block.bytes)}`)],
      event.clientX, event.clientY);
  };
  pad.addEventListener("pointermove", point);
  pad.addEventListener("pointerdown", point);
  pad.addEventListener("pointerleave", () => { cursor.style("visibility", "hidden"); hideTip(); });
  const named = [...block.series, ...overlay];
  if (named.length > 1) host.append(legend(named.map((s, i) => [colorOf(i), s.label])));
};

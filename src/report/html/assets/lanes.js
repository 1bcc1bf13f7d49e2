// Who does what when. The strip below shows all of it; what is marked there is seen large.
const kLaneColors = ["k0", "k1", "verdict-bad", "k2", "k4", "k5", "k6", "k7"];
const laneColor = kind => kLaneColors[kind % kLaneColors.length];

charts.lanes = (host, block, width, state) => {
  const longest = Math.max(...block.lanes.map(lane => lane.length));
  const margin = {top: 6, right: 10, bottom: 30, left: Math.min(Math.max(104, 7 * longest + 14), width * 0.26)};
  const laneHeight = 22;
  const inner = width - margin.left - margin.right;
  const height = laneHeight * block.lanes.length;
  const strip = 34;
  const end = d3.max(block.spans, s => s[3]);
  state.view = state.view ?? [block.from, Math.min(end, block.to || end)];
  const all = d3.scaleLinear().domain([0, end]).range([0, inner]);
  const x = d3.scaleLinear().domain(state.view).range([0, inner]);
  const g = canvas(host, width, margin.top + height + margin.bottom + strip + 6, margin, block.title);
  block.lanes.forEach((lane, i) => {
    g.append("text").attr("class", "soft").attr("x", -8).attr("y", i * laneHeight + 15).attr("text-anchor", "end")
      .text(cut(lane, margin.left - 10));
    g.append("line").attr("x2", inner).attr("y1", (i + 1) * laneHeight).attr("y2", (i + 1) * laneHeight)
      .attr("stroke", "var(--grid)");
  });
  const axis = g.append("g").attr("transform", `translate(0,${height})`);
  const spans = g.append("g");
  const draw = () => {
    x.domain(state.view);
    axis.call(d3.axisBottom(x).ticks(Math.max(3, width / 120)).tickFormat(v => `${tickText(v)} ${block.unit}`).tickPadding(4));
    spans.selectAll("*").remove();
    for (const [lane, kind, from, to, label] of block.spans) {
      if (to < state.view[0] || from > state.view[1]) continue;
      const left = Math.max(0, x(from)), right = Math.min(inner, x(to));
      const mark = spans.append("g");
      mark.append("rect").attr("class", laneColor(kind)).attr("x", left).attr("y", lane * laneHeight + 3)
        .attr("width", Math.max(0.75, right - left - 0.5)).attr("height", laneHeight - 6).attr("rx", 2);
      if (right - left > 9 + 7 * label.length && label) {
        mark.append("text").attr("x", left + 4).attr("y", lane * laneHeight + 15).style("fill", "var(--on)")
          .style("font-size", "11px").style("pointer-events", "none").text(label);
      }
      withTip(mark.node(), [`${block.lanes[lane]}: ${block.kinds[kind]}${label ? `, ${block.label_is} ${label}` : ""}`,
        `${(to - from).toPrecision(3)} ${block.unit}, from ${tickText(+from.toFixed(1))} to ${tickText(+to.toFixed(1))} ${block.unit}`]);
    }
  };
  draw();
  const below = g.append("g").attr("transform", `translate(0,${height + margin.bottom})`);
  below.append("rect").attr("width", inner).attr("height", strip).attr("fill", "var(--grid)").attr("fill-opacity", 0.6);
  const thin = strip / block.lanes.length;
  for (const [lane, kind, from, to] of block.spans) {
    below.append("rect").attr("class", laneColor(kind)).attr("x", all(from)).attr("y", lane * thin)
      .attr("width", Math.max(0.3, all(to) - all(from))).attr("height", Math.max(1, thin - 0.5)).attr("fill-opacity", 0.75);
  }
  const brush = d3.brushX().extent([[0, 0], [inner, strip]]);
  const handle = below.append("g").attr("class", "brush").call(brush);
  handle.call(brush.move, state.view.map(all));
  brush.on("brush end", function () {
    const picked = this.__brush.selection;
    if (!picked || picked[1][0] - picked[0][0] < 2) return;
    state.view = [all.invert(picked[0][0]), all.invert(picked[1][0])];
    draw();
  });
  host.append(el("p", {class: "hint"}, "Drag the mark on the strip, or its edges, to look elsewhere."), legend(block.kinds.map((kind, i) => [laneColor(i), kind])));
};

// Rectangles in proportion, nested by the dots of their names.
function treeOf(leaves) {
  const root = {name: "", children: new Map()};
  for (const leaf of leaves) {
    let node = root;
    for (const part of leaf.name.split(".")) {
      if (!node.children.has(part)) node.children.set(part, {name: part, children: new Map()});
      node = node.children.get(part);
    }
    node.leaf = leaf;
  }
  const plain = node => {
    const children = [...node.children.values()].map(plain);
    if (node.leaf && children.length) children.push({name: "(itself)", leaf: node.leaf});
    return children.length ? {name: node.name, children} : {name: node.name, leaf: node.leaf};
  };
  return plain(root);
}

charts.treemap = (host, block, width) => {
  const height = Math.max(240, Math.min(420, width * 0.5));
  const root = d3.hierarchy(treeOf(block.leaves)).sum(d => d.leaf ? d.leaf.figure.v : 0).sort((a, b) => b.value - a.value);
  d3.treemap().size([width, height]).paddingInner(1).paddingOuter(1)
    .paddingTop(d => d.depth === 1 && d.children ? 17 : d.depth > 1 ? 1 : 0).round(true)(root);
  const g = canvas(host, width, height, {left: 0, top: 0}, "shares by module");
  const tops = root.children ?? [root];
  const name = node => node.ancestors().reverse().slice(1).map(n => n.data.name).join(".");
  for (const node of root.descendants().filter(n => n.depth === 1 || !n.children)) {
    const top = tops.indexOf(node.ancestors().find(n => n.depth === 1) ?? node);
    const w = node.x1 - node.x0, h = node.y1 - node.y0;
    if (w < 0.5 || h < 0.5) continue;
    const box = g.append("g").attr("transform", `translate(${node.x0},${node.y0})`);
    box.append("rect").attr("class", colorOf(top)).attr("width", w).attr("height", h)
      .attr("fill-opacity", node.children ? 0.25 : 0.85).attr("rx", 1.5);
    if (w > 34 && h > 14) {
      box.append("text").attr("x", 4).attr("y", 12.5).style("font-size", "11px").style("fill", node.children ? null : "var(--on)")
        .style("font-weight", node.children ? "600" : null).style("pointer-events", "none").text(cut(node.data.name, w - 6, 11));
    }
    const text = node.children ? tickText(node.value, true) : node.data.leaf.figure.text;
    withTip(box.node(), [name(node) || "(model)", text, `${(100 * node.value / root.value).toFixed(1)} % of all`,
      ...(node.children ? [] : figureLines(node.data.leaf.figure))]);
  }
  host.append(dataTable(["module", "share"], [...block.leaves].sort((a, b) => b.figure.v - a.figure.v)
    .map(leaf => [leaf.name, leaf.figure])));
};

// What pages use of D3; scripts/bundle-charts makes d3.min.js of it.
export { select } from "d3-selection";
export { scaleLinear, scaleLog } from "d3-scale";
export { axisBottom, axisLeft } from "d3-axis";
export { line, area, symbol, symbolCircle, symbolDiamond, symbolTriangle, symbolSquare, curveStepAfter } from "d3-shape";
export { hierarchy, treemap } from "d3-hierarchy";
export { format } from "d3-format";
export { bisector, extent, max } from "d3-array";
export { brushX } from "d3-brush";

/* A graph on points of the plane, and the log density of its Gaussian field: minus half the sum of
 * the squared lengths of its edges. `edges` is a list of pairs [i, j], each with weight 1.
 *
 * Pure functions; nothing here touches the page, and tests hold them equal to Python.
 */
window.drotDrift = (function () {
  "use strict";

  const round = (x) => Math.round(100 * x) / 100 + 0;
  const clamp = (x, low, high) => Math.min(Math.max(x, low), high);

  function logDensity(points, edges) {
    const squares = edges.map(([i, j]) => {
      const [dx, dy] = [0, 1].map((q) => points[i][q] - points[j][q]);
      return dx * dx + dy * dy;
    });
    return -squares.reduce((a, b) => a + b, 0) / 2;
  }

  /* number of the component of each of n points */
  function components(n, edges) {
    const labels = Array.from({ length: n }, (_, i) => i);
    for (const [i, j] of edges) {
      const [low, high] = [labels[i], labels[j]].sort((a, b) => a - b);
      labels.forEach((label, k) => (labels[k] = label === high ? low : label));
    }
    return labels;
  }

  /* The points after `who` have moved as one, as far towards [dx, dy] as all of them stay within
   * [-right, right] x [-up, up]. */
  function carry(points, who, way, ends) {
    const shift = [0, 1].map((q) => {
      const all = who.map((i) => points[i][q]);
      return clamp(way[q], -ends[q] - Math.min(...all), ends[q] - Math.max(...all));
    });
    return points.map((point, i) => {
      return who.includes(i) ? point.map((x, q) => round(x + shift[q])) : point;
    });
  }

  return { logDensity, components, carry };
})();

/* A map with Student's kernel beside its data: the plan of the map, the KL divergence per point, and
 * the growth, minus the product of gradient and map over the mass: what a step down the gradient does
 * to the squared radius.
 *
 * Pure functions; nothing here touches the page, and tests hold them equal to Python.
 */
window.drotGrowth = (function () {
  "use strict";

  const sum = (list) => list.reduce((a, b) => a + b, 0);
  const total = (matrix) => sum(matrix.map(sum));
  const each = (A, f) => A.map((row, i) => row.map((a, j) => f(a, i, j)));

  /* loops: whether pairs of a point with itself count, in P and in the map */
  function measure(P, points, loops) {
    const gap = (i, j) => (points[i][0] - points[j][0]) ** 2 + (points[i][1] - points[j][1]) ** 2;
    const K = each(P, (_, i, j) => (i === j && !loops ? 0 : 1 / (1 + gap(i, j))));
    const [mass, all] = [total(P), total(K)];
    const Q = each(K, (k) => (mass * k) / all);
    const kl = total(each(P, (p, i, j) => (p > 0 ? p * Math.log(p / Q[i][j]) : 0))) / P.length;
    const growth = (2 * total(each(P, (p, i, j) => (p - Q[i][j]) * K[i][j]))) / mass;
    return { Q, kl, growth };
  }

  /* corners of a square, at this distance from its centre */
  function square(radius) {
    const a = radius / Math.SQRT2;
    return [[-a, -a], [-a, a], [a, -a], [a, a]];
  }

  return { measure, square };
})();

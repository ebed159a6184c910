/* Two plans of points in the plane, with the kernel exp(-d^2): divided by its sum, so that all
 * entries together are n, or balanced, so that each row sums to 1: Q_ij = exp(f_i + f_j - d_ij^2).
 *
 * Pure functions; nothing here touches the page, and tests hold them equal to Python.
 */
window.drotBalance = (function () {
  "use strict";

  const TARGET = 1e-13; // largest error of a row sum
  const MOST = 500; // iterations, far more than the damping needs

  const sum = (list) => list.reduce((a, b) => a + b, 0);

  function kernel(points) {
    return points.map(([x, y]) => points.map(([v, w]) => Math.exp(-((x - v) ** 2 + (y - w) ** 2))));
  }

  function divided(points) {
    const K = kernel(points);
    const total = sum(K.map(sum)) / points.length;
    return { Q: K.map((row) => row.map((k) => k / total)), f: points.map(() => NaN) };
  }

  /* Sinkhorn's iteration with the damping 2/3 */
  function balanced(points) {
    const K = kernel(points);
    const f = new Array(points.length).fill(0);
    let Q = K;
    for (let step = 0; step < MOST; step += 1) {
      Q = K.map((row, i) => row.map((k, j) => k * Math.exp(f[i] + f[j])));
      const sums = Q.map(sum);
      if (Math.max(...sums.map((s) => Math.abs(s - 1))) < TARGET) break;
      sums.forEach((s, i) => (f[i] -= (2 / 3) * Math.log(s)));
    }
    return { Q, f };
  }

  return { kernel, divided, balanced };
})();

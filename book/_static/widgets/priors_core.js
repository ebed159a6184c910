/* Three laws of a random graph on a few points of the plane.
 *
 * All give a graph W the weight prod_ij K_ij^W_ij with K_ij = exp(-|x_i - x_j|^2 / (2 tau^2)), and
 * differ in the graphs that they allow:
 *
 *   "binary" (B)  each edge once or not at all, on its own
 *   "row"    (D)  one edge out of each point
 *   "edges"  (E)  as many edges as points, drawn from all pairs with replacement
 *
 * Pure functions of lists; nothing here touches the page, and nothing is random but the numbers
 * of a generator that is passed in. Tests hold them equal to Python.
 */
window.drotPriors = (function () {
  "use strict";

  const sum = (list) => list.reduce((a, b) => a + b, 0);

  function logSumExp(list) {
    const top = Math.max(...list);
    return top === -Infinity ? top : top + Math.log(sum(list.map((v) => Math.exp(v - top))));
  }

  /* log K, (n, n); no point has an edge to itself */
  function logKernel(points, tau) {
    return points.map(([x, y], i) =>
      points.map(([v, w], j) =>
        i === j ? -Infinity : -((x - v) ** 2 + (y - w) ** 2) / (2 * tau * tau)
      )
    );
  }

  /* E W, (n, n) */
  function expected(logK, prior) {
    const n = logK.length;
    if (prior === "binary") return logK.map((row) => row.map((c) => 1 / (1 + Math.exp(-c))));
    const totals = logK.map(logSumExp);
    const whole = logSumExp(totals) - Math.log(n);
    const total = (i) => (prior === "row" ? totals[i] : whole);
    return logK.map((row, i) => row.map((c) => Math.exp(c - total(i))));
  }

  /* expected number of edges at each point, out and in, (n,) */
  function degrees(P) {
    return P.map((row, i) => sum(row) + sum(P.map((other) => other[i])));
  }

  /* probability that a point has no edge at all, (n,) */
  function alone(logK, prior) {
    const P = expected(logK, prior);
    if (prior === "row") return P.map(() => 0); // its own edge is always there
    const n = P.length;
    if (prior === "edges") return degrees(P).map((d) => Math.max(0, 1 - d / n) ** n);
    return P.map((row, i) => row.reduce((p, q, j) => p * (1 - q) * (1 - P[j][i]), 1));
  }

  /* uniform numbers in [0, 1), the same for the same seed: the generator mulberry32 */
  function generator(seed) {
    let state = seed >>> 0;
    return function () {
      state = (state + 0x6d2b79f5) >>> 0;
      let t = state;
      t = Math.imul(t ^ (t >>> 15), t | 1);
      t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
      return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
  }

  /* number of the entry in which u falls, if shares lie side by side; zeros are never hit */
  function pick(shares, u) {
    const target = u * sum(shares);
    let last = 0;
    let total = 0;
    for (let k = 0; k < shares.length; k += 1) {
      if (shares[k] === 0) continue;
      last = k;
      total += shares[k];
      if (target < total) break;
    }
    return last;
  }

  /* one graph, (n, n) whole numbers; takes n (n - 1) numbers for B, n for D and E */
  function sample(logK, prior, random) {
    const P = expected(logK, prior);
    const n = P.length;
    const W = P.map(() => new Array(n).fill(0));
    if (prior === "binary") {
      for (let i = 0; i < n; i += 1) {
        for (let j = 0; j < n; j += 1) if (j !== i) W[i][j] = random() < P[i][j] ? 1 : 0;
      }
    } else if (prior === "row") {
      for (let i = 0; i < n; i += 1) W[i][pick(P[i], random())] = 1;
    } else {
      const shares = P.flat();
      for (let k = 0; k < n; k += 1) {
        const at = pick(shares, random());
        W[Math.floor(at / n)][at % n] += 1;
      }
    }
    return W;
  }

  return { logKernel, expected, degrees, alone, generator, sample };
})();

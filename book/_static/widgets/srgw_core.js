/* The semi-relaxed barycentre of a few points, all with the same weight 1 / n.
 *
 * A similarity C is a symmetric list of rows, (n, n). A plan T is a list of rows, (n, k), each of
 * sum 1 / n. With q the column sums of T, the best small matrix for T has the entries
 * (T' C T)_ab / (q_a q_b), and what is left of the objective is
 *
 *   R(T) = mean of C_ij^2 - sum_ab q_a q_b Cbar_ab^2.
 *
 * Columns without mass are left out. Pure functions; nothing here touches the page, and tests hold
 * them equal to Python.
 */
window.drotSrgw = (function () {
  "use strict";

  const SMALL = 1e-12; // share of the mean of C_ij^2 below which a gain is rounding

  const sum = (list) => list.reduce((a, b) => a + b, 0);

  function centre(points) {
    const mean = points[0].map((_, d) => sum(points.map((p) => p[d])) / points.length);
    return points.map((p) => p.map((v, d) => v - mean[d]));
  }

  /* inner products of centred points, with a sign for each coordinate, (n, n) */
  function products(points, signs) {
    const moved = centre(points);
    const inner = (p, q) => sum(p.map((v, d) => signs[d] * (v * q[d])));
    return moved.map((p) => moved.map((q) => inner(p, q)));
  }

  function sqeuclidean(points) {
    return points.map((p) => points.map((q) => sum(p.map((v, d) => (v - q[d]) ** 2))));
  }

  /* the plan that sends point i whole to cluster labels[i], (n, k) */
  function hard(labels, k) {
    const share = 1 / labels.length;
    return labels.map((a) => Array.from({ length: k }, (_, b) => (a === b ? share : 0)));
  }

  /* (1 - t) A + t B */
  function mix(A, B, t) {
    return A.map((a, i) => a.map((v, c) => (1 - t) * v + t * B[i][c]));
  }

  /* T' C T, (k, k), and the column sums of T, (k,) */
  function contract(C, T) {
    const k = T[0].length;
    const CT = C.map((c) => T[0].map((_, b) => sum(c.map((v, j) => v * T[j][b]))));
    const M = Array.from({ length: k }, (_, a) =>
      T[0].map((_, b) => sum(T.map((t, i) => t[a] * CT[i][b])))
    );
    return { M, weights: T[0].map((_, a) => sum(T.map((t) => t[a]))) };
  }

  const meanSquare = (C) => sum(C.map((c) => sum(c.map((v) => v * v)))) / C.length ** 2;

  /* R(T), the best small matrix (0 in rows of an empty cluster), and the column sums */
  function reduced(C, T) {
    const { M, weights } = contract(C, T);
    const structure = M.map((m, a) =>
      m.map((v, b) => (weights[a] * weights[b] > 0 ? v / (weights[a] * weights[b]) : 0))
    );
    const square = (v, a, b) => v * v * weights[a] * weights[b];
    const kept = sum(structure.map((s, a) => sum(s.map((v, b) => square(v, a, b)))));
    return { value: meanSquare(C) - kept, structure, weights };
  }

  /* the objective for a small matrix D that does not follow the plan */
  function objective(C, D, T) {
    const { M, weights } = contract(C, T);
    const part = (a, b) => D[a][b] * (D[a][b] * weights[a] * weights[b] - 2 * M[a][b]);
    return meanSquare(C) + sum(D.map((d, a) => sum(d.map((_, b) => part(a, b)))));
  }

  /* sum_i C_ii / n - sum_a q_a Cbar_aa: for a membership, the cost of kernel k-means */
  function kmeans(C, T) {
    const { structure, weights } = reduced(C, T);
    const kept = sum(structure.map((s, a) => weights[a] * s[a]));
    return sum(C.map((c, i) => c[i])) / C.length - kept;
  }

  /* R at `steps` + 1 plans from A to B */
  function segment(C, A, B, steps) {
    return Array.from({ length: steps + 1 }, (_, s) => reduced(C, mix(A, B, s / steps)).value);
  }

  /* the single point whose change of cluster lowers R most; null if none lowers it */
  function bestMove(C, labels, k) {
    const now = reduced(C, hard(labels, k)).value;
    let best = { value: now - SMALL * meanSquare(C) };
    labels.forEach((from, i) => {
      for (let to = 0; to < k; to += 1) {
        if (to === from) continue;
        const { value } = reduced(C, hard(labels.map((a, j) => (j === i ? to : a)), k));
        if (value < best.value) best = { i, from, to, value };
      }
    });
    return "i" in best ? best : null;
  }

  return { products, sqeuclidean, hard, mix, reduced, objective, kmeans, segment, bestMove };
})();

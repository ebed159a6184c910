/* Points sent to places with a limited number of seats: matrix C of the points against D of the
 * places, compared by pairs; labels[i] is the place of point i. Pure functions, which tests hold
 * equal to Python.
 */
window.drotSeats = (function () {
  "use strict";

  /* inner products, about the mean of the points */
  function gram(points, places) {
    const mean = [0, 1].map((q) => points.reduce((sum, x) => sum + x[q], 0) / points.length);
    const inner = (x, z) => x.reduce((sum, v, q) => sum + (v - mean[q]) * (z[q] - mean[q]), 0);
    return [points, places].map((all) => all.map((x) => all.map((z) => inner(x, z))));
  }

  /* mean over all pairs of points of (C - D)^2, where D is read at their places */
  function objective(C, D, labels) {
    let total = 0;
    labels.forEach((a, i) => labels.forEach((b, j) => (total += (C[i][j] - D[a][b]) ** 2)));
    return total / labels.length ** 2;
  }

  /* how many points each of k places holds */
  function counts(labels, k) {
    return Array.from({ length: k }, (_, a) => labels.filter((b) => b === a).length);
  }

  /* The best of all ways to seat the points. They are seated in turn; as each adds to the sum, a
   * beginning that is no better than the best whole need not be continued. */
  function best(C, D, seats) {
    let found = { value: Infinity };
    const [labels, free] = [[], D.map(() => seats)];
    function visit(total) {
      const i = labels.length;
      if (total >= found.value) return;
      if (i === C.length) {
        found = { labels: labels.slice(), value: total };
        return;
      }
      D.forEach((row, a) => {
        if (!free[a]) return;
        let more = (C[i][i] - row[a]) ** 2;
        labels.forEach((b, j) => (more += 2 * (C[i][j] - row[b]) ** 2));
        labels.push(a);
        free[a] -= 1;
        visit(total + more);
        free[a] += 1;
        labels.pop();
      });
    }
    visit(0);
    return { labels: found.labels, value: found.value / C.length ** 2 };
  }

  return { gram, objective, counts, best };
})();

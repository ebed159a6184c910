/* Images on dots, compared by pairs: matrix A of the images against B of the dots. Dot k carries the
 * image `carried[k]`. Pure functions, which tests hold equal to Python.
 */
window.drotMatch = (function () {
  "use strict";

  /* sum over all pairs of dots of (A - B)^2, where A is read at the images that they carry */
  function disagreement(A, B, carried) {
    let total = 0;
    carried.forEach((i, k) => carried.forEach((j, l) => (total += (A[i][j] - B[k][l]) ** 2)));
    return total;
  }

  function swapped(carried, [k, l]) {
    const after = carried.slice();
    [after[k], after[l]] = [carried[l], carried[k]];
    return after;
  }

  function pairs(n) {
    const all = Array.from({ length: n * n }, (_, p) => [Math.floor(p / n), p % n]);
    return all.filter(([k, l]) => k < l);
  }

  /* the swaps of two that lower the disagreement, the best first; a tie is not lower */
  function lowering(A, B, carried) {
    const bar = disagreement(A, B, carried) * (1 - 1e-12);
    const all = pairs(carried.length).map((pair) => {
      return { pair, value: disagreement(A, B, swapped(carried, pair)) };
    });
    return all.filter(({ value }) => value < bar).sort((a, b) => a.value - b.value);
  }

  /* the best of all n! numberings */
  function solution(A, B) {
    let best = { value: Infinity };
    const visit = (carried, rest) => {
      rest.forEach((i) => visit([...carried, i], rest.filter((j) => j !== i)));
      const value = rest.length ? Infinity : disagreement(A, B, carried);
      if (value < best.value) best = { carried, value };
    };
    visit([], A.map((_, i) => i));
    return best;
  }

  /* a numbering drawn by a seed: Fisher and Yates's shuffle; the numbers are those of mulberry32 */
  function draw(n, seed) {
    const carried = Array.from({ length: n }, (_, i) => i);
    for (let k = n - 1, state = seed; k > 0; k -= 1) {
      state = (state + 0x6d2b79f5) | 0;
      let t = Math.imul(state ^ (state >>> 15), 1 | state);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      const l = Math.floor((((t ^ (t >>> 14)) >>> 0) / 4294967296) * (k + 1));
      [carried[k], carried[l]] = [carried[l], carried[k]];
    }
    return carried;
  }

  return { disagreement, swapped, pairs, lowering, solution, draw };
})();

/* Fees of a carrier: f at the bakeries, and at each café the most that no way's cost forbids. Pure
 * functions of whole numbers, which tests hold equal to Python.
 */
window.drotPrices = (function () {
  "use strict";

  const squared = (x, z) => x.reduce((sum, v, q) => sum + (v - z[q]) ** 2, 0);
  const costs = (bakeries, cafes) => bakeries.map((x) => cafes.map((z) => squared(x, z)));

  /* the highest fee at each café: the least of C_ij - f_i */
  const delivery = (C, f) => C[0].map((_, j) => Math.min(...C.map((row, i) => row[j] - f[i])));

  /* what the carrier asks for all loaves: a lower bound for the cost of every plan */
  function bound({ C, has, wants }, f) {
    const all = [...has.map((h, i) => h * f[i]), ...delivery(C, f).map((g, j) => g * wants[j])];
    return all.reduce((a, b) => a + b, 0);
  }

  /* the ways (i, j) on which the two fees add up to the cost */
  function tight(C, f) {
    const g = delivery(C, f);
    return C.flatMap((row, i) => row.flatMap((c, j) => (c - f[i] === g[j] ? [[i, j]] : [])));
  }

  const moved = (f, i, by) => f.map((x, q) => (q === i ? x + by : x));

  /* The move of one fee by 1, within 0 to `most`, that raises the bound by most; none at the best.
   * For three bakeries such moves reach the best: fees count up to a constant, so any set of
   * bakeries that should rise together, or its complement falling, is one or two of them. */
  function step(town, f, most) {
    const now = bound(town, f);
    const all = f.flatMap((_, i) => [1, -1].map((by) => ({ i, by, f: moved(f, i, by) })));
    const may = all.filter((one) => one.f[one.i] >= 0 && one.f[one.i] <= most);
    const gains = may.map((one) => ({ ...one, gain: bound(town, one.f) - now }));
    return gains.filter(({ gain }) => gain > 0).sort((a, b) => b.gain - a.gain)[0] || null;
  }

  /* fees at which the bound is the cost of the cheapest plan, climbed to from others */
  function best(town, f, most) {
    const next = step(town, f, most);
    return next ? best(town, next.f, most) : f;
  }

  return { costs, delivery, bound, tight, step, best };
})();

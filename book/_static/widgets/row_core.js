/* One row of an entropic affinity: p_j proportional to exp(-c_j / eps).
 *
 * Pure functions of a list of costs; nothing here touches the page, and tests hold them equal to
 * Python.
 */
window.drotRow = (function () {
  "use strict";

  /* p = softmax(-c / eps); subtracting the smallest cost keeps every exponent <= 0 */
  function softmax(costs, eps) {
    const low = Math.min(...costs);
    const weights = costs.map((c) => Math.exp(-(c - low) / eps));
    const total = weights.reduce((a, b) => a + b, 0);
    return weights.map((w) => w / total);
  }

  /* Shannon entropy -sum p log p in nats, with 0 log 0 = 0 */
  function entropy(p) {
    return -p.reduce((sum, q) => sum + (q > 0 ? q * Math.log(q) : 0), 0);
  }

  function perplexity(p) {
    return Math.exp(entropy(p));
  }

  function expectedCost(p, costs) {
    return p.reduce((sum, q, j) => sum + q * costs[j], 0);
  }

  /* number of equally cheapest entries: the perplexity in the limit eps -> 0 */
  function ties(costs) {
    const low = Math.min(...costs);
    return costs.filter((c) => c === low).length;
  }

  /* log perplexity and its derivative in log eps, which is Var_p(c) / eps^2 >= 0 */
  function logPerplexity(costs, eps) {
    const p = softmax(costs, eps);
    const mean = expectedCost(p, costs);
    const variance = p.reduce((sum, q, j) => sum + q * (costs[j] - mean) ** 2, 0);
    return { value: entropy(p), slope: variance / eps ** 2 };
  }

  /* the eps at which the row has perplexity xi: Newton on t = log eps,
   * replaced by bisection whenever the step would leave the bracket */
  function solve(costs, xi, tol = 1e-13, maxIter = 200) {
    const least = ties(costs);
    if (!(xi > least && xi < costs.length)) {
      throw new RangeError(
        "perplexity must lie strictly between " + least + " and " + costs.length + ", got " + xi
      );
    }
    const target = Math.log(xi);
    const spread = Math.max(...costs) - Math.min(...costs);
    let low = Math.log(spread);
    let high = low;
    while (logPerplexity(costs, Math.exp(low)).value > target) low -= 2;
    while (logPerplexity(costs, Math.exp(high)).value < target) high += 2;
    let t = 0.5 * (low + high);
    for (let i = 0; i < maxIter; i += 1) {
      const { value, slope } = logPerplexity(costs, Math.exp(t));
      const residual = value - target;
      if (Math.abs(residual) <= tol || high - low <= 1e-15 * Math.abs(t)) break;
      if (residual > 0) high = t;
      else low = t;
      const newton = t - residual / slope;
      t = newton > low && newton < high ? newton : 0.5 * (low + high);
    }
    return Math.exp(t);
  }

  return { softmax, perplexity, expectedCost, ties, solve };
})();

/* Entropic and symmetric entropic affinities of a few points, from their costs.
 *
 * With eta = log xi + 1 and H(p) = -sum p (log p - 1), the symmetric entropic affinity solves
 *
 *   min <P, C>   over   P >= 0 symmetric,   P 1 = 1,   H(P_i:) >= eta,
 *
 * with multipliers gamma >= 0 of the entropies and lam of the row sums. Its entries are
 * P_ij = exp((lam_i + lam_j - 2 C_ij) / (gamma_i + gamma_j)). A slack row has gamma_i = 0: its
 * entropy exceeds eta, and the formula no longer gives P_ii.
 *
 * Newton's method therefore moves (gamma_i, a_i) with a_i = log P_ii and lam_i = gamma_i a_i,
 * which stays smooth as gamma_i vanishes. Only an empty row, one with P_ii next to 0, moves
 * (gamma_i, lam_i) itself. A state of the solver holds gamma, lam, a and empty, each of length n.
 *
 * Pure functions of a list of rows of costs; nothing here touches the page, and tests hold them
 * equal to Python. They need row_core.js.
 */
window.drotSymmetric = (function (row) {
  "use strict";

  const TARGET = 1e-12; // residual at which Newton stops
  const ACCEPTED = 1e-8; // residual above which a result is refused
  const EMPTY = -12; // log P_ii below which a row counts as empty
  const LEAST = 0.05; // share of gamma_i that a step leaves, at least

  /* squared distances between points of the plane, (n, n) */
  function sqeuclidean(points) {
    return points.map(([x, y]) => points.map(([v, w]) => (x - v) ** 2 + (y - w) ** 2));
  }

  function symmetrise(P) {
    return P.map((p, i) => p.map((v, j) => 0.5 * (v + P[j][i])));
  }

  /* each row has its own bandwidth eps_i: P_ij = exp((lam_i - C_ij) / eps_i) */
  function entropicAffinity(C, xi) {
    const eps = C.map((c) => row.solve(c, xi));
    const P = C.map((c, i) => row.softmax(c, eps[i]));
    return { eps, lam: eps.map((e, i) => e * Math.log(P[i][i])), P };
  }

  /* ---- values and derivatives of the constraints ---- */

  /* L = log P, with the sums and entropies of the rows of P. Two rows with gamma = 0 exchange no
   * mass, unless their points coincide: then they share it evenly. */
  function evaluate(C, { gamma, lam, a }) {
    const n = C.length;
    const L = C.map(() => new Float64Array(n));
    const P = C.map(() => new Float64Array(n));
    const sum = new Float64Array(n);
    const H = new Float64Array(n);
    for (let i = 0; i < n; i += 1) {
      for (let j = 0; j <= i; j += 1) {
        const s = gamma[i] + gamma[j];
        let l = a[i];
        if (j < i && s > 0) l = (lam[i] + lam[j] - 2 * C[i][j]) / s;
        else if (j < i) l = C[i][j] > 0 ? -Infinity : 0.5 * (a[i] + a[j]);
        const p = Math.exp(l);
        const h = p > 0 ? p * (1 - l) : 0;
        L[i][j] = L[j][i] = l;
        P[i][j] = P[j][i] = p;
        sum[i] += p;
        H[i] += h;
        if (j === i) continue;
        sum[j] += p;
        H[j] += h;
      }
    }
    return { L, P, sum, H };
  }

  /* the largest of: sums off 1, entropies below eta, and above it where gamma is not 0 either */
  function residualOf({ gamma }, { sum, H }, eta, scale) {
    return gamma.reduce((worst, g, i) => {
      const excess = H[i] - eta;
      const off = Math.max(Math.abs(sum[i] - 1), -excess, Math.min(excess, g / scale[i]));
      return off <= worst ? worst : off; // a NaN must not be lost
    }, 0);
  }

  /* Jacobian of (H, sums) in (gamma, b), (2n, 2n); b_i is a_i, or lam_i in an empty row.
   * From d P_ij = A d u - L A d s with A = P / s, and d lam = gamma d a + a d gamma. */
  function jacobian({ gamma, a, empty }, { L, P }) {
    const n = gamma.length;
    const J = Array.from({ length: 2 * n }, () => new Float64Array(2 * n));
    const byGamma = a.map((v, i) => (empty[i] ? 0 : v)); // d lam_i / d gamma_i
    const byB = gamma.map((g, i) => (empty[i] ? 1 : g)); // d lam_i / d b_i
    for (let i = 0; i < n; i += 1) {
      const [dH, dSum] = [J[i], J[n + i]];
      for (let j = 0; j < n; j += 1) {
        const p = P[i][j];
        const s = gamma[i] + gamma[j];
        if (j === i || p === 0) continue;
        if (s > 0) {
          const A = p / s;
          const B = -L[i][j] * A;
          const D = -L[i][j] * B;
          dH[i] += D + B * byGamma[i];
          dH[j] += D + B * byGamma[j];
          dH[n + i] += B * byB[i];
          dH[n + j] += B * byB[j];
          dSum[i] += B + A * byGamma[i];
          dSum[j] += B + A * byGamma[j];
          dSum[n + i] += A * byB[i];
          dSum[n + j] += A * byB[j];
        } else {
          // coincident slack points: P_ij = exp((a_i + a_j) / 2)
          for (const k of [n + i, n + j]) {
            dH[k] -= 0.5 * L[i][j] * p;
            dSum[k] += 0.5 * p;
          }
        }
      }
      if (P[i][i] === 0) continue;
      const own = empty[i] ? P[i][i] / gamma[i] : P[i][i]; // d P_ii / d b_i
      dH[n + i] -= a[i] * own;
      dSum[n + i] += own;
      if (!empty[i]) continue;
      dH[i] += a[i] ** 2 * own;
      dSum[i] -= a[i] * own;
    }
    return J;
  }

  /* Adds damp times the identity in (gamma, lam), so that multipliers that the equations hardly
   * determine, such as those of two far clusters against each other, move little. */
  function brake(J, i, { gamma, a, empty }, damp) {
    const n = gamma.length;
    J[i][i] += damp;
    J[n + i][i] += empty[i] ? 0 : damp * a[i];
    J[n + i][n + i] += empty[i] ? damp : damp * gamma[i];
  }

  /* x with J x = r, by elimination with row exchanges; J and r are overwritten */
  function solveLinear(J, r) {
    const n = r.length;
    for (let k = 0; k < n; k += 1) {
      let best = k;
      for (let i = k + 1; i < n; i += 1) if (Math.abs(J[i][k]) > Math.abs(J[best][k])) best = i;
      [J[k], J[best]] = [J[best], J[k]];
      [r[k], r[best]] = [r[best], r[k]];
      const top = J[k];
      for (let i = k + 1; i < n; i += 1) {
        const under = J[i];
        const f = under[k] / top[k];
        if (f === 0) continue;
        for (let j = k + 1; j < n; j += 1) under[j] -= f * top[j];
        r[i] -= f * r[k];
      }
    }
    for (let k = n - 1; k >= 0; k -= 1) {
      for (let j = k + 1; j < n; j += 1) r[k] -= J[k][j] * r[j];
      r[k] /= J[k][k];
    }
    return r;
  }

  /* the longest share of a step, at most 1, that leaves LEAST of every gamma */
  function reach({ gamma }, step) {
    const fall = gamma.reduce((f, g, i) => (g > 0 ? Math.max(f, -step[i] / g) : f), 0);
    return Math.min(1, (1 - LEAST) / fall);
  }

  /* t steps in (gamma, b); a slack row goes to gamma = 0 */
  function move({ gamma, lam, a, empty }, step, t, slack) {
    const n = gamma.length;
    const next = { gamma: [], lam: [], a: [], empty: [] };
    for (let i = 0; i < n; i += 1) {
      const g = slack && slack[i] ? 0 : Math.max(gamma[i] + t * step[i], 0);
      const b = (empty[i] ? lam[i] : a[i]) + t * step[n + i];
      const log = !empty[i] ? b : g > 0 ? b / g : -Infinity;
      next.gamma.push(g);
      next.lam.push(empty[i] ? b : g * b);
      next.a.push(log);
      next.empty.push(log < EMPTY);
    }
    return next;
  }

  /* ---- the two phases; `scale` holds the size of each gamma, the entropic bandwidths ---- */

  /* Newton's method on sum = 1 and, row by row, on gamma = 0 where gamma is smaller than the
   * excess of entropy, and on H = eta elsewhere. Null unless it arrives; where it does, the
   * conditions of optimality hold, and the problem is convex. */
  function polish(C, eta, scale, start) {
    const n = C.length;
    let state = start;
    let slack = null;
    let best = null;
    let last = 0;
    for (let k = 0; k < 15; k += 1) {
      const values = evaluate(C, state);
      const residual = residualOf(state, values, eta, scale);
      const dual = state.lam.every((l, i) => state.gamma[i] > 0 || l <= 0);
      if (dual && residual <= (best ? best.residual : ACCEPTED)) best = { state, values, residual };
      if (!(residual > TARGET) || (k > 2 && residual > 1e-2)) break;
      if (!(residual < 0.1 * last)) {
        slack = state.gamma.map((g, i) => g <= scale[i] * (values.H[i] - eta));
      }
      last = residual;
      const J = jacobian(state, values);
      const r = new Float64Array(2 * n);
      for (let i = 0; i < n; i += 1) {
        r[i] = eta - values.H[i];
        r[n + i] = 1 - values.sum[i];
        brake(J, i, state, (0.03 * Math.min(residual, 1)) / scale[i]);
        if (!slack[i]) continue;
        J[i].fill(0);
        J[i][i] = 1;
        r[i] = 0; // move() sets gamma_i = 0
      }
      const step = solveLinear(J, r);
      state = move(state, step, reach(state, step), slack);
    }
    return best;
  }

  /* Maximises the dual function plus mu sum scale_i log gamma_i for falling mu, by damped Newton
   * steps in (gamma, b, z); z_i = mu scale_i / gamma_i tends to the excess of entropy. */
  function interior(C, eta, scale, start) {
    const n = C.length;
    let state = start;
    let values = evaluate(C, state);
    let mu = 0.1;
    let damp = 1e-3;
    let z = state.gamma.map((g, i) => (mu * scale[i]) / g);
    const barrier = (g, i) => (mu * scale[i]) / g;

    function value({ gamma, lam }, { P }) {
      return gamma.reduce((t, g, i) => {
        const mass = P[i].reduce((u, p, j) => u + 0.5 * (g + gamma[j]) * p, 0);
        return t + eta * g + lam[i] - mass + mu * scale[i] * Math.log(g);
      }, 0);
    }

    /* slope of the value at a state along a step in (gamma, b) */
    function slope({ gamma, a, empty }, { sum, H }, step) {
      return gamma.reduce((t, g, i) => {
        const dLam = empty[i] ? step[n + i] : g * step[n + i] + a[i] * step[i];
        return t + (eta - H[i] + barrier(g, i)) * step[i] + (1 - sum[i]) * dLam;
      }, 0);
    }

    for (let k = 0; k < 300 && mu > 1e-14; k += 1) {
      const J = jacobian(state, values);
      const r = new Float64Array(2 * n);
      let off = 0;
      for (let i = 0; i < n; i += 1) {
        const g = state.gamma[i];
        r[i] = eta - values.H[i] + barrier(g, i);
        r[n + i] = 1 - values.sum[i];
        J[i][i] += z[i] / g;
        brake(J, i, state, damp / scale[i]);
        off = Math.max(off, Math.abs(r[i]) * Math.min(g / scale[i], 1), Math.abs(r[n + i]));
      }
      if (off <= mu || off <= TARGET) {
        // gamma falls with mu where it is the smaller, z elsewhere
        const slack = state.gamma.map((g, i) => g <= scale[i] * z[i]);
        const found = mu < 2e-3 ? polish(C, eta, scale, state) : null;
        if (found) return found;
        const residual = residualOf(state, values, eta, scale);
        if (mu < 2e-12 && residual <= ACCEPTED) return { state, values, residual };
        mu *= 0.1;
        z = z.map((v, i) => (slack[i] ? v : 0.1 * v));
        state.gamma.forEach((g, i) => (r[i] = slack[i] ? -0.9 * g : 0));
        state = move(state, r.fill(0, n), 1);
        values = evaluate(C, state);
        continue;
      }
      const step = solveLinear(J, r);
      const t = reach(state, step);
      const next = move(state, step, t);
      const then = evaluate(C, next);
      const now = value(state, values);
      const level = slope(next, then, step) >= -0.5 * slope(state, values, step);
      if (level && value(next, then) >= now - 1e-10 * (1 + Math.abs(now))) {
        damp = Math.max(damp / 4, 1e-12);
        z = z.map((old, i) => {
          const g = state.gamma[i];
          const moved = old + t * (barrier(g, i) - old - (old / g) * step[i]);
          const centre = barrier(next.gamma[i], i);
          return Math.min(Math.max(moved, 1e-3 * centre), 1e3 * centre);
        });
        [state, values] = [next, then];
      } else damp *= 8;
    }
    return null;
  }

  /* `near`, an earlier result for about the same points, is a good start when there is one */
  function symmetricEntropicAffinity(C, xi, near) {
    const alone = entropicAffinity(C, xi); // refuses a perplexity that is out of reach
    const n = C.length;
    const size = C.reduce((t, c) => t + c.reduce((u, v) => u + v, 0), 0) / n ** 2;
    const eta = Math.log(xi) + 1;
    const unit = C.map((c) => c.map((v) => v / size));
    const scale = alone.eps.map((e) => e / size);
    const begin = (gamma, lam, P) => {
      const a = P.map((p, i) => Math.log(p[i]));
      const [g, l] = [gamma, lam].map((list) => list.map((v) => v / size));
      return { gamma: g, lam: l, a, empty: a.map((v) => v < EMPTY) };
    };
    let found = null;
    if (near && near.gamma.length === n) {
      found = polish(unit, eta, scale, begin(near.gamma, near.lam, near.P));
    }
    if (!found) {
      const start = begin(alone.eps, alone.lam, alone.P);
      found = polish(unit, eta, scale, start) || interior(unit, eta, scale, start);
    }
    if (!found) throw new Error("the symmetric affinity did not converge for these points");
    const { state, values, residual } = found;
    return {
      gamma: state.gamma.map((g) => g * size),
      lam: state.lam.map((l) => l * size),
      P: values.P.map((p) => Array.from(p)),
      residual,
      slack: state.gamma.map((g, i) => g <= ACCEPTED * scale[i]),
    };
  }

  return { sqeuclidean, symmetrise, entropicAffinity, symmetricEntropicAffinity };
})(window.drotRow);

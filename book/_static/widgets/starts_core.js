/* t-SNE as its authors wrote it (van der Maaten and Hinton, 2008; book eq-tsne), for the first page:
 * entropic affinities, and gradient descent with momentum and gains. Arrays are flat.
 */
window.drotStarts = (function () {
  "use strict";

  const EXAGGERATION = 4; // the attraction of the first steps, as a multiple
  const EARLY = 100; // so many steps
  const RATE = 100; // length of a step, for a gradient of sum_ij P_ij = 1

  /* squared distances of points in p coordinates, n x n */
  function squares(X, p) {
    const n = X.length / p;
    const C = new Float64Array(n * n);
    for (let i = 0; i < n; i += 1) {
      for (let j = 0; j < i; j += 1) {
        let total = 0;
        for (let a = 0; a < p; a += 1) total += (X[i * p + a] - X[j * p + a]) ** 2;
        C[i * n + j] = C[j * n + i] = total;
      }
    }
    return C;
  }

  /* joint probabilities (P + P') / 2n of rows of one perplexity, without self-loops, n x n */
  function affinities(C, perplexity) {
    const n = Math.sqrt(C.length);
    const P = new Float64Array(n * n);
    for (let i = 0; i < n; i += 1) {
      const costs = C.subarray(i * n, (i + 1) * n);
      const least = costs.reduce((low, c, j) => (j === i ? low : Math.min(low, c)), Infinity);
      let [low, high, t] = [-Infinity, Infinity, 0]; // logarithms of a bandwidth
      for (let step = 0; step < 200; step += 1) {
        let [sum, mean] = [0, 0];
        for (let j = 0; j < n; j += 1) {
          const excess = (costs[j] - least) / Math.exp(t);
          const weight = j === i ? 0 : Math.exp(-excess);
          P[i * n + j] = weight;
          sum += weight;
          mean += weight === 0 ? 0 : weight * excess;
        }
        for (let j = 0; j < n; j += 1) P[i * n + j] /= sum;
        const gap = Math.log(sum) + mean / sum - Math.log(perplexity);
        if (Math.abs(gap) < 1e-10) break;
        if (gap > 0) high = t;
        else low = t;
        if (low === -Infinity) t = high - 2;
        else t = high === Infinity ? low + 2 : (low + high) / 2;
      }
    }
    for (let i = 0; i < n; i += 1) {
      for (let j = 0; j <= i; j += 1) {
        P[i * n + j] = P[j * n + i] = (P[i * n + j] + P[j * n + i]) / (2 * n);
      }
    }
    return P;
  }

  /* numbers from 0 to 1 of a seed (mulberry32) */
  function chance(seed) {
    let state = seed >>> 0;
    return function () {
      state = (state + 0x6d2b79f5) >>> 0;
      let t = Math.imul(state ^ (state >>> 15), state | 1);
      t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
      return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
  }

  /* a map of n points that is about to begin, normal and small */
  function begin(n, seed) {
    const next = chance(seed);
    const normal = () => 0.01 * Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());
    return {
      Z: Float64Array.from({ length: 2 * n }, normal),
      speed: new Float64Array(2 * n),
      gains: new Float64Array(2 * n).fill(1),
      steps: 0,
    };
  }

  /* the divergence KL(P, Q) of a map, in nats; P has mass one */
  function objective(P, Z) {
    const n = Z.length / 2;
    let [value, total] = [0, 0]; // total: the kernel's sum over all pairs
    for (let i = 0; i < n; i += 1) {
      for (let j = 0; j < i; j += 1) {
        const bend = 1 + (Z[2 * i] - Z[2 * j]) ** 2 + (Z[2 * i + 1] - Z[2 * j + 1]) ** 2;
        const p = P[i * n + j];
        if (p > 0) value += 2 * p * Math.log(p * bend);
        total += 2 / bend;
      }
    }
    return value + Math.log(total);
  }

  /* its gradient by Z, with the attraction multiplied; one pass, because the kernel's sum only
   * divides all that repels */
  function gradient(P, Z, exaggeration = 1) {
    const n = Z.length / 2;
    const pull = new Float64Array(2 * n);
    const push = new Float64Array(2 * n);
    let total = 0;
    for (let i = 0; i < n; i += 1) {
      const [own, x, y] = [i * n, Z[2 * i], Z[2 * i + 1]];
      let [pullX, pullY, pushX, pushY] = [0, 0, 0, 0];
      for (let j = 0; j < i; j += 1) {
        const u = x - Z[2 * j];
        const v = y - Z[2 * j + 1];
        const k = 1 / (1 + u * u + v * v);
        const attraction = P[own + j] * k;
        const repulsion = k * k;
        total += 2 * k;
        pullX += attraction * u;
        pullY += attraction * v;
        pushX += repulsion * u;
        pushY += repulsion * v;
        pull[2 * j] -= attraction * u;
        pull[2 * j + 1] -= attraction * v;
        push[2 * j] -= repulsion * u;
        push[2 * j + 1] -= repulsion * v;
      }
      pull[2 * i] += pullX;
      pull[2 * i + 1] += pullY;
      push[2 * i] += pushX;
      push[2 * i + 1] += pushY;
    }
    return pull.map((one, a) => 4 * (exaggeration * one - push[a] / total));
  }

  /* one step of a map */
  function step(P, map) {
    const early = map.steps < EARLY;
    const slope = gradient(P, map.Z, early ? EXAGGERATION : 1);
    const momentum = early ? 0.5 : 0.8;
    for (let a = 0; a < slope.length; a += 1) {
      const along = slope[a] * map.speed[a] > 0;
      map.gains[a] = Math.max(0.01, along ? 0.8 * map.gains[a] : map.gains[a] + 0.2);
      map.speed[a] = momentum * map.speed[a] - RATE * map.gains[a] * slope[a];
      map.Z[a] += map.speed[a];
    }
    map.steps += 1;
  }

  /* sets of the k nearest of each point of a map */
  function neighbours(Z, k) {
    return Array.from({ length: Z.length / 2 }, (_, i) => {
      const far = (j) => (Z[2 * i] - Z[2 * j]) ** 2 + (Z[2 * i + 1] - Z[2 * j + 1]) ** 2;
      const order = Array.from({ length: Z.length / 2 }, (_, j) => [far(j), j]);
      order[i][0] = -1;
      return new Set(order.sort((a, b) => a[0] - b[0] || a[1] - b[1]).slice(1, k + 1).map((p) => p[1]));
    });
  }

  /* distances between the centres of all pairs of classes */
  function centreDistances(Z, classes) {
    const centres = [...new Set(classes)].sort().map((digit) => {
      const own = classes.flatMap((one, i) => (one === digit ? [i] : []));
      return [0, 1].map((a) => own.reduce((sum, i) => sum + Z[2 * i + a], 0) / own.length);
    });
    return centres.flatMap(([x, y], a) => {
      return centres.slice(0, a).map(([u, v]) => Math.hypot(x - u, y - v));
    });
  }

  function correlation(a, b) {
    const mean = (list) => list.reduce((x, y) => x + y, 0) / list.length;
    const [u, v] = [a, b].map((list) => list.map((x) => x - mean(list)));
    const inner = (x, y) => x.reduce((sum, one, i) => sum + one * y[i], 0);
    return inner(u, v) / Math.sqrt(inner(u, u) * inner(v, v));
  }

  /* What two maps have in common, on average over all pairs of maps: the share of the k nearest
   * neighbours of a point, and the correlation of distances between the centres of classes. */
  function agreement(maps, classes, k) {
    const near = maps.map((Z) => neighbours(Z, k));
    const far = maps.map((Z) => centreDistances(Z, classes));
    let [shared, correlated, pairs] = [0, 0, 0];
    for (let a = 0; a < maps.length; a += 1) {
      for (let b = 0; b < a; b += 1) {
        near[a].forEach((set, i) => {
          for (const j of set) shared += near[b][i].has(j) / (k * near[a].length);
        });
        correlated += correlation(far[a], far[b]);
        pairs += 1;
      }
    }
    return { shared: shared / pairs, correlated: correlated / pairs };
  }

  return { affinities, agreement, begin, gradient, objective, squares, step };
})();

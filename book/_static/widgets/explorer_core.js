/* The explorer's arithmetic: packed numbers, neighbours, and steps from point to point.
 *
 * Positions are whole numbers of 16 bits (low byte first), x and y in turn, times a unit; images
 * are 64 grey levels from 0 to 15, two to a byte, high half first. Pure functions; nothing here
 * touches the page, and tests hold them equal to Python.
 */
window.drotExplorer = (function () {
  "use strict";

  const PIXELS = 64;
  const STEPS = { right: [1, 0], left: [-1, 0], up: [0, 1], down: [0, -1] };

  function bytes(text) {
    return Array.from(atob(text), (letter) => letter.charCodeAt(0));
  }

  /* positions of a map, a list of [x, y] */
  function positions(map) {
    const raw = bytes(map.xy);
    const whole = (at) => {
      const word = raw[at] + 256 * raw[at + 1];
      return (word < 32768 ? word : word - 65536) * map.unit;
    };
    return Array.from({ length: raw.length / 4 }, (_, i) => [whole(4 * i), whole(4 * i + 2)]);
  }

  /* grey levels of all images, a list of lists of 64 numbers from 0 to 15 */
  function images(text, n) {
    const raw = bytes(text);
    const level = (i, p) => (raw[(i * PIXELS + p) >> 1] >> (p % 2 ? 0 : 4)) & 15;
    const pixels = Array.from({ length: PIXELS }, (_, p) => p);
    return Array.from({ length: n }, (_, i) => pixels.map((p) => level(i, p)));
  }

  /* the map of a method: its number in `maps`. A method without perplexity or start ignores them */
  function find(maps, method, perplexity, start) {
    return maps.findIndex(
      (map) =>
        map.method === method &&
        (map.perplexity === 0 || map.perplexity === perplexity) &&
        (map.start === "" || map.start === start)
    );
  }

  /* What the explorer shows, as a word for the address: for the two maps their method, perplexity and
   * start; then the image, from 1, and the map that is pointed at. */
  function write({ maps, image, at }) {
    const names = maps.map(({ method, xi, start }) => [method, xi, start].join("-"));
    return ["maps", ...names, image + 1 + "-" + (at ? "right" : "left")].join("_");
  }

  /* the same from such a word; null if it is none, or asks for what is not there */
  function read(word, { methods, perplexities, starts, n }) {
    const found = /^maps_(\w+)-(\d+)-(\w+)_(\w+)-(\d+)-(\w+)_(\d+)-(left|right)$/.exec(word);
    if (!found) return null;
    const one = (k) => ({ method: found[k], xi: Number(found[k + 1]), start: found[k + 2] });
    const there = ({ method, xi, start }) =>
      method in methods && perplexities.includes(xi) && start in starts;
    const state = { maps: [one(1), one(4)], image: found[7] - 1, at: Number(found[8] === "right") };
    const fits = state.maps.every(there) && state.image >= 0 && state.image < n;
    return fits ? state : null;
  }

  function squared(a, b) {
    return a.reduce((total, v, d) => total + (v - b[d]) ** 2, 0);
  }

  /* the k points nearest to point i, itself not among them; of equals the lower number first */
  function neighbours(points, i, k) {
    const far = points.map((p) => squared(p, points[i]));
    const others = points.map((_, j) => j).filter((j) => j !== i);
    return others.sort((a, b) => far[a] - far[b] || a - b).slice(0, k);
  }

  /* the point nearest to a place, or -1 if none lies within `reach` */
  function at(points, place, reach) {
    let best = -1;
    let least = reach * reach;
    points.forEach((p, i) => {
      const gap = squared(p, place);
      if (gap <= least) [best, least] = [i, gap];
    });
    return best;
  }

  /* from point i to the nearest point in a direction: more ahead than aside; i if there is none */
  function step(points, i, direction) {
    const [dx, dy] = STEPS[direction];
    let best = i;
    let least = Infinity;
    points.forEach((p, j) => {
      const [x, y] = [p[0] - points[i][0], p[1] - points[i][1]];
      const ahead = x * dx + y * dy;
      const aside = Math.abs(x * dy - y * dx);
      const gap = x * x + y * y;
      if (ahead > 0 && ahead >= aside && gap < least) [best, least] = [j, gap];
    });
    return best;
  }

  /* to a picture of a given width and height, centred, one scale for both axes, y upwards */
  function fit(points, width, height, margin) {
    const range = (d) => {
      const values = points.map((p) => p[d]);
      return [Math.min(...values), Math.max(...values)];
    };
    const [[left, right], [low, high]] = [range(0), range(1)];
    const scale = Math.min(
      (width - 2 * margin) / (right - left || 1),
      (height - 2 * margin) / (high - low || 1)
    );
    return points.map(([x, y]) => [
      width / 2 + scale * (x - (left + right) / 2),
      height / 2 - scale * (y - (low + high) / 2),
    ]);
  }

  return { positions, images, find, read, write, neighbours, at, step, fit };
})();

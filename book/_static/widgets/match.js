/* The page's side of the match widget: dots that carry images, and swaps of two; the mathematics is
 * match_core.js. Its box takes data-pixels, 64 letters for each image of which `a` is white and `q`
 * black; data-dots, their places; data-a and data-b, the distances between images and between dots.
 */
(function () {
  "use strict";

  const { WIDTH, buttons, draw, element, picture, readout, row, set, widget } = drotPage;
  const [HEIGHT, BOTTOM] = [284, 260]; // of the drawing, and of its part above the legend
  const [EDGE, FAR] = [53, 28]; // from a dot to the border, at least, and to the middle of its image
  const THICK = 14; // of a line at the largest difference there could be

  /* dots in pixels, each with the place of its image: in the widest gap between its lines */
  function layout(dots) {
    const sides = [0, 1].map((q) => dots.map((dot) => dot[q]));
    const [left, right, low, high] = sides.flatMap((v) => [Math.min(...v), Math.max(...v)]);
    const unit = Math.min((WIDTH - 2 * EDGE) / (right - left), (BOTTOM - 2 * EDGE) / (high - low));
    const at = dots.map(([x, y]) => [EDGE + unit * (x - left), EDGE + unit * (high - y)]);
    return at.map(([x, y], k) => {
      const ways = at.filter((_, l) => l !== k).map(([u, v]) => Math.atan2(v - y, u - x));
      ways.sort((a, b) => a - b);
      const gaps = ways.map((way, q) => [way, ways[q + 1] ?? ways[0] + 2 * Math.PI]);
      const [from, to] = gaps.sort(([a, b], [c, d]) => d - c - (b - a))[0];
      const [cos, sin] = [Math.cos((from + to) / 2), Math.sin((from + to) / 2)];
      return { x, y, image: { x: x + FAR * cos, y: y + FAR * sin } };
    });
  }

  function makeMap(places, levels, unit, hint, press) {
    const { node, svg } = picture("", "Dots and their images", { role: "group", height: HEIGHT });
    const legend = [["drot-too-near", "too near for their images"], ["drot-too-far", "too far"]];
    legend.forEach(([name, words], q) => {
      const [x, y] = [34 + 196 * q, HEIGHT - 12];
      draw(svg, "line", { x1: x, x2: x + 26, y1: y, y2: y, "stroke-width": 4, class: name });
      draw(svg, "text", { x: x + 32, y: y + 4, class: "drot-axis" }, words);
    });
    const lines = places.map(() => draw(svg, "line"));
    const handles = places.map(({ x, y, image }, k) => {
      const handle = draw(svg, "g", { role: "button", tabindex: 0, "aria-describedby": hint });
      const [left, top] = [image.x - 16, image.y - 16];
      draw(handle, "line", { x1: x, y1: y, x2: image.x, y2: image.y, class: "drot-rule" });
      draw(handle, "rect", { x: left - 2, y: top - 2, width: 36, height: 36, class: "drot-frame" });
      const pixels = Array.from({ length: 64 }, (_, p) => {
        const at = { x: left + 4 * (p % 8), y: top + 4 * Math.floor(p / 8) };
        return draw(handle, "rect", { ...at, width: 4.2, height: 4.2, class: "drot-ink" });
      });
      draw(handle, "circle", { cx: x, cy: y, r: 8.5, class: "drot-point" });
      draw(handle, "text", { x, y: y + 4, class: "drot-number" }, k + 1);
      handle.addEventListener("click", () => press(k));
      handle.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault(); // no scrolling
        press(k);
      });
      return { handle, pixels };
    });
    function update({ A, B, carried, armed, shown }) {
      const { x: x1, y: y1 } = places[shown];
      handles.forEach(({ handle, pixels }, k) => {
        const name = "dot " + (k + 1) + ", carries image " + "abcdefg"[carried[k]];
        set(handle, { "aria-label": name, "aria-pressed": String(k === armed) });
        pixels.forEach((one, p) => set(one, { opacity: levels[64 * carried[k] + p] / 16 }));
        const far = B[shown][k] - A[carried[shown]][carried[k]]; // too far, by so much
        const width = 0.6 + (THICK * Math.abs(far)) / unit;
        const look = { class: far > 0 ? "drot-too-far" : "drot-too-near", "stroke-width": width };
        set(lines[k], { x1, y1, x2: places[k].x, y2: places[k].y, ...look });
      });
    }
    return { node, update };
  }

  function start(box, id) {
    const core = window.drotMatch;
    const [A, B, dots] = ["a", "b", "dots"].map((key) => JSON.parse(box.dataset[key]));
    const levels = Array.from(box.dataset.pixels, (letter) => letter.charCodeAt(0) - 97);
    const [best, unit] = [core.solution(A, B), Math.max(...A.flat(), ...B.flat())];
    const state = { A, B, seed: Number(box.dataset.seed), shown: 0 };
    const text = "Press a dot to see its pairs, then another: the two swap their images.";
    const hint = element("p", { class: "drot-finding", id }, text);
    const map = makeMap(layout(dots), levels, unit, id, press);
    const names = { lower: "Best swap", begin: "New start", solve: "Solution" };
    const controls = buttons(names, "What to do", (key) => ({ lower, begin, solve })[key]());
    const numbers = { value: "disagreement", share: "share of the start", swaps: "swaps" };
    const parts = [...Object.entries(numbers), ["did", 1], ["finding", 2]];
    const said = readout(parts, [], (x, key) => x.toFixed(key === "share" ? 2 : 0));

    function show(did, change) {
      Object.assign(state, { armed: null, ...change });
      const value = core.disagreement(A, B, state.carried);
      const count = core.lowering(A, B, state.carried).length;
      const above = (100 * (value / best.value - 1)).toFixed(0) + "\u00a0% above the best.";
      let finding = "This is the best of all 5040 numberings.";
      if (value > best.value) finding = "A local minimum: no swap of two lowers it, " + above;
      if (count) finding = count + " of the 21 swaps of two would lower the disagreement.";
      map.update(state);
      said.update({ value, share: value / state.first, swaps: state.swaps, did, finding });
    }

    function begin() {
      const carried = core.draw(dots.length, state.seed);
      const first = core.disagreement(A, B, carried);
      show("A random numbering.", { carried, first, swaps: 0, seed: state.seed + 1 });
    }

    function swap([k, l]) {
      const carried = core.swapped(state.carried, [k, l]);
      const less = core.disagreement(A, B, state.carried) - core.disagreement(A, B, carried);
      const by = Math.abs(less).toFixed(0) + (less > 0 ? " less." : " more.");
      const did = "Dots " + (k + 1) + " and " + (l + 1) + " have swapped: " + by;
      show(did, { carried, swaps: state.swaps + 1, shown: l });
    }

    function press(k) {
      if (state.armed === null) show("Dot " + (k + 1) + " is chosen.", { armed: k, shown: k });
      else if (state.armed === k) show("Nothing has swapped.");
      else swap([state.armed, k]);
    }

    function lower() {
      const [first] = core.lowering(A, B, state.carried);
      return first ? swap(first.pair) : show("No swap of two lowers it.");
    }

    const solve = () => show("Each numbering has been tried.", { carried: best.carried, swaps: 0 });
    begin();
    return [row("drot-pictures", [map.node, row("", [hint, controls.row, said.output])])];
  }

  widget("match", "Seven images and seven dots, compared by pairs", start);
})();

/* The page's side of the growth widget: a square enlarged, what pulls and pushes its corners, and the
 * divergence of each size; the mathematics is growth_core.js. Its box takes data-plans: the weights
 * of the four corners without self-loops (`off`) and with them (`on`).
 */
(function () {
  "use strict";

  const { WIDTH, buttons, decimals, draw, logarithmic, picture, readout, row, set } = drotPage;
  const { slider, widget } = drotPage;
  const [LOW, HIGH, NOTCHES] = [0.2, 8, 120]; // radii, in bandwidths
  const START = 1;
  const HEIGHT = 236;
  const NAMES = { off: "Without self-loops", on: "With self-loops" };

  /* always as large on the screen; a bar tells the scale */
  function makeSquare() {
    const label = "The square, what pulls and pushes its corners, and a scale bar";
    const { node, svg } = picture("The map", label, { height: HEIGHT });
    const [middle, half] = [WIDTH / 2, 62];
    const at = [[-1, 1], [-1, -1], [1, 1], [1, -1]].map(([x, y]) => [middle + half * x, 88 + half * y]);
    const legend = [["drot-too-near", "pushes", 40], ["drot-too-far", "pulls", 190]];
    for (const [kind, word, x] of legend) {
      const line = { x1: x, x2: x + 28, y1: 182, y2: 182, "stroke-width": 4, class: kind };
      draw(svg, "line", line);
      draw(svg, "text", { x: x + 36, y: 186, class: "drot-axis" }, word);
    }
    const pairs = at.flatMap((_, i) => at.slice(0, i).map((__, j) => [i, j]));
    const lines = pairs.map(([i, j]) => {
      const [[x1, y1], [x2, y2]] = [at[i], at[j]];
      return draw(svg, "line", { x1, y1, x2, y2 });
    });
    for (const [cx, cy] of at) draw(svg, "circle", { cx, cy, r: 7, class: "drot-point" });
    const bar = draw(svg, "path", { class: "drot-rule", fill: "none" });
    const word = draw(svg, "text", { y: 228, class: "drot-axis" });
    function update(P, Q, radius) {
      pairs.forEach(([i, j], k) => {
        const pull = P[i][j] - Q[i][j];
        const kind = pull > 0 ? "drot-too-far" : "drot-too-near";
        set(lines[k], { class: kind, "stroke-width": 60 * Math.abs(pull), "data-value": pull });
      });
      const unit = (half * Math.SQRT2) / radius; // pixels for one bandwidth
      const [length, name] = unit > 100 ? [0.1, "0.1 bandwidths"] : [1, "1 bandwidth"];
      const from = 40;
      set(bar, { d: "M" + from + " 218v8h" + length * unit + "v-8" });
      set(word, { x: from + length * unit + 8 }).textContent = name;
    }
    return { node, update };
  }

  /* both axes are logarithmic */
  function makeCurves(plans, kl) {
    const label = "KL divergence against the radius of the map, without self-loops and with them";
    const { node, svg } = picture("KL per point", label, { height: HEIGHT });
    const [left, right, top, bottom] = [44, WIDTH - 12, 14, 196];
    const across = (r) => left + (Math.log(r / LOW) / Math.log(HIGH / LOW)) * (right - left);
    const up = (v) => bottom - ((Math.log10(v) + 6) / 6) * (bottom - top);
    for (const [power, tick] of [[0, "1"], [-2, "10⁻²"], [-4, "10⁻⁴"], [-6, "10⁻⁶"]]) {
      const y = up(10 ** power);
      draw(svg, "line", { x1: left, x2: right, y1: y, y2: y, class: "drot-grid" });
      draw(svg, "text", { x: left - 4, y: y + 4, class: "drot-tick drot-end" }, tick);
    }
    for (const r of [0.2, 1, 5]) {
      draw(svg, "text", { x: across(r), y: bottom + 17, class: "drot-tick" }, r);
    }
    draw(svg, "text", { x: right, y: 232, class: "drot-axis drot-end" }, "radius, in bandwidths");
    draw(svg, "line", { x1: left, x2: right, y1: bottom, y2: bottom, class: "drot-rule" });
    const curves = {};
    for (const mode in plans) {
      const points = Array.from({ length: NOTCHES + 1 }, (_, k) => {
        const r = LOW * (HIGH / LOW) ** (k / NOTCHES);
        return across(r).toFixed(1) + "," + up(kl(mode, r)).toFixed(1);
      });
      curves[mode] = draw(svg, "polyline", { points: points.join(" "), class: "drot-curve" });
    }
    const dot = draw(svg, "circle", { r: 6, class: "drot-dot" });
    function update(mode, radius, value) {
      for (const key in curves) set(curves[key], { "stroke-opacity": key === mode ? 1 : 0.5 });
      set(dot, { cx: across(radius), cy: up(value) });
    }
    return { node, update };
  }

  function start(box, id) {
    const core = window.drotGrowth;
    const plans = JSON.parse(box.dataset.plans);
    const at = (mode, radius) => core.measure(plans[mode], core.square(radius), mode === "on");
    const { notch, value } = logarithmic(LOW, HIGH, NOTCHES);
    const range = { min: 0, max: NOTCHES };
    const control = slider(id + "-size", "Radius of the map", range, (k) => show(mode, value(k)));
    const chooser = buttons(NAMES, "Which pairs count", (key) => show(key, radius));
    const parts = [["radius", "radius"], ["kl", "KL per point"], ["growth", "growth"], ["verdict", 2]];
    const format = (x, key) => decimals(x, key === "radius" ? 2 : 6);
    const said = readout(parts, [control.input], format);
    const map = makeSquare();
    const curves = makeCurves(plans, (key, r) => at(key, r).kl);
    let [mode, radius] = ["off", START];

    function show(key, r) {
      [mode, radius] = [key, r];
      const { Q, kl, growth } = at(mode, radius);
      map.update(plans[mode], Q, radius);
      curves.update(mode, radius, kl);
      const way = growth > 0 ? "enlarges this map" : "makes this map smaller";
      said.update({ radius, kl, growth, verdict: "A step down the gradient " + way + "." });
      control.input.value = notch(radius);
      control.input.setAttribute("aria-valuetext", "radius " + decimals(radius));
      chooser.show(mode);
    }

    show(mode, radius);
    const pictures = row("drot-pictures", [map.node, curves.node]);
    return [chooser.row, control.row, said.output, pictures];
  }

  widget("growth", "A square map, enlarged, and its divergence from the data", start);
})();

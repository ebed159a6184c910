/* The page's side of the row widget: sliders, bars and curve; the mathematics is row_core.js.
 * Its box also takes data-costs, such as [0, 1, 4], and data-perplexity.
 */
(function () {
  "use strict";

  const { WIDTH, clamp, draw, element, picture, readout, row, set, slider, widget } = drotPage;
  const DEFAULT_COSTS = [0, 1.1, 1.6, 2.0, 2.3, 3.1, 4.0, 4.4, 5.8, 7.2, 8.5, 9.9];
  const HEIGHT = 236;
  const MANY = 16; // up to so many bars, each has its numbers

  /* four significant digits, without exponents in the range a slider meets */
  function show(x) {
    const digits = Math.abs(x) >= 1000 ? x.toFixed(0) : x.toPrecision(4);
    return digits.includes("e") ? x.toExponential(2) : digits;
  }

  function short(x) {
    if (x === 0) return "0";
    return Math.abs(x) < 9.95 ? x.toFixed(1) : x.toFixed(0);
  }

  /* probabilities grow upwards from one baseline, costs hang below the other */
  function makeBars(costs) {
    const label = "Bars: the probability of each entry, above its cost";
    const { node, svg } = picture("", label, { height: HEIGHT });
    const left = 6;
    const step = (WIDTH - 2 * left) / costs.length;
    const width = Math.min(0.72 * step, 30);
    const up = { base: 138, tall: 108 }; // pixels of probability 1
    const down = { base: 156, tall: 54 }; // pixels of the largest cost
    const low = Math.min(0, ...costs);
    const scale = down.tall / (Math.max(...costs) - low || 1);
    draw(svg, "text", { x: left, y: 12, class: "drot-axis" }, "probability p");
    draw(svg, "text", { x: left, y: 234, class: "drot-axis drot-warm-text" }, "cost c");
    for (const { base } of [up, down]) {
      draw(svg, "line", { x1: left, x2: WIDTH - left, y1: base, y2: base, class: "drot-rule" });
    }
    const bars = costs.map((cost, j) => {
      const x = left + (j + 0.5) * step; // its middle
      const depth = (cost - low) * scale;
      const box = { x: x - width / 2 + 0.6, y: down.base, width: width - 1.2, height: depth };
      draw(svg, "rect", { ...box, class: "drot-cost" });
      if (costs.length <= MANY) {
        draw(svg, "text", { x, y: up.base + 13, class: "drot-tick" }, j + 1);
        draw(svg, "text", { x, y: down.base + depth + 12, class: "drot-tick" }, short(cost));
      }
      const bar = draw(svg, "rect", { x: x - width / 2, width, class: "drot-probability" });
      return { bar, text: draw(svg, "text", { x, class: "drot-tick" }) };
    });
    function update(p) {
      p.forEach((q, j) => {
        const { bar, text } = bars[j];
        const height = q * up.tall;
        set(bar, { y: up.base - height, height });
        set(text, { y: up.base - height - 4 });
        const shown = costs.length <= MANY && q >= 0.005;
        text.textContent = shown ? q.toFixed(2).replace(/^0/, "") : "";
      });
    }
    return { node, update };
  }

  /* perplexity against log eps, with the current pair as a dot */
  function makeCurve(core, costs, { min, max }) {
    const label = "Curve: perplexity rises with the bandwidth; the dot is the current pair";
    const { node, svg } = picture("", label, { height: HEIGHT });
    const [left, right, top, bottom] = [30, WIDTH - 12, 22, 196];
    const n = costs.length;
    const x = (t) => left + ((t - min) / (max - min)) * (right - left);
    const y = (xi) => bottom - ((xi - 1) / (n - 1)) * (bottom - top);
    draw(svg, "text", { x: 0, y: 12, class: "drot-axis" }, "perplexity");
    draw(svg, "text", { x: right, y: 232, class: "drot-axis drot-end" }, "bandwidth ε, log scale");
    for (const xi of [1, Math.round((n + 2) / 3), Math.round((2 * n + 1) / 3), n]) {
      draw(svg, "line", { x1: left, x2: right, y1: y(xi), y2: y(xi), class: "drot-grid" });
      draw(svg, "text", { x: left - 6, y: y(xi) + 4, class: "drot-tick drot-end" }, xi);
    }
    const marks = max - min < 2.4 ? [1, 2, 5] : [1];
    for (let decade = Math.floor(min); decade <= max; decade += 1) {
      for (const m of marks) {
        const t = decade + Math.log10(m);
        if (t < min || t > max) continue;
        draw(svg, "line", { x1: x(t), x2: x(t), y1: bottom, y2: bottom + 4, class: "drot-rule" });
        const tick = String(Number((m * 10 ** decade).toPrecision(1)));
        draw(svg, "text", { x: x(t), y: bottom + 17, class: "drot-tick" }, tick);
      }
    }
    draw(svg, "line", { x1: left, x2: right, y1: bottom, y2: bottom, class: "drot-rule" });
    const points = Array.from({ length: 121 }, (_, k) => {
      const t = min + (k / 120) * (max - min);
      const xi = core.perplexity(core.softmax(costs, 10 ** t));
      return x(t).toFixed(2) + "," + y(xi).toFixed(2);
    });
    const cross = draw(svg, "path", { class: "drot-cross" });
    draw(svg, "polyline", { points: points.join(" "), class: "drot-curve" });
    const dot = draw(svg, "circle", { r: 6, class: "drot-dot" });
    function update(eps, xi) {
      const [cx, cy] = [x(Math.log10(eps)), y(xi)];
      set(dot, { cx, cy });
      set(cross, { d: "M" + left + " " + cy + "H" + cx + "V" + bottom });
    }
    return { node, update };
  }

  function start(box, id) {
    const core = window.drotRow;
    const costs = box.dataset.costs ? JSON.parse(box.dataset.costs) : DEFAULT_COSTS;
    const least = core.ties(costs) + 0.1;
    const most = costs.length - 0.1;
    if (least >= most) throw new RangeError("equal costs: no bandwidth changes the row");
    const range = {
      min: Math.floor(50 * Math.log10(core.solve(costs, least))) / 50,
      max: Math.ceil(50 * Math.log10(core.solve(costs, most))) / 50,
      step: 0.02,
    };
    const label = (name, symbol) => [name + " ", element("i", {}, symbol)];
    const byEps = slider(id + "-eps", label("Bandwidth", "ε"), range, (t) => {
      byXi.input.value = update(10 ** t);
    });
    const perplexities = { min: least, max: most, step: 0.1 };
    const byXi = slider(id + "-xi", label("Target perplexity", "ξ"), perplexities, follow);
    const parts = [
      ["eps", "bandwidth ε"],
      ["perplexity", "perplexity ξ"],
      ["cost", "expected cost ⟨p, c⟩"],
    ];
    const said = readout(parts, [byEps.input, byXi.input], show);
    const bars = makeBars(costs);
    const curve = makeCurve(core, costs, range);

    function update(eps) {
      const p = core.softmax(costs, eps);
      const xi = core.perplexity(p);
      bars.update(p);
      curve.update(eps, xi);
      said.update({ eps, perplexity: xi, cost: core.expectedCost(p, costs) });
      byEps.input.setAttribute("aria-valuetext", "bandwidth " + show(eps));
      byXi.input.setAttribute("aria-valuetext", "perplexity " + xi.toFixed(1));
      return xi;
    }

    /* the bandwidth that a perplexity takes */
    function follow(xi) {
      const eps = core.solve(costs, xi);
      update(eps);
      byEps.input.value = Math.log10(eps);
    }

    byXi.input.value = clamp(Number(box.dataset.perplexity || 4), least, most);
    follow(Number(byXi.input.value));
    const controls = row("drot-controls", [byEps.row, byXi.row]);
    return [controls, said.output, row("drot-pictures", [bars.node, curve.node])];
  }

  widget("row", "One row against its perplexity", start);
})();

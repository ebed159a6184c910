/* The page's side of the row widget: sliders, bars and curve; the mathematics is row_core.js.
 *
 *   <div class="drot-widget" data-widget="row" data-costs="[0, 1, 4]" data-perplexity="2">
 *     <p class="drot-finding">What one sees, in a sentence: all there is without JavaScript.</p>
 *   </div>
 */
(function () {
  "use strict";

  const SVG = "http://www.w3.org/2000/svg";
  const DEFAULT_COSTS = [0, 1.1, 1.6, 2.0, 2.3, 3.1, 4.0, 4.4, 5.8, 7.2, 8.5, 9.9];
  const WIDTH = 340; // user units; about one CSS pixel on a phone
  let count = 0;

  function element(name, attributes, text) {
    const node = document.createElement(name);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    if (text !== undefined) node.textContent = text;
    return node;
  }

  function draw(parent, name, attributes, text) {
    const node = document.createElementNS(SVG, name);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    if (text !== undefined) node.textContent = text;
    parent.appendChild(node);
    return node;
  }

  /* four significant digits, without exponents in the range a slider meets */
  function show(x) {
    const digits = Math.abs(x) >= 1000 ? x.toFixed(0) : x.toPrecision(4);
    return digits.includes("e") ? x.toExponential(2) : digits;
  }

  function short(x) {
    if (x === 0) return "0";
    return Math.abs(x) < 9.95 ? x.toFixed(1) : x.toFixed(0);
  }

  function picture(title, height) {
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", "0 0 " + WIDTH + " " + height);
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", title);
    return svg;
  }

  /* probabilities grow upwards from one baseline, costs hang below the other */
  function makeBars(costs) {
    const svg = picture("Bars: the probability of each entry, above its cost", 236);
    const n = costs.length;
    const left = 6;
    const step = (WIDTH - 2 * left) / n;
    const width = Math.min(0.72 * step, 30);
    const up = { base: 138, tall: 108 }; // pixels of probability 1
    const down = { base: 156, tall: 54 }; // pixels of the largest cost
    const low = Math.min(0, ...costs);
    const scale = down.tall / (Math.max(...costs) - low || 1);
    draw(svg, "text", { x: left, y: 12, class: "drot-axis" }, "probability p");
    draw(svg, "text", { x: left, y: 234, class: "drot-axis drot-warm-text" }, "cost c");
    draw(svg, "line", { x1: left, x2: WIDTH - left, y1: up.base, y2: up.base, class: "drot-rule" });
    draw(svg, "line", { x1: left, x2: WIDTH - left, y1: down.base, y2: down.base, class: "drot-rule" });
    const labelled = n <= 16;
    const bars = costs.map((cost, j) => {
      const centre = left + (j + 0.5) * step;
      const x = centre - width / 2;
      const depth = (cost - low) * scale;
      draw(svg, "rect", { x: x + 0.6, y: down.base, width: width - 1.2, height: depth, class: "drot-cost" });
      if (labelled) {
        draw(svg, "text", { x: centre, y: up.base + 13, class: "drot-tick" }, j + 1);
        draw(svg, "text", { x: centre, y: down.base + depth + 12, class: "drot-tick" }, short(cost));
      }
      const bar = draw(svg, "rect", { x, y: up.base, width, height: 0, class: "drot-probability" });
      const text = labelled ? draw(svg, "text", { x: centre, y: up.base, class: "drot-tick" }) : null;
      return { bar, text };
    });
    function update(p) {
      p.forEach((q, j) => {
        const height = q * up.tall;
        bars[j].bar.setAttribute("y", up.base - height);
        bars[j].bar.setAttribute("height", height);
        if (bars[j].text) {
          bars[j].text.setAttribute("y", up.base - height - 4);
          const digits = q.toFixed(2);
          bars[j].text.textContent = q < 0.005 ? "" : digits.replace(/^0/, "");
        }
      });
    }
    return { svg, update };
  }

  /* perplexity against log eps, with the current pair as a dot */
  function makeCurve(core, costs, range) {
    const svg = picture("Curve: perplexity rises with the bandwidth; the dot is the current pair", 236);
    const box = { left: 30, right: WIDTH - 12, top: 22, bottom: 196 };
    const n = costs.length;
    const x = (t) => box.left + ((t - range.low) / (range.high - range.low)) * (box.right - box.left);
    const y = (xi) => box.bottom - ((xi - 1) / (n - 1)) * (box.bottom - box.top);
    draw(svg, "text", { x: 0, y: 12, class: "drot-axis" }, "perplexity");
    draw(svg, "text", { x: box.right, y: 232, class: "drot-axis drot-end" }, "bandwidth ε, log scale");
    for (const xi of [1, Math.round((n + 2) / 3), Math.round((2 * n + 1) / 3), n]) {
      draw(svg, "line", { x1: box.left, x2: box.right, y1: y(xi), y2: y(xi), class: "drot-grid" });
      draw(svg, "text", { x: box.left - 6, y: y(xi) + 4, class: "drot-tick drot-end" }, xi);
    }
    const marks = range.high - range.low < 2.4 ? [1, 2, 5] : [1];
    for (let decade = Math.floor(range.low); decade <= range.high; decade += 1) {
      for (const m of marks) {
        const t = decade + Math.log10(m);
        if (t < range.low || t > range.high) continue;
        draw(svg, "line", { x1: x(t), x2: x(t), y1: box.bottom, y2: box.bottom + 4, class: "drot-rule" });
        const label = String(Number((m * 10 ** decade).toPrecision(1)));
        draw(svg, "text", { x: x(t), y: box.bottom + 17, class: "drot-tick" }, label);
      }
    }
    draw(svg, "line", { x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom, class: "drot-rule" });
    const points = [];
    for (let k = 0; k <= 120; k += 1) {
      const t = range.low + (k / 120) * (range.high - range.low);
      const xi = core.perplexity(core.softmax(costs, 10 ** t));
      points.push(x(t).toFixed(2) + "," + y(xi).toFixed(2));
    }
    const cross = draw(svg, "path", { class: "drot-cross" });
    draw(svg, "polyline", { points: points.join(" "), class: "drot-curve" });
    const dot = draw(svg, "circle", { r: 6, class: "drot-dot" });
    function update(eps, xi) {
      const px = x(Math.log10(eps));
      const py = y(xi);
      dot.setAttribute("cx", px);
      dot.setAttribute("cy", py);
      cross.setAttribute("d", "M" + box.left + " " + py + "H" + px + "V" + box.bottom);
    }
    return { svg, update };
  }

  function makeSlider(id, name, symbol, range) {
    const row = element("div", { class: "drot-control" });
    const label = element("label", { for: id }, name + " ");
    label.appendChild(element("i", {}, symbol));
    const input = element("input", { id, type: "range", ...range });
    row.append(label, input);
    return { row, input };
  }

  function makeReadout(ids) {
    const output = element("output", { class: "drot-readout", for: ids.join(" "), "aria-live": "polite" });
    const values = {};
    for (const [key, name] of [
      ["eps", "bandwidth ε"],
      ["perplexity", "perplexity ξ"],
      ["cost", "expected cost ⟨p, c⟩"],
    ]) {
      const item = element("span", {}, name + " ");
      values[key] = element("b", { "data-name": key });
      item.appendChild(values[key]);
      output.append(item, " ");
    }
    function update(numbers) {
      for (const key in values) {
        values[key].textContent = show(numbers[key]);
        values[key].setAttribute("data-value", String(numbers[key])); // all digits, for the tests
      }
    }
    return { output, update };
  }

  function start(box) {
    const core = window.drotRow;
    const costs = box.dataset.costs ? JSON.parse(box.dataset.costs) : DEFAULT_COSTS;
    const least = core.ties(costs) + 0.1;
    const most = costs.length - 0.1;
    if (least >= most) throw new RangeError("the costs are all equal: no bandwidth changes the row");
    const range = {
      low: Math.floor(50 * Math.log10(core.solve(costs, least))) / 50,
      high: Math.ceil(50 * Math.log10(core.solve(costs, most))) / 50,
    };
    const id = "drot-row-" + (count += 1);
    const byEps = makeSlider(id + "-eps", "Bandwidth", "ε", { min: range.low, max: range.high, step: 0.02 });
    const byXi = makeSlider(id + "-xi", "Target perplexity", "ξ", { min: least, max: most, step: 0.1 });
    const readout = makeReadout([byEps.input.id, byXi.input.id]);
    const bars = makeBars(costs);
    const curve = makeCurve(core, costs, range);

    function update(eps) {
      const p = core.softmax(costs, eps);
      const xi = core.perplexity(p);
      bars.update(p);
      curve.update(eps, xi);
      readout.update({ eps, perplexity: xi, cost: core.expectedCost(p, costs) });
      byEps.input.setAttribute("aria-valuetext", "bandwidth " + show(eps));
      byXi.input.setAttribute("aria-valuetext", "perplexity " + xi.toFixed(1));
      return xi;
    }

    byEps.input.addEventListener("input", () => {
      byXi.input.value = update(10 ** Number(byEps.input.value));
    });
    byXi.input.addEventListener("input", () => {
      const eps = core.solve(costs, Number(byXi.input.value));
      update(eps);
      byEps.input.value = Math.log10(eps);
    });

    const pictures = element("div", { class: "drot-pictures" });
    pictures.append(bars.svg, curve.svg);
    const controls = element("div", { class: "drot-controls" });
    controls.append(byEps.row, byXi.row);
    box.prepend(controls, readout.output, pictures);
    box.setAttribute("role", "group");
    if (!box.hasAttribute("aria-label")) box.setAttribute("aria-label", "One row against its perplexity");

    const wish = Number(box.dataset.perplexity || 4);
    byXi.input.value = Math.min(Math.max(wish, least), most);
    const eps = core.solve(costs, Number(byXi.input.value));
    byEps.input.value = Math.log10(eps);
    update(eps);
  }

  function startAll() {
    for (const box of document.querySelectorAll('[data-widget="row"]:not([data-ready])')) {
      box.setAttribute("data-ready", "");
      start(box);
    }
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", startAll);
  else startAll();
})();

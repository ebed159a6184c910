/* The page's side of the prices widget: a town, the carrier's fees at its bakeries, and her bill; the
 * mathematics is prices_core.js. Its box takes data-town: places of `bakeries` and `cafes`, loaves
 * that they have (`has`) and want (`wants`).
 */
(function () {
  "use strict";

  const { WIDTH, buttons, decimals, draw, element } = drotPage;
  const { picture, readout, row, set, slider, widget } = drotPage;
  const HEIGHT = 262;
  const MOST = 24; // of a fee that a slider sets
  const [LEFT, RIGHT, TOP, BOTTOM] = [38, WIDTH - 38, 24, HEIGHT - 48];

  function layout(points) {
    const [low, high] = [Math.min, Math.max].map((end) => {
      return [0, 1].map((q) => end(...points.map((point) => point[q])));
    });
    return points.map(([x, y]) => {
      const right = (x - low[0]) / (high[0] - low[0]);
      const up = (y - low[1]) / (high[1] - low[1]);
      return [LEFT + right * (RIGHT - LEFT), BOTTOM - up * (BOTTOM - TOP)];
    });
  }

  /* squares are bakeries, discs cafés; a line joins a café to the bakeries that set its fee */
  function makeTown({ bakeries, cafes, has, wants, beside = [] }) {
    const label = "The town, and where two fees add up to the cost of a way";
    const { node, svg } = picture("", label, { height: HEIGHT });
    const at = layout([...bakeries, ...cafes]);
    const ways = bakeries.map((_, i) => cafes.map((_, j) => {
      const [[x1, y1], [x2, y2]] = [at[i], at[bakeries.length + j]];
      return draw(svg, "line", { x1, y1, x2, y2, class: "drot-edge" });
    }));
    const words = at.map(([x, y], k) => {
      const j = k - bakeries.length;
      const square = { x: x - 10, y: y - 10, width: 20, height: 20, class: "drot-probability" };
      if (j < 0) draw(svg, "rect", square);
      else draw(svg, "circle", { cx: x, cy: y, r: 11.5, class: "drot-dot" });
      draw(svg, "text", { x, y: y + 4, class: "drot-number" }, j < 0 ? k + 1 : "abcdefg"[j]);
      const loaves = j < 0 ? "has " + has[k] : "wants " + wants[j];
      const [across, down] = beside.includes(j) ? [42, -2] : [0, 24]; // where no line passes
      const place = { x: x + across, class: "drot-tick drot-word" };
      draw(svg, "text", { ...place, y: y + down }, loaves);
      return draw(svg, "text", { ...place, y: y + down + 13 });
    });
    function update(fees, tight) {
      ways.flat().forEach((line) => line.setAttribute("visibility", "hidden"));
      tight.forEach(([i, j]) => ways[i][j].setAttribute("visibility", "visible"));
      words.forEach((word, k) => (word.textContent = "fee " + decimals(fees[k], 0)));
    }
    return { node, update };
  }

  /* the bill as a bar that grows towards the cost of the cheapest plan */
  function makeBar(cost) {
    const label = "The carrier’s bill, as a bar, and the cost of the cheapest plan, as a line";
    const { node, svg } = picture("", label, { height: 62 });
    const [left, right] = [8, WIDTH - 34];
    draw(svg, "line", { x1: left, x2: right, y1: 44, y2: 44, class: "drot-rule" });
    const bar = draw(svg, "rect", { x: left, y: 26, height: 18, class: "drot-probability" });
    draw(svg, "line", { x1: right, x2: right, y1: 18, y2: 52, class: "drot-cross" });
    const name = "cheapest plan: " + cost;
    draw(svg, "text", { x: WIDTH - 4, y: 12, class: "drot-axis drot-warm-text drot-end" }, name);
    const update = (bill) => {
      set(bar, { width: (Math.max(0, bill) / cost) * (right - left) });
    };
    return { node, update };
  }

  function start(box, id) {
    const core = window.drotPrices;
    const town = JSON.parse(box.dataset.town);
    town.C = core.costs(town.bakeries, town.cafes);
    const zero = town.bakeries.map(() => 0);
    const cost = core.bound(town, core.best(town, zero, MOST));
    const state = { f: zero };
    const sliders = zero.map((_, i) => {
      const move = (x) => show("", state.f.map((old, q) => (q === i ? x : old)));
      return slider(id + "-" + i, "Fee at bakery " + (i + 1), { min: 0, max: MOST }, move);
    });
    const shown = sliders.map((one) => {
      const value = element("span", { "aria-hidden": "true" }); // who hears has aria-valuetext
      one.row.firstChild.append(": ", value);
      return value;
    });
    const map = makeTown(town);
    const bar = makeBar(cost);
    const names = { zero: "No fees", step: "Best step", best: "Best fees" };
    const controls = buttons(names, "Set the fees", (key) => {
      if (key === "zero") show("All fees at bakeries are 0.", zero);
      if (key === "best") show("The best fees.", core.best(town, state.f, MOST));
      if (key === "step") stepUp();
    });
    const numbers = { bill: "bill", gap: "below the cheapest plan by" };
    const parts = [...Object.entries(numbers), ["did", 1], ["finding", 2]];
    const said = readout(parts, sliders.map(({ input }) => input), (x) => decimals(x, 0));

    function stepUp() {
      const next = core.step(town, state.f, MOST);
      if (!next) return show("No fee can be moved to raise the bill.", state.f);
      const way = next.by > 0 ? " up by 1: the bill rises by " : " down by 1: the bill rises by ";
      return show("Bakery " + (next.i + 1) + way + next.gain + ".", next.f);
    }

    function show(did, f) {
      state.f = f;
      const [bill, tight] = [core.bound(town, f), core.tight(town.C, f)];
      map.update([...f, ...core.delivery(town.C, f)], tight);
      bar.update(bill);
      const next = core.step(town, f, MOST);
      let finding = "The bill is the cost: no plan is cheaper. Loaves move only where there are lines.";
      if (next) {
        const wanted = tight.map(([i, j]) => (i === next.i ? town.wants[j] : 0));
        const asked = wanted.reduce((a, b) => a + b, 0);
        const lines = asked ? "its lines lead to cafés that want " + asked : "no line leads to it";
        const advice = (next.by > 0 ? "Raise" : "Lower") + " its fee.";
        const has = "Bakery " + (next.i + 1) + " has " + town.has[next.i] + " loaves, and ";
        finding = has + lines + ". " + advice;
      }
      said.update({ bill, gap: cost - bill, did, finding });
      sliders.forEach(({ input }, i) => {
        input.value = f[i];
        shown[i].textContent = decimals(f[i], 0);
        input.setAttribute("aria-valuetext", "fee " + f[i]);
      });
    }

    show("All fees at bakeries are 0.", zero);
    const side = [...sliders.map((one) => one.row), bar.node, said.output];
    return [controls.row, row("drot-pictures", [map.node, row("", side)])];
  }

  widget("prices", "A town with three bakeries and four cafés, and a carrier’s fees", start);
})();

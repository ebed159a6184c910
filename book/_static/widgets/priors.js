/* The page's side of the widget on graph priors: points to drag, a bandwidth, three priors, graphs
 * to draw; the mathematics is priors_core.js.
 *
 *   <div class="drot-widget" data-widget="priors" data-prior="row" data-bandwidth="1">
 *     <p class="drot-finding">What one sees, in a sentence: all there is without JavaScript.</p>
 *   </div>
 */
(function () {
  "use strict";

  const SVG = "http://www.w3.org/2000/svg";
  const WIDTH = 340; // user units; about one CSS pixel on a phone
  const HEIGHT = 240;
  const MARGIN = 16; // kept between a point and the border of its panel
  const UNIT = 42; // user units for one unit of length
  const NOTCHES = 60; // positions of the slider
  const TAU = [0.3, 3]; // its ends
  const SEED = 7; // the same graphs for every reader
  const BEND = 0.13; // an edge bends to the right, by this share of its length

  const START = [
    [-1.9, 0.5], [-1.1, 1.3], [-0.8, 0], [-1.7, -1], [0.3, 0.9], [0.5, -0.8], [2.6, 0.2],
  ];
  const NAMES = {
    row: "D: one edge out of each point",
    binary: "B: each edge on its own",
    edges: "E: n edges in all",
  };
  const KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
  let count = 0;

  function set(node, attributes) {
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    return node;
  }

  /* content: text, or a list of nodes and texts */
  function element(name, attributes, content = []) {
    const node = set(document.createElement(name), attributes);
    node.append(...[content].flat());
    return node;
  }

  function draw(parent, name, attributes) {
    return parent.appendChild(set(document.createElementNS(SVG, name), attributes));
  }

  const round = (x) => Math.round(100 * x) / 100 + 0; // + 0 turns -0 into 0
  const clamp = (x, most) => Math.min(Math.max(x, -most), most);
  const decimals = (x) => x.toFixed(2);
  const place = ([x, y]) => "(" + decimals(x) + ", " + decimals(y) + ")";
  const pixel = ([x, y]) => [WIDTH / 2 + UNIT * x, HEIGHT / 2 - UNIT * y];
  const largest = (M) => Math.max(...M.flat());

  /* path of the edge from a to b, and of an arrow head on it */
  function arc([x, y], [v, w]) {
    const [dx, dy] = [v - x, w - y];
    const control = [(x + v) / 2 - 2 * BEND * dy, (y + w) / 2 + 2 * BEND * dx];
    const t = 0.66; // where the head points to
    const at = [0, 1].map(
      (k) => (1 - t) ** 2 * [x, y][k] + 2 * t * (1 - t) * control[k] + t * t * [v, w][k]
    );
    const along = [0, 1].map(
      (k) => (1 - t) * (control[k] - [x, y][k]) + t * ([v, w][k] - control[k])
    );
    const length = Math.hypot(...along) || 1;
    const [ux, uy] = along.map((c) => (7 * c) / length);
    const corner = (side) => [at[0] - ux - (side * uy) / 2, at[1] - uy + (side * ux) / 2];
    const text = (p) => p.map((c) => c.toFixed(2)).join(" ");
    return {
      line: "M" + text([x, y]) + "Q" + text(control) + " " + text([v, w]),
      head: "M" + text(at) + "L" + text(corner(1)) + "L" + text(corner(-1)) + "Z",
    };
  }

  /* edges of n points in one colour, as dark or as thick as their weights */
  function makeEdges(svg, n, kind, colour) {
    const edges = [];
    const layer = draw(svg, "g", { style: "fill: " + colour + "; stroke: none" });
    for (let i = 0; i < n; i += 1) {
      for (let j = 0; j < n; j += 1) {
        if (j === i) continue;
        const line = draw(layer, "path", { class: kind, "data-from": i, "data-to": j });
        line.setAttribute("style", "fill: none; stroke: " + colour);
        edges.push({ i, j, line, head: draw(layer, "path", {}) });
      }
    }
    return (at, W, dark) => {
      for (const { i, j, line, head } of edges) {
        const { line: path, head: tip } = arc(at[i], at[j]);
        set(line, { d: path, "stroke-opacity": dark(W[i][j]), "data-value": String(W[i][j]) });
        line.setAttribute("stroke-width", W[i][j] > 1 && kind === "drot-last" ? 4 : 2);
        set(head, { d: tip, "fill-opacity": dark(W[i][j]) });
      }
    };
  }

  /* edges under points under words; `handles` makes its points focusable */
  function makePanel(title, label, n, handles) {
    const svg = document.createElementNS(SVG, "svg");
    set(svg, { viewBox: "0 0 " + WIDTH + " " + HEIGHT, role: handles ? "group" : "img" });
    svg.setAttribute("aria-label", label);
    const heading = element("p", { class: "drot-title" }, title);
    const mean = makeEdges(svg, n, "drot-mean", "var(--pst-color-text-base)");
    const last = handles && makeEdges(svg, n, "drot-last", "var(--drot-warm)");
    const points = Array.from({ length: n }, (_, i) => {
      const group = draw(svg, "g", { class: "drot-handle", "data-point": i });
      if (handles) set(group, { tabindex: 0, role: "button", "aria-describedby": handles });
      const hit = draw(group, "circle", { r: 14, class: "drot-hit" });
      const ring = draw(group, "circle", { r: 10.5, class: "drot-ring" });
      const dot = draw(group, "circle", { r: 6, class: "drot-point" });
      return { group, circles: [hit, ring, dot], ring };
    });
    for (const point of points) {
      point.word = draw(svg, "text", { class: "drot-tick drot-word", "aria-hidden": "true" });
    }

    function update(at, weights, drawn, words, chosen) {
      mean(at, weights, (w) => Math.min(1, w));
      if (last) last(at, drawn, (w) => (w > 0 ? 1 : 0));
      points.forEach((point, i) => {
        for (const circle of point.circles) set(circle, { cx: at[i][0], cy: at[i][1] });
        point.ring.setAttribute("visibility", i === chosen ? "visible" : "hidden");
        point.word.textContent = words[i];
        const above = at[i][1] > 26; // room above the point
        set(point.word, { x: clamp(at[i][0] - WIDTH / 2, WIDTH / 2 - 20) + WIDTH / 2 });
        point.word.setAttribute("y", at[i][1] + (above ? -14 : 23));
      });
    }

    const node = element("div", {}, [heading, svg]);
    return { node, svg, heading, update, handle: (i) => points[i].group };
  }

  function makeButtons(names, label) {
    const buttons = {};
    for (const key in names) buttons[key] = element("button", { type: "button" }, names[key]);
    const group = element("div", { class: "drot-buttons", role: "group" }, Object.values(buttons));
    group.setAttribute("aria-label", label);
    return { group, buttons };
  }

  function makeReadout(id) {
    const output = element("output", { class: "drot-readout", for: id, "aria-live": "polite" });
    const values = {};
    const item = ([key, name]) => {
      values[key] = element("b", { "data-name": key });
      return element("span", {}, [name + " ", values[key]]);
    };
    const line = (name, more = "") =>
      element("span", { class: "drot-line" + more, "data-name": name });
    const [point, verdict] = [line("point"), line("verdict", " drot-two")];
    const items = [
      ["tau", "bandwidth"],
      ["edges", "edges at it, expected"],
      ["drawn", "edges drawn"],
      ["alone", "chance of no edge"],
      ["lonely", "no edge, drawn"],
    ].map(item);
    output.append(point, ...items.flatMap((one) => [" ", one]), " ", verdict);
    function update(text, numbers, says) {
      point.textContent = text;
      for (const key in values) {
        values[key].textContent = decimals(numbers[key]);
        values[key].setAttribute("data-value", String(numbers[key])); // all digits, for the tests
      }
      verdict.textContent = says;
    }
    return { output, update };
  }

  function makeTable() {
    const heads = ["point", "edges, expected", "drawn", "alone, expected", "drawn"];
    const body = element("tbody", {});
    const head = element("tr", {}, heads.map((h) => element("th", { scope: "col" }, h)));
    const table = element("table", { class: "drot-table" }, [element("thead", {}, head), body]);
    const summary = element("summary", {}, "Edges of all points");
    const node = element("details", { class: "drot-details" }, [summary, table]);
    function update(rows) {
      body.replaceChildren(
        ...rows.map(([first, ...rest]) =>
          element("tr", {}, [
            element("th", { scope: "row" }, first), ...rest.map((cell) => element("td", {}, cell)),
          ])
        )
      );
    }
    return { node, update };
  }

  function start(box) {
    const core = window.drotPriors;
    const id = "drot-priors-" + (count += 1);
    const n = START.length;
    const hint = element("p", { class: "drot-finding", id: id + "-hint" });
    hint.append("Drag a point, or focus it and press the arrow keys (with Shift: small steps). ");
    hint.append("Edges bend to the right on their way, and are as dark as their weights. ");
    hint.append("In colour: the last graph drawn; thick, an edge drawn twice or more. ");
    hint.append("Numbers at the points count their edges, out and in.");
    const chooser = makeButtons(NAMES, "Prior");
    const drawer = makeButtons({ 1: "Draw one", 100: "Draw 100" }, "Graphs to draw");
    const input = element("input", { id: id + "-tau", type: "range", min: 0, max: NOTCHES });
    const label = element("label", { for: input.id }, "Bandwidth of the kernel");
    const slider = element("div", { class: "drot-control" }, [label, input]);
    const readout = makeReadout(input.id);
    const table = makeTable();
    const left = makePanel(
      "", "Mean of the graphs drawn, and the last one; its points can be moved", n, hint.id
    );
    const right = makePanel("Expected graph", "Expected graph on the same points", n);
    const points = START.map((p) => p.slice());
    let prior = box.dataset.prior in NAMES ? box.dataset.prior : "row";
    let tau = Math.min(Math.max(Number(box.dataset.bandwidth || 1), TAU[0]), TAU[1]);
    let chosen = n - 1;
    let waiting = false;
    let random = null;
    let drawn = null; // { m, last, sums (n, n), lonely (n,) }

    function more(m) {
      const logK = core.logKernel(points, tau);
      for (let k = 0; k < m; k += 1) {
        const W = core.sample(logK, prior, random);
        const degree = core.degrees(W);
        drawn.m += 1;
        drawn.last = W;
        drawn.sums = drawn.sums.map((row, i) => row.map((s, j) => s + W[i][j]));
        drawn.lonely = drawn.lonely.map((s, i) => s + (degree[i] === 0 ? 1 : 0));
      }
    }

    /* another law: the draws of the old one no longer count. The same random numbers again, so
     * that a graph changes little while a point is dragged */
    function restart() {
      random = core.generator(SEED);
      const zeros = () => new Array(n).fill(0);
      drawn = { m: 0, last: null, sums: points.map(zeros), lonely: zeros() };
      more(1);
      show();
    }

    function show() {
      const logK = core.logKernel(points, tau);
      const P = core.expected(logK, prior);
      const mean = drawn.sums.map((row) => row.map((s) => s / drawn.m));
      const [expect, found] = [core.degrees(P), core.degrees(mean)];
      const alone = core.alone(logK, prior);
      const lonely = drawn.lonely.map((s) => s / drawn.m);
      const at = points.map(pixel);
      const graphs = drawn.m + (drawn.m === 1 ? " graph" : " graphs");
      left.heading.textContent = "Mean of " + graphs + (drawn.m > 1 ? ", and the last one" : "");
      left.update(at, mean, drawn.last, found.map((d) => d.toFixed(1)), chosen);
      right.update(at, P, null, expect.map((d) => d.toFixed(1)), chosen);
      const gap = largest(P.map((row, i) => row.map((p, j) => Math.abs(p - mean[i][j]))));
      readout.update(
        "Point " + (chosen + 1) + " at " + place(points[chosen]),
        {
          tau,
          edges: expect[chosen],
          drawn: found[chosen],
          alone: alone[chosen],
          lonely: lonely[chosen],
        },
        graphs + " drawn. Largest difference between their mean and the expected graph: " +
          decimals(gap) + "."
      );
      points.forEach((p, i) => {
        const say = ", " + decimals(expect[i]) + " edges expected";
        left.handle(i).setAttribute("aria-label", "point " + (i + 1) + " at " + place(p) + say);
        left.handle(i).setAttribute("aria-pressed", String(i === chosen));
      });
      table.update(
        points.map((_, i) => [
          String(i + 1), ...[expect, found, alone, lonely].map((list) => decimals(list[i])),
        ])
      );
      input.setAttribute("aria-valuetext", "bandwidth " + decimals(tau));
    }

    /* at most one drawing for each frame of a drag */
    function restartSoon() {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        restart();
      });
    }

    function choose(i) {
      if (i === chosen) return;
      chosen = i;
      show();
    }

    function put(i, x, y) {
      points[i] = [
        round(clamp(x, (WIDTH / 2 - MARGIN) / UNIT)),
        round(clamp(y, (HEIGHT / 2 - MARGIN) / UNIT)),
      ];
    }

    function setPrior(name) {
      prior = name;
      for (const other in chooser.buttons) {
        chooser.buttons[other].setAttribute("aria-pressed", String(other === prior));
      }
      restart();
    }

    function listen(panel, i) {
      const handle = panel.handle(i);
      let grip = null; // from the pointer to the point, in pixels of the drawing
      const local = (event) => {
        const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(
          panel.svg.getScreenCTM().inverse()
        );
        return [x, y];
      };
      handle.addEventListener("pointerdown", (event) => {
        if (event.button !== 0) return;
        event.preventDefault(); // no selection of text
        left.handle(i).focus({ preventScroll: true }); // the arrow keys go on from here
        choose(i);
        const [x, y] = local(event);
        const [px, py] = pixel(points[i]);
        grip = [px - x, py - y];
        handle.setPointerCapture(event.pointerId);
      });
      handle.addEventListener("pointermove", (event) => {
        if (!grip) return;
        const [x, y] = local(event);
        put(i, (x + grip[0] - WIDTH / 2) / UNIT, (HEIGHT / 2 - y - grip[1]) / UNIT);
        restartSoon();
      });
      for (const end of ["pointerup", "pointercancel"]) {
        handle.addEventListener(end, () => (grip = null));
      }
      if (panel !== left) return;
      handle.addEventListener("focus", () => choose(i));
      handle.addEventListener("keydown", (event) => {
        const way = KEYS[event.key];
        if (!way || event.ctrlKey || event.altKey || event.metaKey) return;
        event.preventDefault(); // no scrolling
        const step = event.shiftKey ? 0.01 : 0.1;
        put(i, points[i][0] + step * way[0], points[i][1] + step * way[1]);
        restart();
      });
    }

    input.value = Math.round((NOTCHES * Math.log(tau / TAU[0])) / Math.log(TAU[1] / TAU[0]));
    input.addEventListener("input", () => {
      tau = round(TAU[0] * (TAU[1] / TAU[0]) ** (Number(input.value) / NOTCHES));
      restart();
    });
    for (const name in chooser.buttons) {
      chooser.buttons[name].addEventListener("click", () => setPrior(name));
    }
    for (const m in drawer.buttons) {
      drawer.buttons[m].addEventListener("click", () => {
        more(Number(m));
        show();
      });
    }
    for (const panel of [left, right]) points.forEach((_, i) => listen(panel, i));

    const pictures = element("div", { class: "drot-pictures" }, [left.node, right.node]);
    const controls = element("div", { class: "drot-controls" }, slider);
    box.prepend(
      chooser.group, controls, drawer.group, pictures, readout.output, hint, table.node
    );
    box.setAttribute("role", "group");
    if (!box.hasAttribute("aria-label")) {
      box.setAttribute("aria-label", "Random graphs of three priors on a few points");
    }
    setPrior(prior);
  }

  function startAll() {
    for (const box of document.querySelectorAll('[data-widget="priors"]:not([data-ready])')) {
      box.setAttribute("data-ready", "");
      start(box);
    }
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", startAll);
  else startAll();
})();

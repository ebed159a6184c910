/* The page's side of the symmetric affinity widget: points to drag, a slider, two graphs;
 * the mathematics is symmetric_core.js.
 *
 *   <div class="drot-widget" data-widget="symmetric" data-start="line" data-perplexity="1.5">
 *     <p class="drot-finding">What one sees, in a sentence: all there is without JavaScript.</p>
 *   </div>
 */
(function () {
  "use strict";

  const SVG = "http://www.w3.org/2000/svg";
  const WIDTH = 340; // user units; about one CSS pixel on a phone
  const HEIGHT = 240;
  const MARGIN = 16; // kept between a point and the border of its panel
  const NOTCHES = 100; // positions of the slider
  const FEW = 9; // up to so many points, each shows its perplexity
  const SAME = 5e-3; // perplexities closer than this look the same in two digits

  /* unit: pixels for one unit of length; points have two decimals, and drags keep it so */
  const STARTS = {
    line: {
      name: "line of three",
      unit: 95, // the middle can be lifted until its angle is acute
      xi: 1.5,
      chosen: 1,
      points: [[-1, 0], [0, 0], [1, 0]],
    },
    triples: {
      name: "two triples, far apart",
      unit: 72,
      xi: 1.5,
      chosen: 1,
      points: [[-1, 1.25], [0, 1.25], [1, 1.25], [-1, -1.25], [0, -1.25], [1, -1.25]],
    },
    clusters: {
      name: "two clusters of different density",
      unit: 40,
      xi: 4,
      chosen: 0,
      points: [
        [-2.6, 0.2], [-2.4, 0.7], [-2.1, -0.1], [-2.2, 0.4], [-2.7, -0.3], [-1.9, 0.5],
        [1.1, 1.4], [2.9, 1.9], [1.6, -0.3], [3.3, 0.4], [0.7, -1.8], [2.7, -1.6],
      ],
    },
    star: {
      name: "star: centre and 8 corners",
      unit: 92,
      xi: 6,
      chosen: 0,
      points: [
        [0, 0], [1, 0], [0.71, 0.71], [0, 1], [-0.71, 0.71],
        [-1, 0], [-0.71, -0.71], [0, -1], [0.71, -0.71],
      ],
    },
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

  /* P with an upper index, as the chapter writes it */
  function symbol(index) {
    return element("span", {}, [element("i", {}, "P"), element("sup", {}, index)]);
  }

  const round = (x) => Math.round(100 * x) / 100 + 0; // + 0 turns -0 into 0
  const clamp = (x, most) => Math.min(Math.max(x, -most), most);
  const decimals = (x) => (Number.isFinite(x) ? x.toFixed(2) : "–");
  const place = ([x, y]) => "(" + decimals(x) + ", " + decimals(y) + ")";
  const power = (x) => (x > 0 ? x.toExponential(0) : "0");
  const sum = (p) => p.reduce((a, b) => a + b, 0);

  /* perplexity of a row divided by its mass */
  function perplexity(p) {
    const mass = sum(p);
    return window.drotRow.perplexity(p.map((q) => q / mass));
  }

  /* all that the page shows of n points at a perplexity; throws where there is no affinity */
  function solve(points, xi, near) {
    const core = window.drotSymmetric;
    const C = core.sqeuclidean(points);
    const rows = core.entropicAffinity(C, xi).P;
    const found = core.symmetricEntropicAffinity(C, xi, near);
    const halved = core.symmetrise(rows);
    return {
      found,
      left: halved,
      right: found.P,
      before: rows.map(perplexity),
      after: halved.map(perplexity),
      mass: halved.map(sum),
      symmetric: found.P.map(perplexity),
    };
  }

  /* why there is no affinity, in one sentence */
  function reason(points, xi, error) {
    const alike = (p) => points.filter((q) => q[0] === p[0] && q[1] === p[1]).length;
    const most = Math.max(...points.map(alike));
    if (xi > most) return "No affinity to show: " + error.message + ".";
    return (
      "No affinity to show: " + most + " points coincide, and no bandwidth gives them a " +
      "perplexity of " + decimals(xi) + "."
    );
  }

  /* one graph: edges under points under words; `handles` makes its points focusable */
  function makePanel(title, label, handles) {
    const svg = document.createElementNS(SVG, "svg");
    set(svg, { viewBox: "0 0 " + WIDTH + " " + HEIGHT, role: handles ? "group" : "img" });
    svg.setAttribute("aria-label", label);
    const node = element("div", {}, [element("p", { class: "drot-title" }, title), svg]);
    let edges = [];
    let points = [];

    function build(n) {
      svg.replaceChildren();
      edges = [];
      for (let i = 0; i < n; i += 1) {
        for (let j = 0; j < i; j += 1) {
          edges.push({ i, j, line: draw(svg, "line", { class: "drot-edge" }) });
        }
      }
      points = Array.from({ length: n }, (_, i) => {
        const group = draw(svg, "g", { class: "drot-handle", "data-point": i });
        if (handles) set(group, { tabindex: 0, role: "button", "aria-describedby": handles });
        const hit = draw(group, "circle", { r: 14, class: "drot-hit" });
        const ring = draw(group, "circle", { r: 10.5, class: "drot-ring" });
        const dot = draw(group, "circle", { r: 6 });
        return { group, circles: [hit, ring, dot], ring, dot };
      });
      for (const point of points) {
        point.word = draw(svg, "text", { class: "drot-tick drot-word", "aria-hidden": "true" });
      }
    }

    /* P null: points without edges */
    function update(at, P, darkest, perplexities, xi, words, chosen) {
      for (const { i, j, line } of edges) {
        const weight = P ? P[i][j] : 0;
        set(line, { x1: at[i][0], y1: at[i][1], x2: at[j][0], y2: at[j][1] });
        line.setAttribute("stroke-opacity", P && darkest > 0 ? weight / darkest : 0);
        line.setAttribute("data-value", String(weight)); // all digits, for the tests
      }
      points.forEach((point, i) => {
        for (const circle of point.circles) set(circle, { cx: at[i][0], cy: at[i][1] });
        const over = P ? perplexities[i] - xi : 0;
        const kind = over > SAME ? " drot-over" : over < -SAME ? " drot-under" : "";
        point.dot.setAttribute("class", "drot-point" + kind);
        point.ring.setAttribute("visibility", i === chosen ? "visible" : "hidden");
        point.word.textContent = P && (points.length <= FEW || i === chosen) ? words[i] : "";
        const above = at[i][1] > 26; // room above the point
        set(point.word, { x: clamp(at[i][0] - WIDTH / 2, WIDTH / 2 - 36) + WIDTH / 2 });
        point.word.setAttribute("y", at[i][1] + (above ? -14 : 23));
      });
    }

    return { node, svg, build, update, handle: (i) => points[i].group };
  }

  function makeSlider(id) {
    const label = element("label", { for: id }, ["Target perplexity ", element("i", {}, "ξ")]);
    const input = element("input", { id, type: "range", min: 0, max: NOTCHES, step: 1 });
    return { row: element("div", { class: "drot-control" }, [label, input]), input };
  }

  function makeButtons() {
    const buttons = {};
    for (const key in STARTS) {
      buttons[key] = element("button", { type: "button" }, STARTS[key].name);
    }
    const group = element("div", { class: "drot-buttons", role: "group" }, Object.values(buttons));
    group.setAttribute("aria-label", "Points to start from");
    return { group, buttons };
  }

  function makeReadout(id) {
    const output = element("output", { class: "drot-readout", for: id, "aria-live": "polite" });
    const values = {};
    const item = ([key, name]) => {
      values[key] = element("b", { "data-name": key });
      return element("span", {}, [...name, " ", values[key]]);
    };
    const line = (name, more = "") =>
      element("span", { class: "drot-line" + more, "data-name": name });
    const [point, verdict, solver] = [line("point"), line("verdict"), line("solver", " drot-two")];
    const items = [
      ["xi", ["target ", element("i", {}, "ξ")]],
      ["before", [symbol("e")]],
      ["after", ["symmetrised"]],
      ["mass", ["of mass"]],
      ["symmetric", [symbol("se")]],
    ].map(item);
    output.append(point, ...items.flatMap((one) => [" ", one]), " ", verdict, " ", solver);
    function update(text, numbers, says, solved) {
      point.textContent = text;
      for (const key in values) {
        values[key].textContent = decimals(numbers[key]);
        values[key].setAttribute("data-value", String(numbers[key])); // all digits, for the tests
      }
      verdict.textContent = says;
      solver.textContent = solved;
    }
    return { output, update };
  }

  function makeTable() {
    const heads = ["point", symbol("e"), "symmetrised", "mass", symbol("se"), "entropy"];
    const body = element("tbody", {});
    const head = element("tr", {}, heads.map((h) => element("th", { scope: "col" }, h)));
    const table = element("table", { class: "drot-table" }, [element("thead", {}, head), body]);
    const summary = element("summary", {}, "Perplexities of all points");
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
    const id = "drot-symmetric-" + (count += 1);
    const hint = element("p", { class: "drot-finding", id: id + "-hint" });
    hint.append("Drag a point, or focus it and press the arrow keys (with Shift: small steps). ");
    hint.append("Edges are as dark as their weights. ");
    hint.append("A warm point has more than the target perplexity, an open one less.");
    const slider = makeSlider(id + "-xi");
    const chooser = makeButtons();
    const readout = makeReadout(slider.input.id);
    const table = makeTable();
    const left = makePanel(
      ["Entropic ", symbol("e"), ", symmetrised for drawing"],
      "Graph of the entropic affinity, symmetrised; its points can be moved",
      hint.id
    );
    const right = makePanel(
      ["Symmetric entropic ", symbol("se")],
      "Graph of the symmetric entropic affinity on the same points"
    );
    let key = "";
    let points = [];
    let xi = 1.5;
    let chosen = 0;
    let near = null; // the last result, from which the next one starts
    let waiting = false;

    const most = () => points.length - 0.05;
    const pixel = ([x, y]) => [WIDTH / 2 + STARTS[key].unit * x, HEIGHT / 2 - STARTS[key].unit * y];

    function show() {
      let now = null;
      let trouble = "";
      try {
        now = solve(points, xi, near);
        near = now.found;
      } catch (error) {
        trouble = reason(points, xi, error);
      }
      const at = points.map(pixel);
      const off = (P) => Math.max(...P.map((p, i) => Math.max(...p.filter((_, j) => j !== i))));
      const darkest = now ? Math.max(off(now.left), off(now.right)) : 0;
      const pairs = now && now.before.map((b, i) => decimals(b) + " → " + decimals(now.after[i]));
      const one = now && now.symmetric.map(decimals);
      left.update(at, now && now.left, darkest, now && now.after, xi, pairs, chosen);
      right.update(at, now && now.right, darkest, now && now.symmetric, xi, one, chosen);
      const entropy = (i) => (now.found.slack[i] ? "slack" : "saturated");
      const verdict = (i) =>
        entropy(i) + ": perplexity " + one[i] + (now.found.slack[i] ? " > " + decimals(xi) : "");
      const of = (name) => (now ? now[name][chosen] : NaN);
      const numbers = { xi };
      for (const name of ["before", "after", "mass", "symmetric"]) numbers[name] = of(name);
      readout.update(
        "Row perplexities of point " + (chosen + 1) + " at " + place(points[chosen]),
        numbers,
        now ? "Entropy " + verdict(chosen) + "." : "",
        now
          ? "Largest residual " + power(now.found.residual) + "; darkest edge " +
              decimals(darkest) + "."
          : trouble
      );
      points.forEach((p, i) => {
        const say = now ? ", " + entropy(i) + ", perplexity " + one[i] : "";
        left.handle(i).setAttribute("aria-label", "point " + (i + 1) + " at " + place(p) + say);
        left.handle(i).setAttribute("aria-pressed", String(i === chosen));
      });
      table.update(
        points.map((p, i) => [
          String(i + 1),
          ...["before", "after", "mass", "symmetric"].map((n) => decimals(now ? now[n][i] : NaN)),
          now ? entropy(i) : "–",
        ])
      );
      slider.input.setAttribute("aria-valuetext", "perplexity " + decimals(xi));
    }

    /* at most one solve for each frame of a drag */
    function showSoon() {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        show();
      });
    }

    function choose(i) {
      if (i === chosen) return;
      chosen = i;
      show();
    }

    function put(i, x, y) {
      const { unit } = STARTS[key];
      points[i] = [
        round(clamp(x, (WIDTH / 2 - MARGIN) / unit)),
        round(clamp(y, (HEIGHT / 2 - MARGIN) / unit)),
      ];
    }

    /* the notch nearest to the perplexity, which itself need not lie on one */
    function setSlider() {
      const share = Math.log(xi / 1.05) / Math.log(most() / 1.05);
      slider.input.value = Math.round(NOTCHES * share);
    }

    function begin(name, wish) {
      key = name;
      points = STARTS[key].points.map((p) => p.slice());
      chosen = STARTS[key].chosen;
      xi = Math.min(Math.max(wish, 1.05), most());
      for (const other in chooser.buttons) {
        chooser.buttons[other].setAttribute("aria-pressed", String(other === key));
      }
      for (const panel of [left, right]) {
        panel.build(points.length);
        points.forEach((_, i) => listen(panel, i));
      }
      setSlider();
      show();
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
        const { unit } = STARTS[key];
        const [x, y] = local(event);
        put(i, (x + grip[0] - WIDTH / 2) / unit, (HEIGHT / 2 - y - grip[1]) / unit);
        showSoon();
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
        show();
      });
    }

    slider.input.addEventListener("input", () => {
      const share = Number(slider.input.value) / NOTCHES;
      xi = round(1.05 * (most() / 1.05) ** share);
      show();
    });
    for (const name in chooser.buttons) {
      chooser.buttons[name].addEventListener("click", () => begin(name, STARTS[name].xi));
    }

    const pictures = element("div", { class: "drot-pictures" }, [left.node, right.node]);
    const controls = element("div", { class: "drot-controls" }, slider.row);
    box.prepend(chooser.group, controls, pictures, readout.output, hint, table.node);
    box.setAttribute("role", "group");
    if (!box.hasAttribute("aria-label")) {
      box.setAttribute("aria-label", "Entropic and symmetric entropic affinity of a few points");
    }
    const first = box.dataset.start in STARTS ? box.dataset.start : "line";
    begin(first, Number(box.dataset.perplexity || STARTS[first].xi));
  }

  function startAll() {
    for (const box of document.querySelectorAll('[data-widget="symmetric"]:not([data-ready])')) {
      box.setAttribute("data-ready", "");
      start(box);
    }
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", startAll);
  else startAll();
})();

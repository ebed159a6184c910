/* The page's side of the widget on graph priors: points to drag, a bandwidth, three priors, graphs
 * to draw; the mathematics is priors_core.js. Its box also takes data-prior and data-bandwidth.
 */
(function () {
  "use strict";

  const { buttons, clamp, decimals, draw, element, graphs, logarithmic, place, readout } = drotPage;
  const { row, set, slider, table, widget } = drotPage;
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

  const darkness = (w) => Math.min(1, w);
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
    return (at, W, dark = darkness) => {
      for (const { i, j, line, head } of edges) {
        const { line: path, head: tip } = arc(at[i], at[j]);
        set(line, { d: path, "stroke-opacity": dark(W[i][j]), "data-value": String(W[i][j]) });
        line.setAttribute("stroke-width", W[i][j] > 1 && kind === "drot-last" ? 4 : 2);
        set(head, { d: tip, "fill-opacity": dark(W[i][j]) });
      }
    };
  }

  const makeMean = (svg, n) => makeEdges(svg, n, "drot-mean", "var(--pst-color-text-base)");

  /* the mean, and the last graph above it */
  function makeBoth(svg, n) {
    const mean = makeMean(svg, n);
    const last = makeEdges(svg, n, "drot-last", "var(--drot-warm)");
    return (at, weights) => {
      mean(at, weights.mean);
      last(at, weights.last, (w) => (w > 0 ? 1 : 0));
    };
  }

  function start(box, id) {
    const core = window.drotPriors;
    const n = START.length;
    const hint = element("p", { class: "drot-finding", id: id + "-hint" }, [
      "Drag a point, or focus it and press the arrow keys (with Shift: small steps). ",
      "Edges bend to the right on their way, and are as dark as their weights. ",
      "In colour: the last graph drawn; thick, an edge drawn twice or more. ",
      "Numbers at the points count their edges, out and in.",
    ]);
    const chooser = buttons(NAMES, "Prior", setPrior);
    const drawer = buttons({ 1: "Draw one", 100: "Draw 100" }, "Graphs to draw", (m) => {
      more(Number(m));
      show();
    });
    const scale = logarithmic(...TAU, NOTCHES);
    const range = { min: 0, max: NOTCHES };
    const bandwidth = slider(id + "-tau", "Bandwidth of the kernel", range, (notch) => {
      tau = scale.value(notch);
      restart();
    });
    const said = readout(
      [
        ["point", 1],
        ["tau", "bandwidth"],
        ["edges", "edges at it, expected"],
        ["drawn", "edges drawn"],
        ["alone", "chance of no edge"],
        ["lonely", "no edge, drawn"],
        ["verdict", 2],
      ],
      [bandwidth.input]
    );
    const listed = table("Edges of all points");
    const label = "Mean of the graphs drawn, and the last one; its points can be moved";
    const both = graphs(
      [
        { title: "", label, edges: makeBoth },
        { title: "Expected graph", label: "Expected graph on the same points", edges: makeMean },
      ],
      hint.id,
      (moved) => (moved ? restart() : show())
    );
    let prior = "";
    let tau = clamp(Number(box.dataset.bandwidth || 1), ...TAU);
    let random = null;
    let drawn = null; // { m, last, sums (n, n), lonely (n,) }

    function more(m) {
      const logK = core.logKernel(both.state.points, tau);
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
      drawn = { m: 0, last: null, sums: START.map(zeros), lonely: zeros() };
      more(1);
      show();
    }

    function show() {
      const { points, chosen } = both.state;
      const logK = core.logKernel(points, tau);
      const P = core.expected(logK, prior);
      const mean = drawn.sums.map((row) => row.map((s) => s / drawn.m));
      const [expect, found] = [core.degrees(P), core.degrees(mean)];
      const alone = core.alone(logK, prior);
      const lonely = drawn.lonely.map((s) => s / drawn.m);
      const graphs = drawn.m + (drawn.m === 1 ? " graph" : " graphs");
      const [left, right] = both.panels;
      left.heading.textContent = "Mean of " + graphs + (drawn.m > 1 ? ", and the last one" : "");
      both.update(left, { mean, last: drawn.last }, found.map((d) => d.toFixed(1)));
      both.update(right, P, expect.map((d) => d.toFixed(1)));
      both.name(expect.map((d) => ", " + decimals(d) + " edges expected"));
      const gap = largest(P.map((row, i) => row.map((p, j) => Math.abs(p - mean[i][j]))));
      said.update({
        point: "Point " + (chosen + 1) + " at " + place(points[chosen]),
        tau,
        edges: expect[chosen],
        drawn: found[chosen],
        alone: alone[chosen],
        lonely: lonely[chosen],
        verdict:
          graphs + " drawn. Largest difference between their mean and the expected graph: " +
          decimals(gap) + ".",
      });
      listed.update(
        ["point", "edges, expected", "drawn", "alone, expected", "drawn"],
        points.map((_, i) => [
          String(i + 1), ...[expect, found, alone, lonely].map((list) => decimals(list[i])),
        ])
      );
      bandwidth.input.setAttribute("aria-valuetext", "bandwidth " + decimals(tau));
    }

    function setPrior(name) {
      prior = name;
      chooser.show(prior);
      restart();
    }

    both.begin(START, n - 1, UNIT);
    bandwidth.input.value = scale.notch(tau);
    setPrior(box.dataset.prior in NAMES ? box.dataset.prior : "row");
    const pictures = row("drot-pictures", both.panels.map(({ node }) => node));
    const controls = row("drot-controls", bandwidth.row);
    return [chooser.row, controls, drawer.row, pictures, said.output, hint, listed.node];
  }

  widget("priors", "Random graphs of three priors on a few points", start);
})();

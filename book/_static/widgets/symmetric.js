/* The page's side of the symmetric affinity widget: points to drag, a slider, two graphs;
 * the mathematics is symmetric_core.js. Its box also takes data-start and data-perplexity.
 */
(function () {
  "use strict";

  const { buttons, clamp, decimals, draw, element, graphs, logarithmic, place, readout } = drotPage;
  const { row, set, slider, sum, table, widget } = drotPage;
  const LEAST = 1.05; // perplexity
  const NOTCHES = 100; // positions of the slider
  const FEW = 6; // up to so many points, each shows its perplexity
  const SAME = 5e-3; // perplexities closer than this look the same in two digits
  const NUMBERS = ["before", "after", "mass", "symmetric"];

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

  /* P with an upper index, as the chapter writes it */
  function symbol(index) {
    return element("span", {}, [element("i", {}, "P"), element("sup", {}, index)]);
  }

  const power = (x) => (x > 0 ? x.toExponential(0) : "0");

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
    const left = core.symmetrise(rows);
    const off = (P) => Math.max(...P.map((p, i) => Math.max(...p.filter((_, j) => j !== i))));
    return {
      found,
      left,
      right: found.P,
      darkest: Math.max(off(left), off(found.P)),
      before: rows.map(perplexity),
      after: left.map(perplexity),
      mass: left.map(sum),
      symmetric: found.P.map(perplexity),
      entropy: found.slack.map((slack) => (slack ? "slack" : "saturated")),
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

  /* one line for each pair, as dark as its weight; without weights none is seen */
  function makeEdges(svg, n) {
    const edges = [];
    for (let i = 0; i < n; i += 1) {
      for (let j = 0; j < i; j += 1) {
        edges.push({ i, j, line: draw(svg, "line", { class: "drot-edge" }) });
      }
    }
    return (at, { P, darkest }) =>
      edges.map(({ i, j, line }) => {
        const weight = P ? P[i][j] : 0;
        const dark = darkest > 0 ? weight / darkest : 0;
        set(line, { x1: at[i][0], y1: at[i][1], x2: at[j][0], y2: at[j][1] });
        set(line, { "stroke-opacity": dark, "data-value": weight });
        return { ends: [at[i], at[j]], dark };
      });
  }

  function start(box, id) {
    const hint = element("p", { class: "drot-finding", id: id + "-hint" }, [
      "Drag a point, or focus it and press the arrow keys (with Shift: small steps). ",
      "Edges are as dark as their weights. ",
      "A teal point has more than the target perplexity, an open orange one less.",
    ]);
    const label = ["Target perplexity ", element("i", {}, "ξ")];
    const target = slider(id + "-xi", label, { min: 0, max: NOTCHES }, (notch) => {
      xi = scale().value(notch);
      show();
    });
    const names = Object.fromEntries(Object.keys(STARTS).map((key) => [key, STARTS[key].name]));
    const chooser = buttons(names, "Points to start from", (key) => begin(key, STARTS[key].xi));
    const said = readout(
      [
        ["point", 1],
        ["xi", ["target ", element("i", {}, "ξ")]],
        ["before", [symbol("e")]],
        ["after", "symmetrised"],
        ["mass", "row sum"],
        ["symmetric", [symbol("se")]],
        ["verdict", 1],
        ["solver", 2],
      ],
      [target.input]
    );
    const listed = table("Perplexities of all points");
    const both = graphs(
      [
        {
          title: ["Entropic ", symbol("e"), ", symmetrised for drawing"],
          label: "Graph of the entropic affinity, symmetrised; its points can be moved",
          edges: makeEdges,
        },
        {
          title: ["Symmetric entropic ", symbol("se")],
          label: "Graph of the symmetric entropic affinity on the same points",
          edges: makeEdges,
        },
      ],
      hint.id,
      show
    );
    let xi = 1.5;
    let near = null; // the last result, from which the next one starts

    const scale = () => logarithmic(LEAST, both.state.points.length - 0.05, NOTCHES);

    function show() {
      const { points, chosen } = both.state;
      let now = null;
      let trouble = "";
      try {
        now = solve(points, xi, near);
        near = now.found;
      } catch (error) {
        trouble = reason(points, xi, error);
      }
      const number = (name, i) => (now ? now[name][i] : NaN);
      both.panels.forEach((panel, side) => {
        const word = (_, i) => {
          if (!now || (points.length > FEW && i !== chosen)) return "";
          if (side) return decimals(now.symmetric[i]);
          return decimals(now.before[i]) + " → " + decimals(now.after[i]);
        };
        const kind = (_, i) => {
          const over = number(side ? "symmetric" : "after", i) - xi;
          return over > SAME ? "drot-more" : over < -SAME ? "drot-less" : "drot-even";
        };
        const weights = now ? { P: side ? now.right : now.left, darkest: now.darkest } : {};
        both.update(panel, weights, points.map(word), points.map(kind));
      });
      const verdict = (mark, i) =>
        now.entropy[i] + mark + " perplexity " + decimals(now.symmetric[i]);
      both.name(points.map((_, i) => (now ? ", " + verdict(",", i) : "")));
      said.update({
        point: "Row perplexities of point " + (chosen + 1) + " at " + place(points[chosen]),
        xi,
        ...Object.fromEntries(NUMBERS.map((name) => [name, number(name, chosen)])),
        verdict: now
          ? "Entropy " + verdict(":", chosen) +
            (now.found.slack[chosen] ? " > " + decimals(xi) : "") + "."
          : "",
        solver: now
          ? "Largest residual " + power(now.found.residual) + "; darkest edge " +
            decimals(now.darkest) + "."
          : trouble,
      });
      listed.update(
        ["point", symbol("e"), "symmetrised", "row sum", symbol("se"), "entropy"],
        points.map((_, i) => [
          String(i + 1),
          ...NUMBERS.map((name) => decimals(number(name, i))),
          now ? now.entropy[i] : "–",
        ])
      );
      target.input.setAttribute("aria-valuetext", "perplexity " + decimals(xi));
    }

    function begin(key, wish) {
      const { points, chosen, unit } = STARTS[key];
      xi = clamp(wish, LEAST, points.length - 0.05);
      chooser.show(key);
      both.begin(points, chosen, unit);
      target.input.value = scale().notch(xi); // the nearest one: xi need not lie on any
      show();
    }

    const first = box.dataset.start in STARTS ? box.dataset.start : "line";
    begin(first, Number(box.dataset.perplexity || STARTS[first].xi));
    const pictures = row("drot-pictures", both.panels.map(({ node }) => node));
    const controls = row("drot-controls", target.row);
    return [chooser.row, controls, pictures, said.output, hint, listed.node];
  }

  widget("symmetric", "Entropic and symmetric entropic affinity of a few points", start);
})();

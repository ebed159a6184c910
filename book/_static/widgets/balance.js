/* The page's side of the balance widget: points of a picture to drag, and its plan with the balance
 * off or on; the mathematics is balance_core.js.
 */
(function () {
  "use strict";

  const { buttons, decimals, element, draw, graphs, place, readout, row, set, sum } = drotPage;
  const { table, widget } = drotPage;
  const UNIT = 62; // pixels for one bandwidth
  const SAME = 5e-3; // masses closer to 1 than this look like 1 in two digits
  const POINTS = [
    [0, 0], [0.7, 0], [-0.7, 0], [0.4, -0.65], [-0.4, -0.65],
    [1.8, 0.5], [-1.7, 1], [0.7, 1.5], [-0.8, -1.55], [1.7, -1.3],
  ];

  function makeEdges(svg, n) {
    const edges = [];
    for (let i = 0; i < n; i += 1) {
      for (let j = 0; j < i; j += 1) {
        edges.push({ i, j, line: draw(svg, "line", { class: "drot-edge" }) });
      }
    }
    return (at, Q) => {
      const darkest = Math.max(...edges.map(({ i, j }) => Q[i][j]));
      return edges.map(({ i, j, line }) => {
        const dark = darkest > 0 ? Q[i][j] / darkest : 0;
        set(line, { x1: at[i][0], y1: at[i][1], x2: at[j][0], y2: at[j][1] });
        set(line, { "stroke-opacity": dark, "data-value": Q[i][j] });
        return { ends: [at[i], at[j]], dark };
      });
    };
  }

  function start(box, id) {
    const hint = element("p", { class: "drot-finding", id: id + "-hint" }, [
      "Drag a point, or focus it and press the arrow keys (with Shift: small steps). ",
      "Its number is its mass, the sum of its row. ",
      "A teal point has more than one unit, an open orange one less, a grey one just one.",
    ]);
    const names = { off: "Balance off", on: "Balance on" };
    const chooser = buttons(names, "Plan of the picture", (key) => {
      mode = key;
      show();
    });
    const said = readout([
      ["point", 1],
      ["mass", "its mass"],
      ["least", "least mass"],
      ["most", "largest mass"],
      ["own", "kept for itself"],
      ["verdict", 2],
    ]);
    const listed = table("Masses and prices of all points");
    const title = "Plan of the picture";
    const label = "Graph of the plan of the picture; its points can be moved";
    const one = graphs([{ title, label, edges: makeEdges }], hint.id, show);
    let mode = "off";

    function show() {
      const core = window.drotBalance;
      const { points, chosen } = one.state;
      const { Q, f } = mode === "on" ? core.balanced(points) : core.divided(points);
      const mass = Q.map(sum);
      const kind = (m) => (m > 1 + SAME ? "drot-more" : m < 1 - SAME ? "drot-less" : "drot-even");
      one.update(one.panels[0], Q, mass.map((m) => decimals(m)), mass.map(kind));
      one.name(mass.map((m) => ", mass " + decimals(m)));
      chooser.show(mode);
      said.update({
        point: "Point " + (chosen + 1) + " at " + place(points[chosen]),
        mass: mass[chosen],
        least: Math.min(...mass),
        most: Math.max(...mass),
        own: Q[chosen][chosen],
        verdict:
          mode === "on"
            ? "Each point has a price f that makes up for the crowd around it."
            : "One sum for all: who lies in a crowd has more than a share.",
      });
      listed.update(
        ["point", "mass", "price f"],
        points.map((_, i) => [String(i + 1), decimals(mass[i]), decimals(f[i])])
      );
    }

    one.begin(POINTS, 0, UNIT);
    show();
    const pictures = row("drot-pictures", one.panels.map(({ node }) => node));
    return [chooser.row, pictures, said.output, hint, listed.node];
  }

  widget("balance", "Plan of a few points of a picture, balanced or not", start);
})();

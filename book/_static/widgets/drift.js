/* The page's side of the widget on hidden graphs: a component to drag, or one of its points; the
 * mathematics is drift_core.js.
 */
(function () {
  "use strict";

  const { buttons, decimals, draw, element, graphs, place, readout, row, set, widget } = drotPage;
  const UNIT = 42; // user units for one unit of length
  const ENDS = [3.6, 2.4]; // where points may be
  const START = [
    [-2.9, 0.2], [-2.4, 1.1], [-1.6, 0.9], [-1.3, 0.1], [-1.9, -0.6], [-2.6, -0.7],
    [1.2, -0.3], [1.8, 0.5], [2.5, 0.1], [2.3, -0.8], [1.6, -1.1],
  ];
  const EDGES = [
    [0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 0], [0, 4], [1, 3],
    [6, 7], [7, 8], [8, 9], [9, 10], [10, 6], [6, 8],
  ];
  const MODES = { whole: "Move its component", alone: "Move the point alone" };

  function makeEdges(svg) {
    const lines = EDGES.map(([i, j]) => {
      return draw(svg, "line", { class: "drot-edge", "data-from": i, "data-to": j });
    });
    return (at) => EDGES.forEach(([i, j], k) => {
      set(lines[k], { x1: at[i][0], y1: at[i][1], x2: at[j][0], y2: at[j][1] });
    });
  }

  function start(box, id) {
    const core = window.drotDrift;
    const labels = core.components(START.length, EDGES);
    const hint = element("p", { class: "drot-finding", id: id + "-hint" }, [
      "Drag a point, or focus it and press the arrow keys (with Shift: small steps). ",
      "In colour: what moves with the point.",
    ]);
    const chooser = buttons(MODES, "What moves", setMode);
    const back = buttons({ back: "Back to the start" }, "Places", begin);
    const parts = [["point", 1], ["density", "log density"], ["verdict", 2]];
    const said = readout(parts);
    const label = "Two components of a graph; points can be moved";
    const all = graphs([{ title: "", label, edges: makeEdges }], hint.id, moved);
    const first = core.logDensity(START, EDGES);
    let mode = "whole";
    let before = [];

    const moving = () => {
      const own = labels[all.state.chosen];
      const one = (_, i) => i === all.state.chosen;
      return labels.map((_, i) => i).filter(mode === "whole" ? (i) => labels[i] === own : one);
    };

    /* a point has been put elsewhere: those that belong to it go along, as far as they may */
    function moved(places) {
      const { points, chosen } = all.state;
      if (places) {
        const way = [0, 1].map((q) => points[chosen][q] - before[chosen][q]);
        all.state.points = core.carry(before, moving(), way, ENDS);
      }
      show();
    }

    function show() {
      const { points, chosen } = all.state;
      const [density, who] = [core.logDensity(points, EDGES), moving()];
      before = points.map((point) => point.slice());
      all.update(all.panels[0], null, [], labels.map((_, i) => (who.includes(i) ? "drot-over" : "")));
      all.name(labels.map((own) => ", component " + (own === labels[0] ? 1 : 2)));
      const change = density - first;
      const same = Math.abs(change) < 1e-9;
      const still = points.every(([x, y], i) => x === START[i][0] && y === START[i][1]);
      said.update({
        point: "Point " + (chosen + 1) + " at " + place(points[chosen]),
        density,
        verdict: still ? "The start: now move something." : same
          ? "The log density is that of the start: it does not notice where a component lies."
          : "Edges have changed their lengths: the log density has " +
            (change < 0 ? "fallen by " : "risen by ") + decimals(Math.abs(change)) + ".",
      });
    }

    function setMode(name) {
      mode = name;
      chooser.show(mode);
      show();
    }

    function begin() {
      all.begin(START, 7, UNIT);
      show();
    }

    all.begin(START, 7, UNIT);
    setMode("whole");
    const pictures = row("drot-pictures", [all.panels[0].node]);
    return [chooser.row, back.row, pictures, said.output, hint];
  }

  widget("drift", "A graph of two components, one of which can be moved", start);
})();

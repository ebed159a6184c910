/* The page's side of the barycentre widget: two memberships of a few points, a slider between
 * them, and the curve of the reduced objective on the way; the mathematics is srgw_core.js.
 * Its box also takes data-start and data-clusters.
 */
(function () {
  "use strict";

  const { WIDTH, HEIGHT, buttons, clamp, draw, element, picture, readout, row, set } = drotPage;
  const { slider, table, widget } = drotPage;
  const SIDE = 14; // margins of the plot
  const TOP = 80; // of the solid curve; above it is room for the dashed one
  const FRAME = 10;
  const BOTTOM = 34;
  const NOTCHES = 100; // positions of the slider between the memberships
  const MOST = 4; // clusters
  const RADIUS = 8;
  // fill of each cluster; its number stands beside the point
  const FILLS = [
    "var(--pst-color-primary)",
    "var(--drot-warm)",
    "var(--pst-color-text-muted)",
    "var(--pst-color-background)",
  ];

  /* sign: of the similarity whose k-means cost is shown, 1 if not given; cost: what that is;
   * unit: pixels for one unit of length; before, after: the memberships to start with */
  const STARTS = {
    clouds: {
      name: "three clouds",
      what: "inner products, centred",
      cost: "the mean squared distance of the points from the middles of their clusters.",
      similarity: (core, points) => core.products(points, [1, 1]),
      unit: 46,
      k: 3,
      t: 0.3,
      points: [
        [-2.4, 0.9], [-1.9, 1.4], [-1.5, 0.8], [-2.0, 0.4], [1.9, 1.3], [2.5, 0.9],
        [2.1, 0.3], [1.5, 0.8], [-0.6, -1.6], [0.2, -2.0], [0.7, -1.4], [-0.1, -1.0],
      ],
      before: [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2],
      after: [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2],
    },
    ring: {
      name: "a ring and its middle",
      what: "squared distances",
      cost: "twice the mean squared distance of the points from the middles of their clusters.",
      similarity: (core, points) => core.sqeuclidean(points),
      sign: -1, // distances are large where inner products are small
      unit: 50,
      k: 2,
      t: 0.5,
      points: [
        [0.45, 0.25], [-0.5, 0.05], [0.1, -0.45], [-0.1, 0.5], [1.9, 0.2], [1.3, 1.4],
        [-0.2, 1.9], [-1.4, 1.2], [-1.9, -0.3], [-1.2, -1.4], [0.2, -1.9], [1.4, -1.2],
      ],
      before: [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1],
      after: [0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1],
    },
    signs: {
      name: "three points, two signs",
      what: "products with two signs",
      cost: "the same formula, which may go below 0, since some squared lengths are negative here.",
      similarity: (core, points) => core.products(points, [2.5, -0.5]),
      unit: 46,
      k: 2,
      t: 0.5,
      points: [[-1, 1], [1, 1], [0, -2]], // the matrix of the chapter's counterexample
      before: [0, 1, 0],
      after: [0, 1, 1],
    },
  };

  const decimals = (x) => drotPage.decimals(x, 3);
  const bar = () => element("span", {}, [element("i", {}, "C"), "\u0304"]); // C with a macron

  /* the part of a disc between two shares of the full turn, from the top on */
  function sector(x, y, r, from, to) {
    const at = (share) => {
      const angle = 2 * Math.PI * share;
      return (x + r * Math.sin(angle)).toFixed(3) + " " + (y - r * Math.cos(angle)).toFixed(3);
    };
    const large = to - from > 0.5 ? 1 : 0;
    const arc = "A" + r + " " + r + " 0 " + large + " 1 " + at(to);
    return "M" + x + " " + y + "L" + at(from) + arc + "Z";
  }

  function makePoints(hint, act) {
    const label = "The points, each a disc divided among its clusters";
    const { node, heading, svg } = picture("", label, { role: "group" });
    let nodes = [];

    function build(points, unit, title) {
      heading.textContent = title;
      svg.replaceChildren();
      nodes = points.map(([px, py], i) => {
        const [x, y] = [WIDTH / 2 + unit * px, HEIGHT / 2 - unit * py];
        const group = draw(svg, "g", { "data-point": i, tabindex: 0, role: "button" });
        set(group, { "aria-describedby": hint, style: "cursor: pointer" });
        draw(group, "circle", { cx: x, cy: y, r: 14, class: "drot-hit" });
        const disc = draw(group, "circle", { cx: x, cy: y, r: RADIUS });
        const slice = draw(group, "path", {});
        const rim = { fill: "none", stroke: "var(--pst-color-text-base)" };
        draw(group, "circle", { cx: x, cy: y, r: RADIUS, ...rim });
        const number = { class: "drot-tick drot-word", "aria-hidden": "true" };
        group.addEventListener("click", () => act(i));
        group.addEventListener("keydown", (event) => {
          if (event.key !== "Enter" && event.key !== " ") return;
          event.preventDefault(); // no scrolling
          act(i);
        });
        const word = draw(svg, "text", { x, y: y - RADIUS - 6, ...number });
        return { group, disc, slice, word, x, y };
      });
    }

    function update(before, after, t) {
      nodes.forEach(({ group, disc, slice, word, x, y }, i) => {
        const [a, b] = [before[i], after[i]];
        const share = a === b ? 0 : t;
        const shared = share > 0 && share < 1; // a full turn has no arc: it is drawn as the disc
        const whole = share === 1 ? b : a;
        set(disc, { style: "fill: " + FILLS[whole] });
        set(slice, { style: "fill: " + FILLS[b], "data-share": share });
        set(slice, { d: shared ? sector(x, y, RADIUS, 0, share) : "" });
        word.textContent = shared ? a + 1 + "|" + (b + 1) : whole + 1;
        const says = shared
          ? "shared, " + Math.round(100 * (1 - t)) + " % in cluster " + (a + 1) + " and " +
            Math.round(100 * t) + " % in cluster " + (b + 1)
          : "in cluster " + (whole + 1);
        set(group, { "aria-label": "point " + (i + 1) + ", " + says });
      });
    }

    return { node, build, update };
  }

  function makePlot(clip) {
    const { node, svg } = picture("Objective between the two memberships", "");
    const base = HEIGHT - BOTTOM;
    const across = (t) => SIDE + t * (WIDTH - 2 * SIDE);
    const frame = { x: SIDE, y: FRAME, width: WIDTH - 2 * SIDE, height: base - FRAME };
    draw(svg, "rect", { class: "drot-rule", fill: "none", "data-frame": "", ...frame });
    draw(draw(svg, "clipPath", { id: clip }), "rect", frame);
    const chord = draw(svg, "line", { class: "drot-rule", "data-curve": "chord" });
    const dashes = { class: "drot-cross", "data-curve": "fixed", "clip-path": "url(#" + clip + ")" };
    const fixed = draw(svg, "path", dashes);
    const curve = draw(svg, "path", { class: "drot-curve", "data-curve": "reduced" });
    const dot = draw(svg, "circle", { class: "drot-dot", r: 6 });
    const end = { class: "drot-axis", y: base + 20 };
    const before = draw(svg, "text", { ...end, x: across(0), "data-end": "before" });
    const after = draw(svg, "text", { ...end, x: across(1), "data-end": "after" });
    after.classList.add("drot-end");

    function update(values, held, t, now) {
      const least = Math.min(...values);
      const most = Math.max(...values);
      // the dashed curve may leave the frame above; where nothing bends, the line is half way up
      const room = most - least > 1e-12 * Math.abs(most) ? most - least : 1;
      const up = (v) => base - 12 - ((v - least) / room) * (base - TOP - 12);
      const point = (v, s) => (s ? "L" : "M") + across(s / NOTCHES) + " " + up(v).toFixed(3);
      // all digits, for the tests
      set(curve, { d: values.map(point).join(""), "data-values": JSON.stringify(values) });
      set(fixed, { d: held.map(point).join(""), "data-values": JSON.stringify(held) });
      const [first, last] = [values[0], values[NOTCHES]];
      set(chord, { x1: across(0), y1: up(first), x2: across(1), y2: up(last) });
      set(dot, { cx: across(t), cy: up(now) });
      before.textContent = "before: " + decimals(first);
      after.textContent = "after: " + decimals(last);
      const label =
        "Reduced objective from " + decimals(first) + " before to " + decimals(last) +
        " after, highest " + decimals(most) + ", lowest " + decimals(least);
      svg.setAttribute("aria-label", label);
    }

    return { node, update };
  }

  function start(box, id) {
    const core = window.drotSrgw;
    const costs = element("span", { "data-name": "costs" });
    const hint = element("p", { class: "drot-finding", id: id + "-hint" }, [
      "Press a point to send it to the next cluster. Solid: the objective with the best ", bar(),
      "; dashed: with the ", bar(), " of the dot held fixed; thin: the straight line between the",
      " ends. K-means cost: ", costs,
    ]);
    const many = element("span", {});
    const clusterLabel = ["Clusters ", element("i", {}, "k"), " = ", many];
    const clusters = slider(id + "-k", clusterLabel, { min: 2, max: MOST }, (k) => begin(key, k));
    const shareLabel = "From the membership before to that after";
    const share = slider(id + "-t", shareLabel, { min: 0, max: NOTCHES }, (notch) => {
      t = notch / NOTCHES;
      show();
    });
    const names = Object.fromEntries(Object.keys(STARTS).map((name) => [name, STARTS[name].name]));
    const chooser = buttons(names, "Points to start from", (name) => begin(name, STARTS[name].k));
    const actions = buttons({ descend: "Descend: move the best point" }, "Moves", descend);
    actions.row.style.margin = "0.6rem 0 0";
    const said = readout(
      [
        ["t", "share moved"],
        ["objective", "objective"],
        ["chord", "chord"],
        ["kmeans", "k-means cost"],
        ["verdict", 2],
        ["move", 2],
      ],
      [clusters.input, share.input],
      (x, name) => (name === "t" ? x.toFixed(2) : decimals(x))
    );
    const listed = table(["The small matrix ", bar(), " and its weights"]);
    const points = makePoints(hint.id, (i) => change(i, (nearest()[i] + 1) % k));
    const plot = makePlot(id + "-clip");
    let key = "";
    let C = [];
    let k = 2;
    let before = [];
    let after = [];
    let t = 0;
    let moved = "";

    /* what the segment says about sharing */
    function verdict(values) {
      const ends = Math.min(values[0], values[NOTCHES]);
      const least = Math.min(...values);
      if (before.every((a, i) => a === after[i])) return "Before and after are the same.";
      if (least < ends - 1e-9 * Math.abs(ends)) {
        const at = values.indexOf(least) / NOTCHES;
        return "Sharing wins: at " + at.toFixed(2) + " the objective is " + decimals(least) +
          ", below both ends.";
      }
      return "Sharing does not pay: no plan of this segment is below its better end.";
    }

    function show() {
      const { sign = 1 } = STARTS[key];
      const [A, B] = [core.hard(before, k), core.hard(after, k)];
      const T = core.mix(A, B, t);
      const { value: objective, structure, weights } = core.reduced(C, T);
      const values = core.segment(C, A, B, NOTCHES);
      const held = values.map((_, s) => core.objective(C, structure, core.mix(A, B, s / NOTCHES)));
      const chord = (1 - t) * values[0] + t * values[NOTCHES];
      points.update(before, after, t);
      plot.update(values, held, t, objective);
      const kmeans = sign * core.kmeans(C, T);
      said.update({ t, objective, chord, kmeans, verdict: verdict(values), move: moved });
      const clusterNames = weights.map((_, a) => "cluster " + (a + 1));
      const entry = (v, a, b) => (weights[a] * weights[b] > 0 ? decimals(v) : "–");
      listed.update(
        ["", ...clusterNames, "weight"],
        structure.map((r, a) => [
          clusterNames[a], ...r.map((v, b) => entry(v, a, b)), decimals(weights[a]),
        ])
      );
      share.input.value = Math.round(NOTCHES * t);
      share.input.setAttribute("aria-valuetext", Math.round(100 * t) + " % moved");
      clusters.input.setAttribute("aria-valuetext", k + " clusters");
    }

    /* the membership that the slider is nearer to */
    const nearest = () => (t < 0.5 ? before : after);

    /* it becomes the one before */
    function change(i, to) {
      before = nearest().slice();
      after = before.map((a, j) => (j === i ? to : a));
      t = 1;
      const [old, now] = [before, after].map((l) => core.reduced(C, core.hard(l, k)).value);
      moved = "Point " + (i + 1) + " went from cluster " + (before[i] + 1) + " to " + (to + 1) +
        ": objective " + decimals(old) + " to " + decimals(now) + ".";
      show();
    }

    function descend() {
      const move = core.bestMove(C, nearest(), k);
      if (move) return change(move.i, move.to);
      moved = "No single point can move for the better from the membership " +
        (t < 0.5 ? "before." : "after.");
      t = t < 0.5 ? 0 : 1;
      return show();
    }

    function begin(name, wish) {
      key = name;
      const { points: places, unit, what, cost, similarity } = STARTS[key];
      const most = Math.min(MOST, places.length);
      k = clamp(Math.round(wish), 2, most);
      C = similarity(core, places);
      before = STARTS[key].before.map((a) => Math.min(a, k - 1));
      after = STARTS[key].after.map((a) => Math.min(a, k - 1));
      t = STARTS[key].t;
      moved = "";
      clusters.input.max = most;
      clusters.input.value = k;
      many.textContent = k;
      costs.textContent = cost;
      chooser.show(key);
      points.build(places, unit, "Similarity: " + what);
      show();
    }

    const first = box.dataset.start in STARTS ? box.dataset.start : "clouds";
    begin(first, Number(box.dataset.clusters || STARTS[first].k));
    const pictures = row("drot-pictures", [points.node, plot.node]);
    const controls = row("drot-controls", [clusters.row, share.row]);
    return [chooser.row, controls, actions.row, pictures, said.output, hint, listed.node];
  }

  widget("srgw", "Barycentre of a few points, between two memberships", start);
})();

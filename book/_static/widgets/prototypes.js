/* The widget of chapter 14: a map of prototypes, each drawn as its medoid; the one pointed at,
 * tapped or focused shows its members and how many there are of each class. Its box also holds
 *
 *     <script type="application/json">{"side": 8, "images": "...", "classes": [...],
 *       "labels": [...], "positions": [[x, y], ...], "weights": [...], "medoids": [...]}</script>
 *
 * `images` holds side * side hexadecimal digits per point, row by row, 0 for paper and f for ink.
 */
(function () {
  "use strict";

  const { WIDTH, clamp, draw, element, picture, readout, row, set, widget } = drotPage;
  const SIDE = WIDTH; // of the map
  const MARGIN = 17; // kept between the middle of an image and the border of the map
  const AREA = 0.12; // of the map, covered by all images together: at most, and at least
  const LEAST_AREA = 0.03;
  const PAD = 1.2; // between an image and its frame
  const LEAST = 8.5; // half the side of the square that a finger meets
  const COLUMNS = 8; // of members
  const ROWS = 3;
  const CELL = WIDTH / COLUMNS;
  const BARS = 92; // height of the class counts, names below included
  const NEXT = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

  /* what the page gives, with the members and the class counts of each prototype */
  function read(text) {
    const data = JSON.parse(text);
    const { side, images, classes, labels, positions, weights, medoids } = data;
    const n = classes.length;
    const k = positions.length;
    if (images.length !== n * side * side || labels.length !== n) {
      throw new Error("every point needs an image, a class and a prototype");
    }
    if (weights.length !== k || medoids.length !== k) {
      throw new Error("every prototype needs a position, a weight and a medoid");
    }
    const kinds = 1 + Math.max(...classes);
    const members = positions.map(() => []);
    labels.forEach((a, i) => members[a].push(i));
    const counts = members.map((own) => {
      const found = new Array(kinds).fill(0);
      for (const i of own) found[classes[i]] += 1;
      return found;
    });
    const order = positions.map((_, a) => a).filter((a) => members[a].length > 0);
    order.sort((a, b) => positions[a][0] - positions[b][0]); // from left to right
    return { ...data, n, k, kinds, members, counts, order };
  }

  /* one path per darkness: an image of ink on paper in either theme */
  function drawImage(parent, data, i, x, y, size) {
    const { side, images } = data;
    const layers = {};
    for (let r = 0; r < side; r += 1) {
      for (let c = 0; c < side; c += 1) {
        const ink = images[i * side * side + r * side + c];
        if (ink !== "0") layers[ink] = (layers[ink] || "") + "M" + c + " " + r + "h1v1h-1z";
      }
    }
    const scale = "translate(" + x.toFixed(2) + " " + y.toFixed(2) + ") scale(" + size / side + ")";
    const group = draw(parent, "g", { transform: scale, "data-image": i });
    group.setAttribute("style", "fill: var(--pst-color-text-base); pointer-events: none");
    group.setAttribute("shape-rendering", "crispEdges");
    for (const ink in layers) {
      draw(group, "path", { d: layers[ink], "fill-opacity": (parseInt(ink, 16) / 15).toFixed(2) });
    }
    return group;
  }

  const share = (data, a) => (100 * data.weights[a]).toFixed(1) + " %";

  /* "9 of class 7, 1 of class 9", the most frequent first */
  function inWords(counts) {
    const some = counts.map((m, c) => [m, c]).filter(([m]) => m > 0);
    some.sort((a, b) => b[0] - a[0] || a[1] - b[1]);
    return some.map(([m, c]) => m + " of class " + c).join(", ");
  }

  /* places in the map: one scale for both axes */
  function places({ positions, order }) {
    const axes = [0, 1].map((q) => {
      const all = order.map((a) => positions[a][q]);
      const [low, high] = [Math.min(...all), Math.max(...all)];
      return { middle: (low + high) / 2, wide: high - low || 1 };
    });
    const unit = Math.min(...axes.map(({ wide }) => (SIDE - 2 * MARGIN) / wide));
    const [x, y] = axes.map(({ middle }) => middle);
    return positions.map(([u, v]) => [SIDE / 2 + unit * (u - x), SIDE / 2 - unit * (v - y)]);
  }

  /* side of the image of a weight of 1: no image hides another if AREA can be made small enough */
  function sideOfUnit({ weights, order }, at) {
    let found = Math.sqrt(AREA) * SIDE;
    order.forEach((a, i) => {
      for (const b of order.slice(i + 1)) {
        const apart = Math.max(...[0, 1].map((q) => Math.abs(at[a][q] - at[b][q])));
        const sides = Math.sqrt(weights[a]) + Math.sqrt(weights[b]);
        found = Math.min(found, (2 * (apart - 2 * PAD)) / sides);
      }
    });
    return Math.max(found, Math.sqrt(LEAST_AREA) * SIDE);
  }

  function makeMap(data, hint, act) {
    const { order } = data;
    const label = "Map of the prototypes, each drawn as its medoid";
    const title = order.length + " prototypes";
    const { node, svg } = picture(title, label, { role: "group", height: SIDE });
    const at = places(data);
    const unit = sideOfUnit(data, at);
    const nodes = order.map((a) => {
      const size = unit * Math.sqrt(data.weights[a]);
      const half = Math.max(size / 2 + PAD, LEAST);
      const [x, y] = at[a];
      const group = draw(svg, "g", { "data-prototype": a, role: "button" });
      const most = data.counts[a].indexOf(Math.max(...data.counts[a]));
      const says = "Prototype with a weight of " + share(data, a) + ", most often class " + most;
      set(group, { "aria-label": says, "aria-describedby": hint, style: "cursor: pointer" });
      draw(group, "rect", { x: x - half, y: y - half, width: 2 * half, height: 2 * half, rx: 2 });
      drawImage(group, data, data.medoids[a], x - size / 2, y - size / 2, size);
      group.addEventListener("pointerenter", (event) => {
        if (event.pointerType === "mouse") act(a);
      });
      group.addEventListener("click", () => act(a));
      group.addEventListener("focus", () => act(a));
      return group;
    });
    svg.addEventListener("keydown", (event) => {
      let to = nodes.indexOf(event.target);
      if (event.key in NEXT) to += NEXT[event.key];
      else if (event.key === "Home") to = 0;
      else if (event.key === "End") to = nodes.length - 1;
      else if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault(); // no scrolling
      nodes[clamp(to, 0, nodes.length - 1)].focus();
    });

    function update(chosen) {
      nodes.forEach((group, i) => {
        const now = order[i] === chosen;
        set(group, { tabindex: now ? 0 : -1, "aria-pressed": String(now) });
        const colour = now ? "var(--pst-color-primary)" : "var(--pst-color-text-muted)";
        const stroke = "stroke-width: " + (now ? 3 : 1) + "; stroke: " + colour;
        set(group.firstChild, { style: "fill: var(--pst-color-background); " + stroke });
      });
    }

    return { node, update };
  }

  function makeMembers(data) {
    const height = ROWS * CELL + BARS;
    const { node, heading, svg } = picture("", "", { height });

    function update(a) {
      const own = data.members[a];
      const shown = own.slice(0, ROWS * COLUMNS);
      const all = shown.length === own.length;
      heading.textContent = all ? "its members" : "the first " + shown.length + " of its members";
      svg.setAttribute("aria-label", "Members and classes: " + inWords(data.counts[a]));
      svg.replaceChildren();
      shown.forEach((i, j) => {
        const [x, y] = [CELL * (j % COLUMNS), CELL * Math.floor(j / COLUMNS)];
        drawImage(svg, data, i, x + 3, y + 3, CELL - 6);
      });
      const base = height - 18;
      const step = WIDTH / data.kinds;
      const unit = (base - ROWS * CELL - 16) / Math.max(...data.counts[a]);
      data.counts[a].forEach((m, c) => {
        const tall = unit * m;
        const bar = { x: step * c + 4, width: step - 8, y: base - tall, height: tall };
        const kind = { class: "drot-probability", "data-class": c, "data-count": m };
        draw(svg, "rect", { ...bar, ...kind });
        const x = step * (c + 0.5);
        draw(svg, "text", { class: "drot-axis", "text-anchor": "middle", x, y: height - 4 }, c);
        if (m) draw(svg, "text", { class: "drot-tick", x, y: base - tall - 3 }, m);
      });
    }

    return { node, update };
  }

  function start(box, id) {
    const data = read(box.querySelector('script[type="application/json"]').textContent);
    const hint = element(
      "p",
      { class: "drot-finding", id },
      "Point at an image, tap it, or focus it; the arrow keys go from left to right."
    );
    const said = readout([["chosen", 2]]);
    const members = makeMembers(data);
    const map = makeMap(data, id, choose);
    let chosen = null;

    function choose(a) {
      if (a === chosen) return;
      chosen = a;
      map.update(a);
      members.update(a);
      const n = data.members[a].length;
      said.update({
        chosen:
          "Weight " + share(data, a) + ", " + n + (n === 1 ? " member: " : " members: ") +
          inWords(data.counts[a]) + ".",
      });
    }

    choose(data.order.reduce((a, b) => (data.weights[b] > data.weights[a] ? b : a))); // heaviest
    return [hint, row("drot-pictures", [map.node, members.node]), said.output];
  }

  widget("prototypes", "Prototypes, their members and their classes", start);
})();

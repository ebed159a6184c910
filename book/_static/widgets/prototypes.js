/* The widget of chapter 12: a map of prototypes, each drawn as its medoid; the one pointed at,
 * tapped or focused shows its members and how many there are of each class.
 *
 *   <div class="drot-widget" data-widget="prototypes">
 *     <script type="application/json">{"side": 8, "images": "...", "classes": [...],
 *       "labels": [...], "positions": [[x, y], ...], "weights": [...], "medoids": [...]}</script>
 *     <p class="drot-finding">What one sees, in a sentence: all there is without JavaScript.</p>
 *   </div>
 *
 * `images` holds side * side hexadecimal digits per point, row by row, 0 for paper and f for ink.
 */
(function () {
  "use strict";

  const SVG = "http://www.w3.org/2000/svg";
  const WIDTH = 340; // user units; about one CSS pixel on a phone
  const HEIGHT = 340;
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
    const used = order.map((a) => positions[a]);
    const middle = [0, 1].map((q) => {
      const all = used.map((z) => z[q]);
      return [(Math.max(...all) + Math.min(...all)) / 2, Math.max(...all) - Math.min(...all)];
    });
    const [[x, wide], [y, high]] = middle;
    const unit = Math.min((WIDTH - 2 * MARGIN) / (wide || 1), (HEIGHT - 2 * MARGIN) / (high || 1));
    return positions.map(([u, v]) => [WIDTH / 2 + unit * (u - x), HEIGHT / 2 - unit * (v - y)]);
  }

  /* side of the image of a weight of 1: no image hides another if AREA can be made small enough */
  function sideOfUnit({ weights, order }, at) {
    const side = (area) => Math.sqrt(area * WIDTH * HEIGHT);
    let found = side(AREA);
    order.forEach((a, i) => {
      for (const b of order.slice(i + 1)) {
        const apart = Math.max(...[0, 1].map((q) => Math.abs(at[a][q] - at[b][q])));
        const sides = Math.sqrt(weights[a]) + Math.sqrt(weights[b]);
        found = Math.min(found, (2 * (apart - 2 * PAD)) / sides);
      }
    });
    return Math.max(found, side(LEAST_AREA));
  }

  function makeMap(data, hint, act) {
    const svg = document.createElementNS(SVG, "svg");
    set(svg, { viewBox: "0 0 " + WIDTH + " " + HEIGHT, role: "group" });
    svg.setAttribute("aria-label", "Map of the prototypes, each drawn as its medoid");
    const at = places(data);
    const unit = sideOfUnit(data, at);
    const nodes = {};
    for (const a of data.order) {
      const size = unit * Math.sqrt(data.weights[a]);
      const half = Math.max(size / 2 + PAD, LEAST);
      const [x, y] = at[a];
      const group = draw(svg, "g", { "data-prototype": a, role: "button", tabindex: -1 });
      set(group, { "aria-describedby": hint, style: "cursor: pointer" });
      const most = data.counts[a].indexOf(Math.max(...data.counts[a]));
      group.setAttribute(
        "aria-label",
        "Prototype with a weight of " + share(data, a) + ", most often class " + most
      );
      const box = { x: x - half, y: y - half, width: 2 * half, height: 2 * half, rx: 2 };
      const frame = draw(group, "rect", box);
      drawImage(group, data, data.medoids[a], x - size / 2, y - size / 2, size);
      group.addEventListener("pointerenter", (event) => {
        if (event.pointerType === "mouse") act(a);
      });
      group.addEventListener("click", () => act(a));
      group.addEventListener("focus", () => act(a));
      nodes[a] = { group, frame };
    }
    svg.addEventListener("keydown", (event) => {
      const from = data.order.indexOf(Number(event.target.getAttribute("data-prototype")));
      const last = data.order.length - 1;
      let to = from;
      if (event.key in NEXT) to = from + NEXT[event.key];
      else if (event.key === "Home") to = 0;
      else if (event.key === "End") to = last;
      else if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault(); // no scrolling
      nodes[data.order[Math.min(Math.max(to, 0), last)]].group.focus();
    });

    function update(chosen) {
      for (const a of data.order) {
        const { group, frame } = nodes[a];
        const now = a === chosen;
        set(group, { tabindex: now ? 0 : -1, "aria-pressed": String(now) });
        frame.setAttribute(
          "style",
          "fill: var(--pst-color-background); stroke-width: " + (now ? 3 : 1) + "; stroke: " +
            (now ? "var(--pst-color-primary)" : "var(--pst-color-text-muted)")
        );
      }
    }

    const title = element("p", { class: "drot-title" }, data.order.length + " prototypes");
    return { node: element("div", {}, [title, svg]), update };
  }

  function makeMembers(data) {
    const height = ROWS * CELL + BARS;
    const svg = document.createElementNS(SVG, "svg");
    set(svg, { viewBox: "0 0 " + WIDTH + " " + height, role: "img" });
    const title = element("p", { class: "drot-title" });
    const layer = draw(svg, "g", {});

    function update(a) {
      const own = data.members[a];
      const shown = own.slice(0, ROWS * COLUMNS);
      const all = shown.length === own.length;
      title.textContent = all ? "its members" : "the first " + shown.length + " of its members";
      svg.setAttribute("aria-label", "Members and classes: " + inWords(data.counts[a]));
      layer.replaceChildren();
      shown.forEach((i, j) => {
        const [x, y] = [CELL * (j % COLUMNS), CELL * Math.floor(j / COLUMNS)];
        drawImage(layer, data, i, x + 3, y + 3, CELL - 6);
      });
      const top = ROWS * CELL + 16;
      const room = height - 18 - top;
      const step = WIDTH / data.kinds;
      const most = Math.max(...data.counts[a]);
      data.counts[a].forEach((m, c) => {
        const bar = { x: step * c + 4, width: step - 8, "data-class": c, "data-count": m };
        const tall = (room * m) / most;
        const rect = draw(layer, "rect", { ...bar, y: top + room - tall, height: tall });
        rect.setAttribute("class", "drot-probability");
        const name = draw(layer, "text", { class: "drot-axis", "text-anchor": "middle" });
        set(name, { x: step * (c + 0.5), y: height - 4 }).textContent = c;
        if (!m) return;
        const number = draw(layer, "text", { class: "drot-tick", x: step * (c + 0.5) });
        set(number, { y: top + room - tall - 3 }).textContent = m;
      });
    }

    return { node: element("div", {}, [title, svg]), update };
  }

  function build(box) {
    const data = read(box.querySelector('script[type="application/json"]').textContent);
    const id = "drot-prototypes-" + (count += 1);
    const hint = element(
      "p",
      { class: "drot-finding", id },
      "Point at an image, tap it, or focus it; the arrow keys go from left to right."
    );
    const output = element("output", { class: "drot-readout", "aria-live": "polite" });
    const line = element("span", { class: "drot-line drot-two", "data-name": "chosen" });
    output.append(line);
    const members = makeMembers(data);
    let chosen = null;

    function choose(a) {
      if (a === chosen) return;
      chosen = a;
      map.update(a);
      members.update(a);
      const n = data.members[a].length;
      line.textContent =
        "Weight " + share(data, a) + ", " + n + (n === 1 ? " member: " : " members: ") +
        inWords(data.counts[a]) + ".";
    }

    const map = makeMap(data, id, choose);
    const heaviest = data.order.reduce((a, b) => (data.weights[b] > data.weights[a] ? b : a));
    choose(heaviest);
    const pictures = element("div", { class: "drot-pictures" }, [map.node, members.node]);
    box.prepend(hint, pictures, output);
    box.setAttribute("role", "group");
    if (!box.hasAttribute("aria-label")) {
      box.setAttribute("aria-label", "Prototypes, their members and their classes");
    }
  }

  function startAll() {
    for (const box of document.querySelectorAll('[data-widget="prototypes"]:not([data-ready])')) {
      box.setAttribute("data-ready", "");
      build(box);
    }
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", startAll);
  else startAll();
})();

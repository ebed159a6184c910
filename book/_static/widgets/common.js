/* What the widgets share: elements and drawings, controls and what they announce, and points that
 * one drags or moves with the arrow keys. A classic script, since modules do not load from
 * file://; it comes before that of a widget, and leaves window.drotPage.
 *
 * A chapter holds, for each widget,
 *
 *   <div class="drot-widget" data-widget="its name">
 *     <p class="drot-finding">What one sees, in a sentence: all there is without JavaScript.</p>
 *   </div>
 */
window.drotPage = (function () {
  "use strict";

  const SVG = "http://www.w3.org/2000/svg";
  const WIDTH = 340; // user units; about one CSS pixel on a phone
  const HEIGHT = 240;
  const MARGIN = 16; // kept between a point and the border of its panel
  const KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
  let count = 0;

  const clamp = (x, low, high) => Math.min(Math.max(x, low), high);
  const round = (x) => Math.round(100 * x) / 100 + 0; // + 0 turns -0 into 0
  const sum = (list) => list.reduce((a, b) => a + b, 0);
  const decimals = (x, digits = 2) =>
    Number.isFinite(x) ? x.toFixed(digits).replace("-", "\u2212") : "–";
  const place = ([x, y]) => "(" + decimals(x) + ", " + decimals(y) + ")";

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

  const row = (name, nodes) => element("div", { class: name }, nodes);

  function draw(parent, name, attributes, text = "") {
    const node = set(document.createElementNS(SVG, name), attributes);
    node.textContent = text;
    return parent.appendChild(node);
  }

  /* a drawing under a title that may change; its label says to a screen reader what it shows */
  function picture(title, label, { role = "img", width = WIDTH, height = HEIGHT } = {}) {
    const heading = element("p", { class: "drot-title" }, title);
    const node = element("div", {}, heading);
    const viewBox = "0 0 " + width + " " + height;
    return { node, heading, svg: draw(node, "svg", { viewBox, role, "aria-label": label }) };
  }

  /* where a pointer is, in user units */
  function local(svg, event) {
    const inverse = svg.getScreenCTM().inverse();
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(inverse);
    return [x, y];
  }

  function slider(id, label, range, act) {
    const input = element("input", { id, type: "range", step: 1, ...range });
    input.addEventListener("input", () => act(Number(input.value)));
    const name = element("label", { for: id }, label);
    return { row: row("drot-control", [name, input]), input };
  }

  /* a slider's notches 0 to `most`: numbers of two decimals from low to high, evenly by ratio */
  function logarithmic(low, high, most) {
    return {
      notch: (x) => Math.round((most * Math.log(x / low)) / Math.log(high / low)),
      value: (notch) => round(low * (high / low) ** (notch / most)),
    };
  }

  /* names: of the buttons, by the key that `press` is told; `show` says which is in force */
  function buttons(names, label, press) {
    const all = {};
    for (const key in names) {
      all[key] = element("button", { type: "button" }, names[key]);
      all[key].addEventListener("click", () => press(key));
    }
    const frame = { class: "drot-buttons", role: "group", "aria-label": label };
    function show(chosen) {
      for (const key in all) set(all[key], { "aria-pressed": String(key === chosen) });
    }
    return { row: element("div", frame, Object.values(all)), show };
  }

  /* What a screen reader is told after a change. `parts`, in order: [key, name] of a number,
   * [key, lines] of a sentence that takes one line or two; `inputs` are the sliders it follows. */
  function readout(parts, inputs = [], format = (x) => decimals(x)) {
    const output = element("output", { class: "drot-readout", "aria-live": "polite" });
    if (inputs.length) output.setAttribute("for", inputs.map(({ id }) => id).join(" "));
    const nodes = {};
    for (const [key, what] of parts) {
      const sentence = typeof what === "number";
      nodes[key] = element(sentence ? "span" : "b", { "data-name": key });
      if (sentence) nodes[key].className = "drot-line" + (what > 1 ? " drot-two" : "");
      const named = [what, " ", nodes[key]].flat();
      output.append(sentence ? nodes[key] : element("span", {}, named), " ");
    }
    function update(values) {
      for (const key in values) {
        const number = typeof values[key] === "number";
        nodes[key].textContent = number ? format(values[key], key) : values[key];
        if (number) nodes[key].setAttribute("data-value", values[key]); // all digits, for the tests
      }
    }
    return { output, update };
  }

  /* a table that is folded away; the first cell of a row names it */
  function table(summary) {
    const [head, body] = [element("thead", {}), element("tbody", {})];
    const whole = element("table", { class: "drot-table" }, [head, body]);
    const title = element("summary", {}, summary);
    const line = ([first, ...rest]) =>
      element("tr", {}, [
        element("th", { scope: "row" }, first),
        ...rest.map((cell) => element("td", {}, cell)),
      ]);
    function update(heads, rows) {
      const names = heads.map((name) => element("th", { scope: "col" }, name));
      head.replaceChildren(element("tr", {}, names));
      body.replaceChildren(...rows.map(line));
    }
    return { node: element("details", { class: "drot-details" }, [title, whole]), update };
  }

  /* length of the part of a line that lies in a box [left, top, right, bottom] */
  function within([[x1, y1], [x2, y2]], [left, top, right, bottom]) {
    let [from, to] = [0, 1];
    const sides = [[x1, x2 - x1, left, right], [y1, y2 - y1, top, bottom]];
    for (const [start, way, low, high] of sides) {
      if (way === 0 && (start < low || start > high)) return 0;
      if (way === 0) continue;
      const [enter, leave] = [(low - start) / way, (high - start) / way].sort((a, b) => a - b);
      [from, to] = [Math.max(from, enter), Math.min(to, leave)];
    }
    return Math.max(0, to - from) * Math.hypot(x2 - x1, y2 - y1);
  }

  /* Where a word hides least: above its point unless lines { ends, dark } pass there, or boxes that
   * are taken. Its box is added to these. */
  function spot([x, y], word, lines, taken) {
    const half = 4 + 2.8 * word.length;
    let best = { cost: Infinity };
    for (const far of [1, 1.5, 2.1]) {
      for (const turn of [0, 8, 1, 15, 2, 14, 4, 12, 6, 10, 7, 9, 3, 13, 5, 11]) {
        const angle = (turn * Math.PI) / 8;
        const cx = clamp(x + far * (half + 12) * Math.sin(angle), half, WIDTH - half);
        const cy = clamp(y - far * 19 * Math.cos(angle), 8, HEIGHT - 8);
        const box = [cx - half, cy - 7, cx + half, cy + 7];
        const [left, top, right, bottom] = box;
        const meets = ([l, t, r, b]) => l < right && r > left && t < bottom && b > top;
        const crossed = sum(lines.map(({ ends, dark }) => dark * within(ends, box)));
        const cost = crossed + 60 * taken.filter(meets).length + 6 * far + (turn ? 2 : 0);
        if (cost < best.cost) best = { cost, box, x: cx, y: cy + 4 };
      }
    }
    taken.push(best.box);
    return { x: best.x, y: best.y };
  }

  /* The same points on several panels, each { title, label, edges }. One drags them on any panel;
   * on the first they also take the focus and listen to the arrow keys. `edges(svg, n)` draws the
   * edges of n points and returns what moves them: a function of the places and of the weights,
   * which may return the lines { ends, dark } that words are to keep clear of.
   * After a change, `act` is told whether points have moved, or only another one is chosen. */
  function graphs(specs, hint, act) {
    const state = { points: [], chosen: 0, unit: 1 }; // unit: pixels for one unit of length
    const panels = specs.map(({ title, label, edges }, k) => {
      return { ...picture(title, label, { role: k ? "img" : "group" }), edges };
    });
    let waiting = false;

    const pixel = ([x, y]) => [WIDTH / 2 + state.unit * x, HEIGHT / 2 - state.unit * y];

    function begin(points, chosen, unit) {
      Object.assign(state, { points: points.map((p) => p.slice()), chosen, unit });
      for (const panel of panels) {
        panel.svg.replaceChildren();
        panel.move = panel.edges(panel.svg, points.length);
        panel.handles = points.map((_, i) => makeHandle(panel, i));
        const word = { class: "drot-tick drot-word", "aria-hidden": "true" };
        panel.words = points.map(() => draw(panel.svg, "text", word));
      }
    }

    function makeHandle(panel, i) {
      const handle = draw(panel.svg, "g", { class: "drot-handle", "data-point": i });
      draw(handle, "circle", { r: 14, class: "drot-hit" });
      draw(handle, "circle", { r: 10.5, class: "drot-ring" });
      draw(handle, "circle", { r: 6, class: "drot-point" });
      listenToPointer(panel, handle, i);
      if (panel !== panels[0]) return handle;
      handle.addEventListener("focus", () => choose(i));
      handle.addEventListener("keydown", (event) => listenToKeys(event, i));
      return set(handle, { tabindex: 0, role: "button", "aria-describedby": hint });
    }

    /* one panel: a word and a class for each point */
    function update(panel, weights, words, kinds = []) {
      const at = state.points.map(pixel);
      const lines = panel.move(at, weights) || [];
      const taken = at.map(([x, y]) => [x - 11, y - 11, x + 11, y + 11]);
      at.forEach(([x, y], i) => {
        const [hit, ring, dot] = panel.handles[i].children;
        for (const circle of [hit, ring, dot]) set(circle, { cx: x, cy: y });
        ring.setAttribute("visibility", i === state.chosen ? "visible" : "hidden");
        dot.setAttribute("class", "drot-point " + (kinds[i] || ""));
        if (words[i]) set(panel.words[i], spot(at[i], words[i], lines, taken));
        panel.words[i].textContent = words[i];
      });
    }

    /* what a screen reader says of each point, behind its number and place */
    function name(says) {
      panels[0].handles.forEach((handle, i) => {
        const label = "point " + (i + 1) + " at " + place(state.points[i]) + says[i];
        set(handle, { "aria-label": label, "aria-pressed": String(i === state.chosen) });
      });
    }

    function choose(i) {
      if (i === state.chosen) return;
      state.chosen = i;
      act(false);
    }

    function put(i, x, y) {
      const [right, up] = [WIDTH, HEIGHT].map((side) => (side / 2 - MARGIN) / state.unit);
      state.points[i] = [round(clamp(x, -right, right)), round(clamp(y, -up, up))];
    }

    /* at most once for each frame of a drag */
    function actSoon() {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        act(true);
      });
    }

    function listenToPointer(panel, handle, i) {
      let grip = null; // from the pointer to the point, in pixels of the drawing
      handle.addEventListener("pointerdown", (event) => {
        if (event.button !== 0) return;
        event.preventDefault(); // no selection of text
        panels[0].handles[i].focus({ preventScroll: true }); // the arrow keys go on from here
        choose(i);
        const [x, y] = local(panel.svg, event);
        const [px, py] = pixel(state.points[i]);
        grip = [px - x, py - y];
        handle.setPointerCapture(event.pointerId);
      });
      handle.addEventListener("pointermove", (event) => {
        if (!grip) return;
        const [x, y] = local(panel.svg, event);
        const { unit } = state;
        put(i, (x + grip[0] - WIDTH / 2) / unit, (HEIGHT / 2 - y - grip[1]) / unit);
        actSoon();
      });
      for (const end of ["pointerup", "pointercancel"]) {
        handle.addEventListener(end, () => (grip = null));
      }
    }

    function listenToKeys(event, i) {
      const way = KEYS[event.key];
      if (!way || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault(); // no scrolling
      const step = event.shiftKey ? 0.01 : 0.1;
      const [x, y] = state.points[i];
      put(i, x + step * way[0], y + step * way[1]);
      act(true);
    }

    return { state, panels, begin, update, name };
  }

  /* `start(box, id)` returns what to put into a box of that name, before its sentence */
  function widget(name, label, start) {
    function startAll() {
      const fresh = '[data-widget="' + name + '"]:not([data-ready])';
      for (const box of document.querySelectorAll(fresh)) {
        set(box, { "data-ready": "", role: "group" });
        if (!box.hasAttribute("aria-label")) box.setAttribute("aria-label", label);
        box.prepend(...start(box, "drot-" + name + "-" + (count += 1)));
      }
    }
    if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", startAll);
    else startAll();
  }

  return {
    WIDTH, HEIGHT, buttons, clamp, decimals, draw, element, graphs, local, logarithmic, picture,
    place, readout, row, set, slider, sum, table, widget,
  };
})();

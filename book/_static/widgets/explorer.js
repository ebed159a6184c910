/* The page's side of the explorer: five hundred digits under several maps. Point at one, touch it,
 * or walk with the arrow keys; the arithmetic is explorer_core.js, the maps explorer_data.js.
 *
 *   <div class="drot-widget" data-widget="explorer" data-method="tsne" data-perplexity="30"
 *     data-start="pca" data-image="1">
 *     <p class="drot-finding">What one sees, in a sentence: all there is without JavaScript.</p>
 *   </div>
 */
(function () {
  "use strict";

  const SVG = "http://www.w3.org/2000/svg";
  const WIDTH = 440; // user units
  const HEIGHT = 400;
  const MARGIN = 12;
  const REACH = 26; // how near a pointer must come, in user units
  const PIXEL = 13; // side of a pixel of the large image
  const KEYS = { ArrowRight: "right", ArrowLeft: "left", ArrowUp: "up", ArrowDown: "down" };
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

  /* 64 squares, to be inked */
  function makeImage(side, attributes) {
    const size = 8 * side;
    const svg = document.createElementNS(SVG, "svg");
    set(svg, { viewBox: "0 0 " + size + " " + size, width: size, height: size, ...attributes });
    draw(svg, "rect", { class: "drot-paper", width: size, height: size });
    const pixels = Array.from({ length: 64 }, (_, p) =>
      draw(svg, "rect", {
        class: "drot-ink",
        x: side * (p % 8),
        y: side * Math.floor(p / 8),
        width: side + 0.3, // no seams
        height: side + 0.3,
      })
    );
    const ink = (levels) => pixels.forEach((one, p) => one.setAttribute("opacity", levels[p] / 15));
    return { svg, ink };
  }

  function makeButtons(names, label, press) {
    const buttons = {};
    for (const key in names) {
      buttons[key] = element("button", { type: "button" }, names[key]);
      buttons[key].addEventListener("click", () => press(key));
    }
    const row = element("div", { class: "drot-buttons", role: "group" }, Object.values(buttons));
    row.setAttribute("aria-label", label);
    const show = (chosen, usable = true) => {
      for (const key in buttons) {
        buttons[key].setAttribute("aria-pressed", String(usable && key === chosen));
        buttons[key].disabled = !usable;
      }
    };
    return { row, show };
  }

  /* the map: one numeral for each image, of which one is chosen */
  function makePicture(id, classes, hint) {
    const svg = document.createElementNS(SVG, "svg");
    set(svg, { viewBox: "0 0 " + WIDTH + " " + HEIGHT, role: "listbox", tabindex: 0 });
    set(svg, { class: "drot-map-of-digits", "aria-describedby": hint });
    const lines = draw(svg, "g", { "aria-hidden": "true", class: "drot-ties" });
    const numerals = Array.from(classes, (digit, i) => {
      const one = draw(svg, "text", { id: id + "-" + i, role: "option", "data-image": i });
      set(one, { class: "drot-numeral drot-class-" + digit, "aria-selected": "false" });
      one.setAttribute("aria-label", "image " + (i + 1) + ", a " + digit);
      one.textContent = digit;
      return one;
    });
    const ring = draw(svg, "circle", { class: "drot-chosen", r: 8, "aria-hidden": "true" });
    let places = [];

    function move(to) {
      places = to;
      numerals.forEach((one, i) => {
        one.style.transform = "translate(" + to[i][0].toFixed(1) + "px, " + to[i][1].toFixed(1) + "px)";
      });
    }

    function choose(i, ties, both) {
      for (const one of svg.querySelectorAll('[aria-selected="true"]')) {
        one.setAttribute("aria-selected", "false");
      }
      numerals[i].setAttribute("aria-selected", "true");
      svg.setAttribute("aria-activedescendant", numerals[i].id);
      set(ring, { cx: places[i][0], cy: places[i][1] });
      lines.replaceChildren();
      for (const j of ties) {
        const [[x1, y1], [x2, y2]] = [places[i], places[j]];
        const line = draw(lines, "line", { x1, y1, x2, y2, "data-to": j });
        line.setAttribute("class", both.has(j) ? "drot-tie-kept" : "drot-tie-lost");
      }
    }

    /* where a pointer is, in user units */
    function place(event) {
      const box = svg.getBoundingClientRect();
      const scale = WIDTH / box.width;
      return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
    }

    return { svg, move, choose, place, places: () => places };
  }

  function makeReadout() {
    const output = element("output", { class: "drot-readout", "aria-live": "polite" });
    const words = {};
    for (const name of ["image", "map"]) {
      words[name] = element("span", { class: "drot-line", "data-name": name });
      output.append(words[name], " ");
    }
    return { output, words };
  }

  function start(box) {
    const core = window.drotExplorer;
    const data = window.drotExplorerData;
    const id = "drot-explorer-" + (count += 1);
    const levels = core.images(data.pixels, data.n);
    const classes = Array.from(data.classes);
    const last = data.perplexities.length - 1;
    const state = { method: "tsne", xi: 2, start: "pca", image: 0 };

    const hint = element("p", { class: "drot-finding", id: id + "-hint" });
    hint.append("Point at a numeral, touch it, or walk with the arrow keys. Lines lead to the ");
    hint.append(data.k + " most similar images: solid to those that are also among the " + data.k);
    hint.append(" nearest in the map, dashed to the others.");
    const value = element("span", {});
    const slider = element("input", { id: id + "-xi", type: "range", min: 0, max: last, step: 1 });
    const label = element("label", { for: slider.id }, ["Perplexity, or neighbours of UMAP: ", value]);
    const perplexity = element("div", { class: "drot-control" }, [label, slider]);
    const picture = makePicture(id, classes, hint.id);
    const large = makeImage(PIXEL, { role: "img", class: "drot-large" });
    const caption = element("p", { class: "drot-title" });
    const strip = element("div", { class: "drot-strip" });
    const small = Array.from({ length: data.k }, () => makeImage(4, { role: "img" }));
    strip.append(...small.map(({ svg }) => svg));
    const title = element("p", { class: "drot-title" }, "Most similar");
    const side = element("div", { class: "drot-side" }, [caption, large.svg, title, strip]);
    const readout = makeReadout();
    let map = {};
    let points = [];

    function showImage() {
      const i = state.image;
      const similar = core.neighbours(levels, i, data.k);
      const near = new Set(core.neighbours(points, i, data.k));
      picture.choose(i, similar, near);
      large.ink(levels[i]);
      large.svg.setAttribute("aria-label", "image " + (i + 1) + ", a handwritten " + classes[i]);
      caption.textContent = "Image " + (i + 1) + ", a " + classes[i];
      similar.forEach((j, s) => {
        small[s].ink(levels[j]);
        const kept = near.has(j);
        small[s].svg.setAttribute("class", kept ? "drot-near" : "drot-far");
        const where = kept ? ", near in the map" : ", not near in the map";
        small[s].svg.setAttribute("aria-label", "a " + classes[j] + where);
      });
      const both = similar.filter((j) => near.has(j)).length;
      readout.words.image.textContent =
        "Image " + (i + 1) + ", a " + classes[i] + ": " + both + " of its " + data.k +
        " most similar images are among its " + data.k + " nearest in the map.";
      readout.words.image.setAttribute("data-value", both);
    }

    function showMap() {
      const xi = data.perplexities[state.xi];
      map = data.maps[core.find(data.maps, state.method, xi, state.start)];
      points = core.positions(map);
      picture.move(core.fit(points, WIDTH, HEIGHT, MARGIN));
      methods.show(state.method);
      starts.show(state.start, map.start !== "");
      slider.value = state.xi;
      slider.disabled = map.perplexity === 0;
      value.textContent = slider.disabled ? "none" : xi;
      slider.setAttribute("aria-valuetext", value.textContent);
      const name = data.methods[state.method];
      const settings = map.perplexity ? " at " + map.perplexity : "";
      const from = map.start ? ", started from " + data.starts[map.start] : "";
      picture.svg.setAttribute("aria-label", "500 digits by " + name + settings + from);
      readout.words.map.textContent =
        name + settings + from + ": of all images, " + (100 * map.kept).toFixed(1) +
        " % of the " + data.k + " nearest are kept.";
      readout.words.map.setAttribute("data-value", map.kept);
      showImage();
    }

    function choose(i) {
      if (i < 0 || i === state.image) return;
      state.image = i;
      showImage();
    }

    function change(what) {
      Object.assign(state, what);
      showMap();
    }

    const methods = makeButtons(data.methods, "Method", (method) => change({ method }));
    const starts = makeButtons(
      Object.fromEntries(Object.entries(data.starts).map(([key, name]) => [key, "Start: " + name])),
      "Start",
      (key) => change({ start: key })
    );
    slider.addEventListener("input", () => change({ xi: Number(slider.value) }));
    const point = (event) => choose(core.at(picture.places(), picture.place(event), REACH));
    picture.svg.addEventListener("pointermove", point);
    picture.svg.addEventListener("pointerdown", point);
    picture.svg.addEventListener("keydown", (event) => {
      let to = state.image;
      if (event.key in KEYS) to = core.step(points, to, KEYS[event.key]);
      else if (event.key === "Home") to = 0;
      else if (event.key === "End") to = data.n - 1;
      else return;
      event.preventDefault(); // no scrolling
      choose(to);
    });

    const controls = element("div", { class: "drot-controls" }, [perplexity, starts.row]);
    const pictures = element("div", { class: "drot-explore" }, [picture.svg, side]);
    box.prepend(methods.row, controls, pictures, readout.output, hint);
    box.setAttribute("role", "group");
    if (!box.hasAttribute("aria-label")) box.setAttribute("aria-label", "Maps of 500 digits");
    const { method, perplexity: wish, start: from } = box.dataset;
    if (method in data.methods) state.method = method;
    if (from in data.starts) state.start = from;
    const first = Number(box.dataset.image) - 1;
    if (first >= 0 && first < data.n) state.image = first;
    if (data.perplexities.includes(Number(wish))) state.xi = data.perplexities.indexOf(Number(wish));
    showMap();
  }

  function startAll() {
    for (const box of document.querySelectorAll('[data-widget="explorer"]:not([data-ready])')) {
      box.setAttribute("data-ready", "");
      start(box);
    }
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", startAll);
  else startAll();
})();

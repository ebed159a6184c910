/* The page's side of the explorer: five hundred digits under several maps. Point at one, touch it,
 * or walk with the arrow keys; the arithmetic is explorer_core.js, the maps explorer_data.js.
 * Its box also takes data-method, data-perplexity, data-start and data-image.
 */
(function () {
  "use strict";

  const { buttons, draw, element, local, readout, row, set, slider, widget } = drotPage;
  const WIDTH = 440; // user units
  const HEIGHT = 400;
  const MARGIN = 12;
  const REACH = 26; // how near a pointer must come, in user units
  const PIXEL = 13; // side of a pixel of the large image
  const KEYS = { ArrowRight: "right", ArrowLeft: "left", ArrowUp: "up", ArrowDown: "down" };

  /* 64 squares, to be inked */
  function makeImage(parent, side, attributes) {
    const size = 8 * side;
    const viewBox = "0 0 " + size + " " + size;
    const svg = draw(parent, "svg", { viewBox, width: size, height: size, ...attributes });
    draw(svg, "rect", { class: "drot-paper", width: size, height: size });
    const pixel = { class: "drot-ink", width: side + 0.3, height: side + 0.3 }; // no seams
    const pixels = Array.from({ length: 64 }, (_, p) =>
      draw(svg, "rect", { ...pixel, x: side * (p % 8), y: side * Math.floor(p / 8) })
    );
    const ink = (levels) => pixels.forEach((one, p) => one.setAttribute("opacity", levels[p] / 15));
    return { svg, ink };
  }

  /* the map: one numeral for each image, of which one is chosen */
  function makeMap(id, classes, hint) {
    const node = row("drot-explore", []);
    const svg = draw(node, "svg", { viewBox: "0 0 " + WIDTH + " " + HEIGHT, tabindex: 0 });
    set(svg, { role: "listbox", class: "drot-map-of-digits", "aria-describedby": hint });
    const lines = draw(svg, "g", { "aria-hidden": "true", class: "drot-ties" });
    const numerals = classes.map((digit, i) => {
      const look = { class: "drot-numeral drot-class-" + digit, "data-image": i };
      const label = "image " + (i + 1) + ", a " + digit;
      const one = draw(svg, "text", { id: id + "-" + i, ...look }, digit);
      return set(one, { role: "option", "aria-label": label, "aria-selected": "false" });
    });
    const ring = draw(svg, "circle", { class: "drot-chosen", r: 8, "aria-hidden": "true" });
    let places = [];

    function move(to) {
      places = to;
      numerals.forEach((one, i) => {
        const [x, y] = to[i].map((v) => v.toFixed(1) + "px");
        one.style.transform = "translate(" + x + ", " + y + ")";
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
        const kind = both.has(j) ? "drot-tie-kept" : "drot-tie-lost";
        draw(lines, "line", { x1, y1, x2, y2, "data-to": j, class: kind });
      }
    }

    return { node, svg, move, choose, places: () => places };
  }

  /* the image that is chosen, and those most similar to it */
  function makeSide(k) {
    const caption = element("p", { class: "drot-title" });
    const node = row("drot-side", caption);
    const large = makeImage(node, PIXEL, { role: "img", class: "drot-large" });
    const strip = row("drot-strip", []);
    const small = Array.from({ length: k }, () => makeImage(strip, 4, { role: "img" }));
    node.append(element("p", { class: "drot-title" }, "Most similar"), strip);

    function update(i, similar, near, levels, classes) {
      caption.textContent = "Image " + (i + 1) + ", a " + classes[i];
      large.ink(levels[i]);
      large.svg.setAttribute("aria-label", "image " + (i + 1) + ", a handwritten " + classes[i]);
      similar.forEach((j, s) => {
        const kept = near.has(j);
        const where = kept ? ", near in the map" : ", not near in the map";
        small[s].ink(levels[j]);
        set(small[s].svg, { class: kept ? "drot-near" : "drot-far" });
        set(small[s].svg, { "aria-label": "a " + classes[j] + where });
      });
    }

    return { node, update };
  }

  function start(box, id) {
    const core = window.drotExplorer;
    const data = window.drotExplorerData;
    const levels = core.images(data.pixels, data.n);
    const classes = Array.from(data.classes);
    const state = { method: "tsne", xi: 2, start: "pca", image: 0 };
    const hint = element("p", { class: "drot-finding", id: id + "-hint" }, [
      "Point at a numeral, touch it, or walk with the arrow keys. Lines lead to the " + data.k,
      " most similar images: solid to those that are also among the " + data.k,
      " nearest in the map, dashed to the others.",
    ]);
    const value = element("span", {});
    const label = ["Perplexity, or neighbours of UMAP: ", value];
    const notches = { min: 0, max: data.perplexities.length - 1 };
    const perplexity = slider(id + "-xi", label, notches, (xi) => change({ xi }));
    const methods = buttons(data.methods, "Method", (method) => change({ method }));
    const names = Object.entries(data.starts).map(([key, name]) => [key, "Start: " + name]);
    const starts = buttons(Object.fromEntries(names), "Start", (key) => change({ start: key }));
    const map = makeMap(id, classes, hint.id);
    const side = makeSide(data.k);
    const said = readout([["image", 1], ["map", 1]], [perplexity.input]);
    let points = [];

    function showImage() {
      const i = state.image;
      const similar = core.neighbours(levels, i, data.k);
      const near = new Set(core.neighbours(points, i, data.k));
      map.choose(i, similar, near);
      side.update(i, similar, near, levels, classes);
      said.update({
        image:
          "Image " + (i + 1) + ", a " + classes[i] + ": " +
          similar.filter((j) => near.has(j)).length + " of its " + data.k +
          " most similar images are among its " + data.k + " nearest in the map.",
      });
    }

    function showMap() {
      const xi = data.perplexities[state.xi];
      const now = data.maps[core.find(data.maps, state.method, xi, state.start)];
      points = core.positions(now);
      map.move(core.fit(points, WIDTH, HEIGHT, MARGIN));
      methods.show(state.method);
      starts.show(state.start, now.start !== "");
      perplexity.input.value = state.xi;
      perplexity.input.disabled = now.perplexity === 0;
      value.textContent = now.perplexity || "none";
      perplexity.input.setAttribute("aria-valuetext", value.textContent);
      const name =
        data.methods[state.method] + (now.perplexity ? " at " + now.perplexity : "") +
        (now.start ? ", started from " + data.starts[now.start] : "");
      map.svg.setAttribute("aria-label", "500 digits by " + name);
      said.update({
        map:
          name + ": of all images, " + (100 * now.kept).toFixed(1) + " % of the " + data.k +
          " nearest are kept.",
      });
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

    for (const kind of ["pointermove", "pointerdown"]) {
      map.svg.addEventListener(kind, (event) => {
        choose(core.at(map.places(), local(map.svg, event), REACH));
      });
    }
    map.svg.addEventListener("keydown", (event) => {
      let to = state.image;
      if (event.key in KEYS) to = core.step(points, to, KEYS[event.key]);
      else if (event.key === "Home") to = 0;
      else if (event.key === "End") to = data.n - 1;
      else return;
      event.preventDefault(); // no scrolling
      choose(to);
    });

    const { method, perplexity: wish, start: from } = box.dataset;
    if (method in data.methods) state.method = method;
    if (from in data.starts) state.start = from;
    const first = Number(box.dataset.image) - 1;
    if (first >= 0 && first < data.n) state.image = first;
    const notch = data.perplexities.indexOf(Number(wish));
    if (notch >= 0) state.xi = notch;
    showMap();
    map.node.append(side.node);
    const controls = row("drot-controls", [perplexity.row, starts.row]);
    return [methods.row, controls, map.node, said.output, hint];
  }

  widget("explorer", "Maps of 500 digits", start);
})();

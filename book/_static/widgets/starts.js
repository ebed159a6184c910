/* The page's side of the first widget of the book: t-SNE maps of the same digits from several random
 * starts, computed here; the arithmetic is starts_core.js. Its box takes data-pixels, 64 letters
 * for each image of which `a` is white and `q` black, and data-classes, a digit for each.
 */
(function () {
  "use strict";

  const { buttons, draw, element, local, picture, readout, row, set, widget } = drotPage;
  const MAPS = 2;
  const SIDE = 300; // of a map, in user units
  const MARGIN = 14;
  const PERPLEXITY = 30;
  const NEAR = 10; // neighbours that are compared
  const STEPS = 400;
  const BUDGET = 30; // milliseconds of a frame to compute in
  const LEAST = 5; // distance of the farthest point at least: a map grows out of a dot
  const PIXEL = 9; // side of a pixel of the image

  /* some dots of each class, its name amid them, and a ring around the chosen one */
  function makeMap(k, classes) {
    const size = { width: SIDE, height: SIDE };
    const start = "start " + (k + 1);
    const one = picture("", "map from " + start + ", a dot for each digit", size);
    const kinds = [...new Set(classes)].sort();
    const paths = kinds.map((kind) => {
      return draw(one.svg, "path", { class: "drot-dots drot-class-" + kind });
    });
    const names = kinds.map((kind) => {
      const name = draw(one.svg, "text", { class: "drot-class-name drot-class-" + kind });
      name.textContent = kind;
      return name;
    });
    const ring = draw(one.svg, "circle", { class: "drot-chosen", r: 9 });
    let places = [];
    function move(Z) {
      let far = LEAST;
      for (const z of Z) far = Math.max(far, Math.abs(z));
      const pixel = (z) => SIDE / 2 + ((SIDE / 2 - MARGIN) * z) / far;
      places = classes.map((_, i) => [pixel(Z[2 * i]), pixel(Z[2 * i + 1])]);
      const at = ([x, y]) => "M" + x.toFixed(1) + " " + y.toFixed(1) + "h0";
      paths.forEach((path, c) => {
        const own = places.filter((_, i) => classes[i] === kinds[c]);
        set(path, { d: own.map(at).join("") });
        const [x, y] = [0, 1].map((a) => median(own.map((place) => place[a])));
        set(names[c], { x, y });
      });
    }
    const choose = (i) => set(ring, { cx: places[i][0], cy: places[i][1] });
    const title = (text) => (one.heading.textContent = start + ": " + text);
    return { ...one, move, choose, title, places: () => places };
  }

  /* a map turned, and mirrored if need be, to lie most like another */
  function turned(Z, like) {
    const [kept, mirrored] = [1, -1].map((side) => {
      let [along, across] = [0, 0];
      for (let a = 0; a < Z.length; a += 2) {
        const [x, y, u, v] = [Z[a], side * Z[a + 1], like[a], like[a + 1]];
        along += x * u + y * v;
        across += x * v - y * u;
      }
      return { side, along, across, length: Math.hypot(along, across) };
    });
    const { side, along, across, length } = kept.length >= mirrored.length ? kept : mirrored;
    const at = (x, y) => [(along * x - across * y) / length, (across * x + along * y) / length];
    return Z.map((_, a) => at(Z[a - (a % 2)], side * Z[a - (a % 2) + 1])[a % 2]);
  }

  function median(values) {
    return values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
  }

  function makeImage() {
    const side = 8 * PIXEL;
    const view = { width: side, height: side };
    const { node, heading, svg } = picture("", "", view);
    set(svg, { class: "drot-large", ...view });
    draw(svg, "rect", { class: "drot-paper", ...view });
    const pixels = Array.from({ length: 64 }, (_, p) => {
      const at = { x: PIXEL * (p % 8), y: PIXEL * Math.floor(p / 8) };
      return draw(svg, "rect", { class: "drot-ink", width: PIXEL + 0.3, height: PIXEL + 0.3, ...at });
    });
    function update(levels, title) {
      heading.textContent = title;
      set(svg, { "aria-label": "the digit that is ringed, " + title });
      pixels.forEach((one, p) => one.setAttribute("opacity", levels[p] / 16));
    }
    return { node: set(node, { class: "drot-pick" }), update };
  }

  function start(box) {
    const core = window.drotStarts;
    const levels = Float64Array.from(box.dataset.pixels, (letter) => letter.charCodeAt(0) - 97);
    const classes = Array.from(box.dataset.classes);
    const P = core.affinities(core.squares(levels, 64), PERPLEXITY);
    const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    const state = { round: 0, maps: [], chosen: 0, run: 0 };
    const names = { again: "New random starts", other: "Another digit" };
    const press = buttons(names, "What to do", (key) => (key === "again" ? begin() : other()));
    const maps = Array.from({ length: MAPS }, (_, k) => makeMap(k, classes));
    const image = makeImage();
    const said = readout([
      ["shared", "Share of a digit's ten nearest neighbours that are the same in both maps"],
      ["correlated", "Correlation of the distances between classes"],
    ], [], (x) => x.toFixed(2));

    function choose(i) {
      state.chosen = i;
      maps.forEach((map) => map.choose(i));
      const own = levels.subarray(64 * i, 64 * (i + 1));
      image.update(own, "image " + (i + 1) + ", a " + classes[i]);
    }

    const other = () => choose((state.chosen + 37) % classes.length);

    function show() {
      maps.forEach((map, k) => map.move(state.maps[k].Z));
      maps.forEach((map) => map.choose(state.chosen));
    }

    function begin() {
      const first = MAPS * state.round;
      state.round += 1;
      state.run += 1;
      state.maps = maps.map((_, k) => core.begin(classes.length, first + k + 1));
      maps.forEach((map) => map.title("descending"));
      set(box, { "data-running": "" });
      said.update({ shared: "\u2026", correlated: "\u2026" });
      show();
      schedule(state.run);
    }

    /* some steps of all maps, as many as a frame allows; the button may have begun another run */
    function schedule(run) {
      const soon = still ? (act) => setTimeout(act, 0) : requestAnimationFrame;
      soon(() => {
        if (run !== state.run) return;
        const until = performance.now() + BUDGET;
        do {
          for (const map of state.maps) core.step(P, map);
        } while (performance.now() < until && state.maps[0].steps < STEPS);
        const ended = state.maps[0].steps >= STEPS;
        if (ended || !still) show();
        if (ended) conclude();
        else schedule(run);
      });
    }

    function conclude() {
      const values = state.maps.map(({ Z }) => core.objective(P, Z));
      const alike = core.agreement(state.maps.map(({ Z }) => Z), classes, NEAR);
      maps.forEach((map, k) => map.title("KL " + values[k].toFixed(3)));
      maps[1].move(turned(state.maps[1].Z, state.maps[0].Z));
      maps[1].choose(state.chosen);
      said.update(alike);
      box.removeAttribute("data-running");
    }

    for (const map of maps) {
      map.svg.addEventListener("pointermove", (event) => {
        const [x, y] = local(map.svg, event);
        const gaps = map.places().map(([u, v]) => Math.hypot(u - x, v - y));
        const i = gaps.indexOf(Math.min(...gaps));
        if (gaps[i] < 12) choose(i);
      });
    }
    begin();
    other();
    window.drotStartsState = state; // for the tests
    const frames = row("drot-maps", [...maps.map(({ node }) => node), image.node]);
    return [frames, row("drot-controls", [press.row]), said.output];
  }

  widget("starts", "t-SNE maps of 500 digits from two random starts", start);
})();

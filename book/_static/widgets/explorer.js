/* The page's side of the explorer: five hundred digits under two maps, side by side. Point at a digit
 * in one, touch it, or walk with the arrow keys: the other map rings it and its nearest in the first.
 * The arithmetic is explorer_core.js, the maps explorer_data.js. Its box takes data-view: what to
 * begin with, as the address keeps it after its #.
 */
(function () {
  "use strict";

  const { draw, element, local, readout, row, set, widget } = drotPage;
  const WIDTH = 360; // user units
  const HEIGHT = 340;
  const MARGIN = 12;
  const REACH = 26; // how near a pointer must come, in user units
  const PIXEL = 11; // side of a pixel of the large image
  const KEYS = { ArrowRight: "right", ArrowLeft: "left", ArrowUp: "up", ArrowDown: "down" };
  const SIDES = ["left", "right"];
  const NAMES = ["first", "second"]; // on a phone the second is below the first
  const QUIET = 300; // milliseconds; browsers refuse an address that changes at each step of a mouse

  const a = (digit) => (digit === "8" ? "an " : "a ") + digit;

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

  /* one of several names, chosen from a list */
  function choice(id, label, names, act) {
    const options = Object.entries(names).map(([value, name]) => element("option", { value }, name));
    const input = element("select", { id }, options);
    input.addEventListener("change", () => act(input.value));
    const name = element("label", { for: id }, label);
    return { row: row("drot-control", [name, input]), name, input };
  }

  /* a map: one numeral for each image, of which one is chosen; `act` hears of what it is to show */
  function makeMap(id, side, data, hint, act) {
    const xis = Object.fromEntries(data.perplexities.map((xi) => [xi, xi]));
    const choices = {
      method: choice(id + "-method", "Method", data.methods, (method) => act({ method })),
      xi: choice(id + "-xi", "Perplexity", xis, (xi) => act({ xi: Number(xi) })),
      start: choice(id + "-start", "Start", data.starts, (start) => act({ start })),
    };
    const controls = row("drot-choices", Object.values(choices).map((one) => one.row));
    const node = set(element("div", {}, controls), { role: "group", "aria-label": side + " map" });
    const svg = draw(node, "svg", { viewBox: "0 0 " + WIDTH + " " + HEIGHT, tabindex: 0 });
    set(svg, { role: "listbox", class: "drot-map-of-digits", "aria-describedby": hint });
    const ties = draw(svg, "g", { "aria-hidden": "true", class: "drot-ties" });
    const numerals = Array.from(data.classes, (digit, i) => {
      const look = { class: "drot-numeral drot-class-" + digit, "data-image": i };
      const label = "image " + (i + 1) + ", " + a(digit);
      const one = draw(svg, "text", { id: id + "-" + i, ...look }, digit);
      return set(one, { role: "option", "aria-label": label, "aria-selected": "false" });
    });
    const ring = draw(svg, "circle", { class: "drot-chosen", r: 8, "aria-hidden": "true" });
    let places = [];

    /* `now`: the stored map for what is wished, which may have no perplexity and no start */
    function move(wish, now, to) {
      for (const key in choices) choices[key].input.value = wish[key];
      choices.xi.input.disabled = now.perplexity === 0;
      choices.xi.name.textContent = wish.method === "umap" ? "Neighbours" : "Perplexity";
      choices.start.input.disabled = now.start === "";
      const name =
        data.methods[wish.method] + (now.perplexity ? " at " + now.perplexity : "") +
        (now.start ? ", start: " + data.starts[now.start] : "");
      svg.setAttribute("aria-label", data.n + " digits by " + name);
      places = to;
      numerals.forEach((one, i) => {
        const [x, y] = to[i].map((v) => v.toFixed(1) + "px");
        one.style.transform = "translate(" + x + ", " + y + ")";
      });
    }

    /* marks image i, and with lines or rings some others: solid those in `both`, dashed the rest */
    function choose(i, kind, others, both) {
      for (const one of svg.querySelectorAll('[aria-selected="true"]')) {
        one.setAttribute("aria-selected", "false");
      }
      numerals[i].setAttribute("aria-selected", "true");
      svg.setAttribute("aria-activedescendant", numerals[i].id);
      const [cx, cy] = places[i];
      set(ring, { cx, cy });
      ties.replaceChildren();
      for (const j of others) {
        const [x, y] = places[j];
        const at = kind === "line" ? { x1: cx, y1: cy, x2: x, y2: y } : { cx: x, cy: y, r: 6.5 };
        const look = both.has(j) ? "drot-tie-kept" : "drot-tie-lost";
        draw(ties, kind, { ...at, "data-to": j, class: look });
      }
    }

    return { node, svg, move, choose, places: () => places };
  }

  /* the image that is chosen, and those most similar to it */
  function makeSide(k) {
    const node = row("drot-side", []);
    const large = makeImage(node, PIXEL, { role: "img", class: "drot-large" });
    const caption = element("p", { class: "drot-title" });
    const strip = row("drot-strip", []);
    const small = Array.from({ length: k }, () => makeImage(strip, 4, { role: "img" }));
    node.append(element("div", {}, [caption, strip]));

    function update(i, similar, near, levels, classes) {
      caption.textContent = "Image " + (i + 1) + ", " + a(classes[i]) + ", and the most similar";
      large.ink(levels[i]);
      large.svg.setAttribute("aria-label", "image " + (i + 1) + ", a handwritten " + classes[i]);
      similar.forEach((j, s) => {
        const kept = near.has(j);
        const where = kept ? ", near in the map" : ", not near in the map";
        small[s].ink(levels[j]);
        set(small[s].svg, { class: kept ? "drot-near" : "drot-far" });
        set(small[s].svg, { "aria-label": a(classes[j]) + where });
      });
    }

    return { node, update };
  }

  function start(box, id) {
    const core = window.drotExplorer;
    const data = window.drotExplorerData;
    const levels = core.images(data.pixels, data.n);
    const state = core.read(box.dataset.view, data);
    const hint = element("p", { class: "drot-finding", id: id + "-hint" }, [
      "Point at a numeral, touch it, or walk with the arrow keys. Lines lead to its " + data.k,
      " most similar images, solid to those among its " + data.k + " nearest in that map. Rings in the",
      " other map mark these " + data.k + " nearest, solid if still near. Others are dashed.",
      " The address of the page keeps what you see.",
    ]);
    const maps = SIDES.map((name, s) =>
      makeMap(id + "-" + name, name, data, hint.id, (what) => {
        Object.assign(state.maps[s], what);
        showMaps();
        keep();
      })
    );
    const pick = makeSide(data.k);
    const said = readout([["similar", 1], ["shared", 1], ["kept", 1], ["common", 1]]);
    const known = {}; // of stored maps: their points, and the nearest of each
    let shown = [];
    let waiting = 0;

    function load({ method, xi, start }) {
      const at = core.find(data.maps, method, xi, start);
      const points = core.positions(data.maps[at]);
      const near = () => points.map((_, i) => new Set(core.neighbours(points, i, data.k)));
      return (known[at] ??= { map: data.maps[at], points, near: near() });
    }

    const common = (a, b) => [...a].filter((j) => b.has(j)).length;

    function showImage() {
      const { image: i, at } = state;
      const [here, there] = [shown[at].near[i], shown[1 - at].near[i]];
      const similar = core.neighbours(levels, i, data.k);
      maps[at].choose(i, "line", similar, here);
      maps[1 - at].choose(i, "circle", here, there);
      pick.update(i, similar, here, levels, data.classes);
      said.update({
        similar:
          "Image " + (i + 1) + ", " + a(data.classes[i]) + ": of its " + data.k +
          " most similar images, " + common(similar, here) + " are near in the " + NAMES[at] + " map.",
        shared:
          "Of its " + data.k + " nearest in the " + NAMES[at] + ", " + common(here, there) +
          " are near in the " + NAMES[1 - at] + ".",
      });
    }

    function showMaps() {
      shown = state.maps.map(load);
      shown.forEach(({ map, points }, s) => {
        maps[s].move(state.maps[s], map, core.fit(points, WIDTH, HEIGHT, MARGIN));
      });
      const [left, right] = shown.map(({ map }) => (100 * map.kept).toFixed(1) + " %");
      const [one, other] = shown.map(({ near }) => near);
      const all = one.reduce((total, near, i) => total + common(near, other[i]), 0);
      said.update({
        kept:
          "All images: " + left + " of the most similar are near in the first map, " + right +
          " in the second.",
        common:
          "Of the nearest in one map, " + ((100 * all) / (data.k * data.n)).toFixed(1) +
          " % are near in the other.",
      });
      showImage();
    }

    function choose(i, at) {
      if (i < 0 || (i === state.image && at === state.at)) return;
      Object.assign(state, { image: i, at });
      showImage();
      keep();
    }

    function keep() {
      clearTimeout(waiting);
      waiting = setTimeout(() => history.replaceState(null, "", "#" + core.write(state)), QUIET);
    }

    /* what the address asks for; tells whether it asks for anything */
    function recall() {
      const wish = core.read(location.hash.slice(1), data);
      Object.assign(state, wish);
      return wish !== null;
    }

    maps.forEach(({ svg, places }, s) => {
      for (const kind of ["pointermove", "pointerdown"]) {
        svg.addEventListener(kind, (event) => choose(core.at(places(), local(svg, event), REACH), s));
      }
      svg.addEventListener("focus", () => choose(state.image, s));
      svg.addEventListener("keydown", (event) => {
        let to = state.image;
        if (event.key in KEYS) to = core.step(shown[s].points, to, KEYS[event.key]);
        else if (event.key === "Home") to = 0;
        else if (event.key === "End") to = data.n - 1;
        else return;
        event.preventDefault(); // no scrolling
        choose(to, s);
      });
    });
    window.addEventListener("hashchange", () => {
      if (!recall()) return;
      showMaps();
      box.scrollIntoView();
    });

    recall();
    showMaps();
    const both = row("drot-pictures", maps.map(({ node }) => node));
    return [both, pick.node, said.output, hint];
  }

  widget("explorer", "Two maps of 500 digits", start);
})();

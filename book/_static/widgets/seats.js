/* The page's side of the seats widget: twelve points, three places, and the seats of a place; the
 * mathematics is seats_core.js. Its box takes data-town: `points`, of which the first `together`
 * are one cluster, and `places`, both in the plane.
 */
(function () {
  "use strict";

  const { WIDTH, buttons, draw, picture, readout, row, set, slider, widget } = drotPage;
  const [HEIGHT, EDGE] = [236, 26];
  const SEAT = 8; // pixels

  /* discs are points, squares places, the cross the origin; a line joins a point to its place */
  function makeMap(points, places) {
    const label = "Points, as discs, the places that they are sent to, as squares, and a cross";
    const { node, svg } = picture("", label, { height: HEIGHT });
    const sides = [0, 1].map((q) => points.map((x) => x[q]));
    const [left, right, low, high] = sides.flatMap((v) => [Math.min(...v), Math.max(...v)]);
    const unit = Math.min((WIDTH - 2 * EDGE) / (right - left), (HEIGHT - 2 * EDGE) / (high - low));
    const pixel = ([x, y]) => [EDGE + unit * (x - left), EDGE + unit * (high - y)];
    const [from, to] = [points.map(pixel), places.map(pixel)];
    const origin = sides.map((v) => v.reduce((sum, x) => sum + x, 0) / v.length);
    const [u, v] = pixel(origin);
    draw(svg, "path", { d: `M${u - 9} ${v}h18M${u} ${v - 9}v18`, class: "drot-origin" });
    const lines = from.map(([x1, y1]) => draw(svg, "line", { x1, y1, class: "drot-edge" }));
    const words = from.map(([cx, cy]) => {
      draw(svg, "circle", { cx, cy, r: 8.5, class: "drot-point" });
      return draw(svg, "text", { x: cx, y: cy + 4, class: "drot-number" });
    });
    to.forEach(([x, y], a) => {
      const square = { x: x + 8, y: y + 8, width: 15, height: 15, class: "drot-dot" };
      draw(svg, "rect", square);
      draw(svg, "text", { x: x + 15.5, y: y + 19.5, class: "drot-number" }, a + 1);
    });
    function update(labels) {
      labels.forEach((a, i) => {
        set(lines[i], { x2: to[a][0] + 15.5, y2: to[a][1] + 15.5 });
        words[i].textContent = a + 1;
        set(words[i].previousSibling, { "data-place": a });
      });
    }
    return { node, update };
  }

  /* the seats of each place, one above the other, the taken ones filled */
  function makeSeats(k, most) {
    const height = 34 + SEAT * most;
    const { node, svg } = picture("", "The seats of the three places", { height });
    const columns = Array.from({ length: k }, (_, a) => {
      const x = (WIDTH * (a + 0.5)) / k;
      const squares = Array.from({ length: most }, (_, s) => {
        const y = height - 22 - SEAT * (s + 1);
        return draw(svg, "rect", { x: x - 22, y, width: 44, height: SEAT - 1.5 });
      });
      const middle = { x, y: height - 6, class: "drot-axis", "text-anchor": "middle" };
      return { squares, word: draw(svg, "text", middle) };
    });
    function update(taken, seats) {
      columns.forEach(({ squares, word }, a) => {
        squares.forEach((square, s) => {
          set(square, { class: s < taken[a] ? "drot-probability" : "drot-ring" });
          set(square, { visibility: s < seats ? "visible" : "hidden" });
        });
        word.textContent = "place " + (a + 1) + " holds " + taken[a];
      });
    }
    return { node, update };
  }

  function start(box, id) {
    const core = window.drotSeats;
    const { points, places, together } = JSON.parse(box.dataset.town);
    const [C, D] = core.gram(points, places);
    const [n, k] = [points.length, places.length];
    const known = {};
    const solve = (seats) => (known[seats] = known[seats] || core.best(C, D, seats));
    const equal = n / k;
    const map = makeMap(points, places);
    const columns = makeSeats(k, n);
    const range = { min: equal, max: n };
    const control = slider(id + "-seats", "Seats in each place", range, show);
    const names = { equal: "Equal shares", free: "Set free" };
    const seatsOf = { equal, free: n };
    const controls = buttons(names, "How many seats", (key) => show(seatsOf[key]));
    const parts = [["value", "loss"], ["share", "loss relative to equal shares"], ["finding", 2]];
    const said = readout(parts, [control.input]);

    function show(seats) {
      const { labels, value } = solve(seats);
      const taken = core.counts(labels, k);
      map.update(labels);
      columns.update(taken, seats);
      const theirs = [...new Set(labels.slice(0, together))].sort().map((a) => a + 1);
      let finding = "The " + together + " points on the left do not fit: they are split over ";
      finding += "places " + theirs.join(" and ") + ".";
      if (theirs.length === 1) {
        finding = "The " + together + " points on the left share a place. More seats change ";
        finding += "nothing: places hold " + taken.join(", ") + ".";
      }
      said.update({ value, share: value / solve(equal).value, finding });
      control.input.value = seats;
      const limit = seats === n ? ", no limit" : "";
      control.input.setAttribute("aria-valuetext", seats + " seats" + limit);
      controls.show(seats === n ? "free" : seats === equal ? "equal" : "");
    }

    show(equal);
    const side = [control.row, columns.node, said.output];
    return [controls.row, row("drot-pictures", [map.node, row("", side)])];
  }

  widget("seats", "Twelve points, three places, and the seats of a place", start);
})();

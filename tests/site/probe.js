/* What the browser tests ask of a page; evaluated in it, then called as probe.<name>(). */
window.probe = (() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const name = (e) => e.outerHTML.slice(0, 120);
  const visible = (e) => e.checkVisibility({ checkVisibilityCSS: true, checkOpacity: true });
  const flat = (e) => {
    const { left, top, right, bottom } = e.getBoundingClientRect();
    return [left, top, right, bottom];
  };

  /* ---- colours: WCAG 2 contrast on the ground an element really has ---- */
  const rgb = (text) => {
    const v = text.match(/[\d.]+/g).map(Number);
    return [v[0], v[1], v[2], v[3] ?? 1];
  };
  const over = (top, under) =>
    [0, 1, 2].map((k) => top[3] * top[k] + (1 - top[3]) * under[k]).concat(1);
  const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) =>
    0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const contrast = (color, ground) => {
    const [a, b] = [light(over(rgb(color), ground)), light(ground)];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  };
  function grounds() {
    const known = new Map();
    return function ground(e) {
      if (!e) return [255, 255, 255, 1];
      if (!known.has(e)) {
        known.set(e, over(rgb(getComputedStyle(e).backgroundColor), ground(e.parentElement)));
      }
      return known.get(e);
    };
  }

  /* elements that push a page sideways: too far right, and no ancestor scrolls them */
  function wide() {
    const scrolls = (e) => {
      for (let up = e.parentElement; up; up = up.parentElement) {
        if (getComputedStyle(up).overflowX !== "visible") return true;
      }
      return false;
    };
    const edge = document.documentElement.clientWidth + 1;
    return all(".bd-article *").filter(
      (e) => e.getBoundingClientRect().right > edge && visible(e) && !scrolls(e)
    );
  }

  /* once what changed has been laid out */
  const drawn = () =>
    new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));

  const operable = () =>
    all(
      "a[href], button, input, select, textarea, summary, [role=button], [role=slider], [onclick]"
    ).filter((e) => e.checkVisibility({ checkVisibilityCSS: true }) && !e.disabled);

  /* how much too wide the page is, and some of what makes it so */
  async function room() {
    await drawn();
    const page = document.documentElement;
    const over = page.scrollWidth - page.clientWidth;
    return [...(over > 0 ? [`by ${over} pixels`] : []), ...wide().slice(0, 3).map(name)];
  }

  return {
    room,

    /* what is wrong, by what it is called, and what else there is */
    async facts() {
      const headings = all("article :is(h1, h2, h3, h4, h5, h6)").map((e) => Number(e.tagName[1]));
      const wrong = {
        "too wide": await room(),
        "formulas left as text": all(".math.notranslate").filter(
          (e) => !e.querySelector("mjx-container")
        ),
        "formulas that MathJax refused": all("mjx-merror, merror, [data-mml-node=merror]"),
        "widgets that did not start": all(".drot-widget").filter(
          (e) => !e.querySelector("output")?.innerText.trim()
        ),
        "proofs that start open": all("article details[open]"),
        "solutions that start open": all(
          "article .solution.dropdown > :not(.admonition-title, .toggle-button)"
        ).filter((e) => e.getBoundingClientRect().height > 1 && visible(e)),
        "pictures without words": [
          ...all("img:not([alt])"),
          ...all("article figure img, article .cell_output img").filter(
            (e) => (e.alt || "").trim().length < 15
          ),
        ],
        "pictures that did not load": all("img").filter(
          (e) => e.complete && !e.naturalWidth && visible(e)
        ),
        "headings out of order": headings.filter((h, k) =>
          k ? h === 1 || h > headings[k - 1] + 1 : h !== 1
        ),
      };
      for (const what in wrong) wrong[what] = wrong[what].map((e) => (e.nodeType ? name(e) : e));
      const found = {
        lang: document.documentElement.lang,
        titled: headings.length > 0,
        formulas: all("mjx-container").length,
        solutions: all("article .solution.dropdown").length,
      };
      return [wrong, found];
    },

    /* displayed formulas, those of proofs and solutions too, that are wider than their box; figures
       that scroll and that the keyboard cannot reach */
    async cut() {
      all("article details").forEach((e) => (e.open = true));
      await drawn();
      const wider = (e) => e.scrollWidth > e.clientWidth + 1;
      const found = {
        cut: all('.bd-article mjx-container[display="true"]')
          .filter((e) => wider(e) || wider(e.parentElement))
          .map((e) => e.textContent.slice(0, 60)),
        stuck: all(".bd-article figure")
          .filter((e) => e.scrollWidth > e.clientWidth && e.tabIndex !== 0)
          .map((e) => e.id),
      };
      all("article details").forEach((e) => (e.open = false));
      return found;
    },

    /* visible words, menus too, below a contrast of 4.5, or 3 if large; axe does the same, slowly */
    faint() {
      const ground = grounds();
      const skip = "script, style, .headerlink, svg *, mjx-container, mjx-container *";
      const found = [];
      for (const e of all(`body *:not(${skip})`)) {
        const words = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
        if (!words || !visible(e)) continue;
        const { color, fontSize, fontWeight } = getComputedStyle(e);
        const size = parseFloat(fontSize);
        const large = size >= 24 || (size >= 18.66 && Number(fontWeight) >= 700);
        const ratio = contrast(color, ground(e));
        if (ratio < (large ? 3 : 4.5)) found.push(ratio.toFixed(2) + " " + name(e));
      }
      return found;
    },

    /* marks of a widget whose colour is below a contrast with its ground */
    pale(kinds, attribute, least) {
      const box = document.querySelector(".drot-widget");
      const ground = rgb(getComputedStyle(box).backgroundColor);
      return [...box.querySelectorAll(kinds)]
        .filter((e) => contrast(getComputedStyle(e)[attribute], ground) < least)
        .map(name);
    },

    /* the concept map's boxes, as left, top, right, bottom */
    async map() {
      await drawn();
      const map = document.querySelector("svg.drot-map");
      return {
        page: document.documentElement.clientWidth,
        map: flat(map),
        nodes: [...map.querySelectorAll(".node")].map((node) => ({
          box: flat(node.querySelector("rect")),
          words: [...node.querySelectorAll(".name, .sub")].map(flat),
          size: parseFloat(getComputedStyle(node.querySelector(".sub")).fontSize),
        })),
      };
    },

    /* keep what the focus comes to, and whether it leaves the page; how much can be operated */
    walk() {
      const reached = new Set();
      const missed = () => operable().filter((e) => !reached.has(e)).map(name);
      window.walked = { left: false, missed };
      document.addEventListener("focusin", (event) => reached.add(event.target));
      document.addEventListener("focusout", (event) => (walked.left ||= !event.relatedTarget));
      return operable().length;
    },

    /* what a keyboard does not reach, and where it stands unseen; `each`: how many of a kind to try */
    keyboard(each) {
      const look = (e, pseudo) => {
        const { outlineStyle, outlineWidth, boxShadow, borderColor, backgroundColor } =
          getComputedStyle(e, pseudo);
        const outline = outlineStyle === "none" ? "" : outlineStyle + outlineWidth;
        return [outline, boxShadow, borderColor, backgroundColor].join();
      };
      const seen = new Map();
      const found = [];
      all("article details").forEach((e) => (e.open = true));
      for (const e of operable()) {
        const kind = e.tagName + e.getAttribute("class") + e.getAttribute("role");
        seen.set(kind, (seen.get(kind) ?? 0) + 1);
        if (seen.get(kind) > each) continue;
        const parts = [e, e.parentElement, ...e.children].slice(0, 6);
        // a card draws the outline of its link on ::after, which covers the card
        const looks = () => [look(e, "::after"), ...parts.map((part) => look(part))].join();
        const before = looks();
        e.focus({ focusVisible: true, preventScroll: true });
        if (e.tabIndex < 0 || document.activeElement !== e) found.push("not reached: " + name(e));
        else {
          const same = before === looks() || getComputedStyle(e).opacity === "0";
          if (same) found.push("focus not seen: " + name(e));
        }
        e.blur();
      }
      all("article details").forEach((e) => (e.open = false));
      return found;
    },

    /* what the page costs, besides formulas: elements, milliseconds to load, addresses fetched */
    cost() {
      const [page] = performance.getEntriesByType("navigation");
      const fetched = [page, ...performance.getEntriesByType("resource")].map((e) => e.name);
      return {
        elements: all("*:not(mjx-container *)").length,
        loaded: page.loadEventEnd,
        fetched: [...new Set(fetched)],
      };
    },

    /* What axe-core, loaded before, says of the page: all that is serious, and all of WCAG 2.1 AA.
       Formulas, which one program writes, are left to it in five examples; `links`: whether it looks
       at links in their sentences too, which takes long, and one style sheet decides. */
    async axe(links = true) {
      all("mjx-container").slice(5).forEach((e) => e.replaceChildren("x"));
      const without = ["color-contrast", "region", ...(links ? [] : ["link-in-text-block"])];
      const { violations } = await axe.run(document, {
        resultTypes: ["violations"],
        preload: false,
        // faint() measures contrast, in both themes; a text outside all regions is not serious
        rules: Object.fromEntries(without.map((rule) => [rule, { enabled: false }])),
      });
      const asked = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"];
      return violations
        .filter((v) => /serious|critical/.test(v.impact) || v.tags.some((t) => asked.includes(t)))
        .map((v) => `${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 120))}`);
    },
  };
})();

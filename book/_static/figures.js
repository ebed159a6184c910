// A figure that is wider than a phone scrolls in its own box, and the keyboard must reach it; one that
// is hardly wider shrinks instead.
(() => {
  const HARDLY = 1.2;
  const reach = () => {
    for (const figure of document.querySelectorAll(".bd-article figure")) {
      figure.classList.remove("drot-fits");
      const ratio = figure.scrollWidth / figure.clientWidth;
      figure.classList.toggle("drot-fits", ratio < HARDLY);
      if (ratio >= HARDLY) figure.setAttribute("tabindex", "0");
      else figure.removeAttribute("tabindex");
    }
  };
  window.addEventListener("load", reach);
  window.addEventListener("resize", reach);
})();

// A figure that is wider than a phone scrolls in its own box: the keyboard must reach it.
(() => {
  const reach = () => {
    for (const figure of document.querySelectorAll(".bd-article figure")) {
      if (figure.scrollWidth > figure.clientWidth) figure.setAttribute("tabindex", "0");
      else figure.removeAttribute("tabindex");
    }
  };
  window.addEventListener("load", reach);
  window.addEventListener("resize", reach);
})();

// A figure that is wider than a phone scrolls in its own box, and the keyboard must reach it; one that
// is hardly wider shrinks instead. A table that is wider says so.
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
    for (const box of document.querySelectorAll(".bd-article .pst-scrollable-table-container"))
      box.classList.toggle("drot-scrolls", box.scrollWidth > box.clientWidth + 1);
  };
  window.addEventListener("load", reach);
  window.addEventListener("resize", reach);
})();

// The picture of a preview comes when its link is pointed at: the pages of links to figures would
// otherwise fetch a megabyte for nothing. A preview finds its place again once its picture is there.
document.addEventListener("DOMContentLoaded", () => {
  const tips = window.selector_to_html ?? {};
  for (const link in tips) tips[link] = tips[link].replaceAll("<img ", '<img loading="lazy" ');
  const place = (tip) => tip.popperInstance?.update();
  window.tippy?.setDefaultProps({
    onMount: (tip) =>
      tip.popper.querySelectorAll("img").forEach((e) => (e.onload = () => place(tip))),
  });
});

// What opens the second page of a chapter in the sidebar has a name for those who do not see it.
document.addEventListener("DOMContentLoaded", () => {
  for (const toggle of document.querySelectorAll("summary:has(> .toctree-toggle)")) {
    const title = toggle.closest("li")?.querySelector("a")?.textContent.trim();
    toggle.setAttribute("aria-label", `more on ${title ?? "this chapter"}`);
  }
});

/* Exercises: a form says whether an answer is right, and cells to fill in lead to where they run. */
(() => {
  "use strict";

  const NUMBER = /^([-+]?)(\d+\.?\d*|\.\d+)(e[-+]?\d+)?(?:\^([-+]?\d+))?$/i;

  /* 0.5, -1e-8 or 2^-3; anything else is NaN */
  function factor(text) {
    const [, sign, digits, exponent = "", power = 1] = NUMBER.exec(text) ?? [];
    return (sign === "-" ? -1 : 1) * Number(digits + exponent) ** power;
  }

  /* the comma may be decimal, the minus that of print */
  function read(text) {
    const plain = text.replace(/\s/g, "").replaceAll(",", ".").replaceAll("−", "-");
    return plain.split("/").map(factor).reduce((a, b) => a / b);
  }

  /* a choice is a number too; what the two sides round may not decide at the edge */
  function judge(form) {
    const { right, within } = form.dataset;
    const answer = read(new FormData(form).get("answer"));
    if (Math.abs(answer - right) <= within * (1 + 1e-9)) return "Right.";
    return Number.isFinite(answer) ? "Not yet." : "That is not a number.";
  }

  function serve(form) {
    const [reply, hint] = form.querySelector("output").children;
    const say = (words) => {
      reply.textContent = words;
      hint.hidden = words !== "Not yet.";
    };
    form.addEventListener("input", () => say(""));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      say(judge(form));
    });
    form.hidden = false;
  }

  /* the theme has put the page's address at Binder into its menu */
  function lead(cell, address) {
    const number = cell.closest(".exercise").querySelector(".caption-number").textContent.trim();
    const link = document.createElement("a");
    Object.assign(link, { className: "drot-binder", href: address, target: "_blank" });
    link.textContent = "Open " + number + " in Binder";
    cell.after(link);
  }

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll("form.drot-answer").forEach(serve);
    const binder = document.querySelector('.dropdown-launch-buttons a[href*="/v2/gh/"]');
    const cells = document.querySelectorAll(".bd-article div.exercise .cell");
    if (binder) cells.forEach((cell) => lead(cell, binder.href));
  });
})();

// Typeset formulas with the KaTeX that is part of this site. A page without formulas loads nothing of it.
(function () {
  const formulas = document.querySelectorAll(".arithmatex");
  if (!formulas.length) return;
  const folder = document.currentScript.src.replace(/javascripts\/math\.js.*$/, "assets/katex/");

  function typeset() {
    for (const heading of document.querySelectorAll("th:has(.arithmatex)"))
      heading.setAttribute("aria-label", heading.textContent.replace(/\\[()]/g, "").trim()); // screen readers skip formulas
    for (const formula of formulas) {
      const text = formula.textContent.trim();
      const display = text.startsWith("\\[");
      katex.render(text.slice(2, -2), formula, { displayMode: display, throwOnError: false });
    }
  }

  const style = document.createElement("link");
  style.rel = "stylesheet";
  style.href = folder + "katex.min.css";
  const script = document.createElement("script");
  script.src = folder + "katex.min.js";
  script.onload = typeset;
  document.head.append(style, script);
})();

// Typeset formulas with the KaTeX that is part of this site. A page without formulas loads nothing of it.
(function () {
  const formulas = document.querySelectorAll(".arithmatex");
  if (!formulas.length) return;
  const folder = document.currentScript.src.replace(/javascripts\/math\.js.*$/, "assets/katex/");

  // The heading of a column needs text, which a formula is not to every screen reader.
  function speak(formula, text) {
    const spoken = document.createElement("span");
    spoken.className = "spoken";
    spoken.textContent = text;
    formula.setAttribute("aria-hidden", "true");
    formula.after(spoken);
  }

  function typeset() {
    for (const formula of formulas) {
      const text = formula.textContent.trim();
      const display = text.startsWith("\\[");
      katex.render(text.slice(2, -2), formula, { displayMode: display, throwOnError: false });
      if (formula.closest("th")) speak(formula, text.slice(2, -2));
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

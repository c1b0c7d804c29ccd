// For people who use a screen reader or a keyboard: name the landmarks that the theme leaves without a name, and let
// wide tables and figures, which scroll in their boxes, take the focus.
(function () {
  for (const list of document.querySelectorAll("nav.md-nav[aria-labelledby]")) {
    const title = list.querySelector(":scope > .md-nav__title");
    if (!title) continue;
    list.removeAttribute("aria-labelledby");
    list.setAttribute("aria-label", `Pages: ${title.textContent.trim()}`);
  }
  const search = document.querySelector(".md-search[role=dialog]");
  if (search) search.setAttribute("aria-label", "Search");

  // The theme adds a button to each block of code, as a landmark of its own.
  function unmark() {
    for (const buttons of document.querySelectorAll("nav.md-code__nav:not([role])")) buttons.setAttribute("role", "none");
  }
  unmark();
  new MutationObserver(unmark).observe(document.body, { childList: true, subtree: true });

  const boxes =
    ".md-typeset__scrollwrap, article table, article p:has(img), article div.output, article figure, article div.arithmatex";
  function focus() {
    for (const box of document.querySelectorAll(boxes))
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
  }
  new ResizeObserver(focus).observe(document.body);
})();

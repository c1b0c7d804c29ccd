// Name the landmarks that the theme leaves without a name, for people who use a screen reader.
(function () {
  for (const list of document.querySelectorAll("nav.md-nav[aria-labelledby]")) {
    const title = list.querySelector(":scope > .md-nav__title");
    if (!title) continue;
    list.removeAttribute("aria-labelledby");
    list.setAttribute("aria-label", title.textContent.trim());
  }
  const search = document.querySelector(".md-search[role=dialog]");
  if (search) search.setAttribute("aria-label", "Search");

  // The theme adds a button to each block of code, as a landmark of its own.
  function unmark() {
    for (const buttons of document.querySelectorAll("nav.md-code__nav:not([role])")) buttons.setAttribute("role", "none");
  }
  unmark();
  new MutationObserver(unmark).observe(document.body, { childList: true, subtree: true });
})();

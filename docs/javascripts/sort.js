// Let a reader sort the tables inside an element of class "sortable" by a click on a heading.
// Without this script the tables are as they were written.
(function () {
  function value(cell) {
    const text = cell ? cell.textContent.replace(/[†‡,%\s]/g, "") : "";
    const number = text === "" || text === "–" ? NaN : Number(text);
    return { number, text: cell ? cell.textContent.trim().toLowerCase() : "" };
  }

  function compare(first, second, sign) {
    const [a, b] = [value(first), value(second)];
    if (Number.isNaN(a.number) !== Number.isNaN(b.number)) return Number.isNaN(a.number) ? 1 : -1;
    if (Number.isNaN(a.number)) return sign * a.text.localeCompare(b.text);
    return sign * (a.number - b.number);
  }

  function sort(table, place, heading) {
    const upwards = heading.getAttribute("aria-sort") !== "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", upwards ? "ascending" : "descending");
    const body = table.tBodies[0];
    const rows = Array.from(body.rows);
    rows.sort((a, b) => compare(a.cells[place], b.cells[place], upwards ? 1 : -1));
    body.append(...rows);
  }

  for (const table of document.querySelectorAll(".sortable table")) {
    Array.from(table.tHead.rows[0].cells).forEach((heading, place) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      if (!button.textContent.trim()) button.textContent = ["estimator", "from"][place] || "column";
      heading.append(button);
      button.addEventListener("click", () => sort(table, place, heading));
    });
  }
})();

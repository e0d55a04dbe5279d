// Tables that are sorted and filtered, and commands that are copied. The page is complete without
// this.
"use strict";
(() => {
  // Shorter tables are seen at once.
  const ROWS_WITHOUT_FILTER = 10;
  const collator = new Intl.Collator("en", { numeric: true });

  const element = (name, attributes, ...content) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...content);
    return made;
  };

  // Ascending, descending, then as it was.
  const NEXT = { none: "ascending", ascending: "descending", descending: "none" };

  // The rows of a column in ascending order. Those of numbers are given, since `27.6 µs` and `1.02
  // ms` have no order as texts.
  const ascending = (rows, heading, column) => {
    const order = heading.dataset.order;
    if (order) {
      const digits = (rows.length - 1).toString(36).length;
      return order.match(new RegExp(`.{${digits}}`, "g")).map((index) => rows[parseInt(index, 36)]);
    }
    const text = (row) => row.cells[column].textContent;
    return order === "" ? rows : [...rows].sort((one, other) => collator.compare(text(one), text(other)));
  };

  const sortable = (table) => {
    const body = table.tBodies[0];
    const original = [...body.rows];
    if (original.length < 2) return;
    const headings = [...table.tHead.rows[0].cells];
    headings.forEach((heading, column) => {
      const button = element("button", { type: "button", class: "sort" }, ...heading.childNodes);
      heading.append(button);
      heading.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const order = NEXT[heading.getAttribute("aria-sort")];
        for (const other of headings) other.setAttribute("aria-sort", other === heading ? order : "none");
        const rows = order === "none" ? original : ascending(original, heading, column);
        // Rows that have no number stand below all that have one, in either direction.
        const numbers = new Set(rows);
        const rest = original.filter((row) => !numbers.has(row));
        body.append(...(order === "descending" ? [...rows].reverse() : rows), ...rest);
      });
    });
  };

  const filterable = (table, place) => {
    const rows = [...table.tBodies[0].rows];
    if (rows.length <= ROWS_WITHOUT_FILTER) return;
    const field = element("input", { type: "search", autocomplete: "off", spellcheck: "false" });
    const count = element("output", {}, `${rows.length} rows`);
    // Every word must occur somewhere in the row.
    field.addEventListener("input", () => {
      const words = field.value.toLowerCase().split(/\s+/).filter((word) => word !== "");
      let shown = 0;
      for (const row of rows) {
        const text = [...row.cells].map((cell) => cell.textContent.toLowerCase()).join("\n");
        row.hidden = !words.every((word) => text.includes(word));
        shown += row.hidden ? 0 : 1;
      }
      count.textContent = words.length === 0 ? `${rows.length} rows` : `${shown} of ${rows.length} rows`;
    });
    place.before(element("p", { class: "filter" }, element("label", {}, "Filter ", field), " ", count));
  };

  const copied = (command) => {
    const button = element("button", { type: "button", class: "copy" }, "Copy");
    const text = command.textContent;
    const status = element("span", { class: "weak", role: "status" });
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(text);
        status.textContent = "Copied.";
      } catch {
        getSelection().selectAllChildren(command);
        status.textContent = "Selected: copy it with the keyboard.";
      }
    });
    command.after(element("p", { class: "copying" }, button, " ", status));
  };

  for (const table of document.querySelectorAll("table")) {
    filterable(table, table.closest(".scroll") ?? table);
    sortable(table);
  }
  document.querySelectorAll("pre").forEach(copied);
})();

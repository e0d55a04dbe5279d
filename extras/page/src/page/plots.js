// Plots that show the value under the pointer, step through their values by the arrow keys, and
// hide a series. The drawing is there without this.
"use strict";
(() => {
  // Further away, a value is not meant.
  const REACH = 40;

  const element = (name, className, text) => {
    const made = document.createElement(name);
    made.className = className;
    made.textContent = text ?? "";
    return made;
  };

  // The texts of marks that stand in a table. `list` has the first and the last place of each piece
  // of a row, a column or a cell.
  const textsOf = (table, list) => {
    const headings = table.tHead.rows[0].cells;
    const textOf = (row, column, part) => {
      const { cells } = table.tBodies[0].rows[row];
      const [name, heading, text] = [cells[0], headings[column], cells[column]].map((cell) => cell.textContent);
      return part === undefined ? `${name}, ${heading}: ${text}` : `${name}, ${heading} ${text.split(", ")[part]}`;
    };
    return list.split(" ").flatMap((piece) => {
      const [first, last = first] = piece.split(":").map((place) => place.split(",").map(Number));
      const count = Math.max(...first.map((start, along) => last[along] - start)) + 1;
      const step = first.map((start, along) => Math.sign(last[along] - start));
      return Array.from({ length: count }, (_, index) => textOf(...first.map((start, along) => start + index * step[along])));
    });
  };

  // The parts of a path as elements of their own. Each begins at its distance from the one before.
  const marksOf = (path) => {
    let [x, y] = [0, 0];
    return path.match(/[ml][^ml]+/g).map((part) => {
      const [right, down, width, height] = part.match(/-?[\d.]+/g).map(Number);
      [x, y] = [x + right, y + down];
      const [name, form] = height === undefined ? ["circle", { cx: x, cy: y, r: 3.5 }] : ["rect", { x, y, width, height }];
      const mark = document.createElementNS("http://www.w3.org/2000/svg", name);
      for (const [key, value] of Object.entries(form)) mark.setAttribute(key, value);
      return mark;
    });
  };

  const keys = element("span", "", "Arrow keys give one value after the other.");
  keys.id = "keys";
  keys.hidden = true;
  document.body.append(keys);

  const interactive = (drawing) => {
    const figure = drawing.closest("figure");
    const legend = drawing.previousElementSibling;
    const svg = drawing.querySelector("svg");
    const series = [...svg.querySelectorAll(".series > g")];
    for (const drawn of svg.querySelectorAll("[data-cells]")) {
      const path = drawn.getAttribute("d");
      const own = path === null ? [...drawn.children] : marksOf(path);
      textsOf(figure.querySelector("table"), drawn.dataset.cells).forEach((text, index) => (own[index].dataset.label = text));
      if (drawn.matches(".line")) {
        // A line without dots shows the one that is chosen.
        own.forEach((mark) => mark.classList.add("faint"));
        drawn.after(...own);
      } else drawn.replaceWith(...own);
    }
    const marks = [...svg.querySelectorAll(".series circle, .series rect")];
    const conditions = figure.querySelector("figcaption").textContent;
    let chosen = -1;

    // A tip within the drawing would be cut off by its ends.
    const tip = element("div", "tip");
    tip.setAttribute("role", "status");
    tip.hidden = true;
    drawing.after(tip);
    drawing.classList.add("interactive");
    drawing.setAttribute("aria-describedby", keys.id);
    for (const title of svg.querySelectorAll(".series title")) {
      title.parentNode.dataset.label = title.textContent;
      // The browser would show it beside the tip.
      title.remove();
    }

    const isShown = (mark) => !mark.closest(".off");

    const choose = (index) => {
      marks[chosen]?.classList.remove("chosen");
      chosen = index;
      tip.hidden = index < 0;
      if (index < 0) return;
      const mark = marks[index];
      mark.classList.add("chosen");
      const label = element("strong", mark.classList.contains("invalid") ? "bad" : "", mark.dataset.label);
      tip.replaceChildren(label, element("span", "weak", conditions));
      const [own, all] = [mark.getBoundingClientRect(), figure.getBoundingClientRect()];
      const across = own.left + own.width / 2 - all.left - tip.offsetWidth / 2;
      tip.style.left = `${Math.max(0, Math.min(across, all.width - tip.offsetWidth))}px`;
      tip.style.top = `${own.bottom - all.top + 8}px`;
    };

    // The value under the pointer, or the nearest one.
    const nearest = (x, y) => {
      let [best, least] = [-1, REACH];
      marks.forEach((mark, index) => {
        if (!isShown(mark)) return;
        const box = mark.getBoundingClientRect();
        const distance = Math.hypot(Math.max(box.left - x, x - box.right, 0), Math.max(box.top - y, y - box.bottom, 0));
        if (distance < least) [best, least] = [index, distance];
      });
      return best;
    };

    // The next shown value from `index` on in this direction; the one before if there is none.
    const shownFrom = (index, step) => {
      let found = index;
      while (marks[found] && !isShown(marks[found])) found += step;
      return marks[found] ? found : chosen;
    };

    svg.addEventListener("pointermove", (event) => {
      const index = nearest(event.clientX, event.clientY);
      if (index !== chosen) choose(index);
    });
    svg.addEventListener("pointerleave", () => choose(-1));
    drawing.addEventListener("blur", () => choose(-1));
    drawing.addEventListener("keydown", (event) => {
      const next = {
        ArrowRight: () => shownFrom(chosen + 1, 1),
        ArrowDown: () => shownFrom(chosen + 1, 1),
        ArrowLeft: () => shownFrom(chosen - 1, -1),
        ArrowUp: () => shownFrom(chosen - 1, -1),
        Home: () => shownFrom(0, 1),
        End: () => shownFrom(marks.length - 1, -1),
        Escape: () => -1,
      }[event.key];
      if (next === undefined) return;
      event.preventDefault();
      choose(next());
    });

    // A button for each series instead of its name: whether it is shown.
    [...legend.children].forEach((key, index) => {
      const button = element("button", key.className, key.textContent);
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      button.addEventListener("click", () => {
        const isHidden = series[index].classList.toggle("off");
        button.setAttribute("aria-pressed", String(!isHidden));
        choose(-1);
      });
      key.replaceWith(button);
    });
  };

  document.querySelectorAll("figure .drawing").forEach(interactive);
})();

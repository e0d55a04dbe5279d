// Plots that tell the value under the pointer, step through their values by the arrow keys, and hide a series. The drawing is there
// without this.
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

  const interactive = (figure) => {
    const drawing = figure.querySelector(".drawing");
    const svg = drawing.querySelector("svg");
    const series = [...svg.querySelectorAll(".series")];
    const marks = [...svg.querySelectorAll(".series circle, .series rect")];
    const conditions = figure.querySelector("figcaption").textContent;
    let chosen = -1;

    // A tip within the drawing would be cut off by its ends.
    const tip = element("div", "tip");
    tip.setAttribute("role", "status");
    tip.hidden = true;
    drawing.after(tip);
    drawing.classList.add("interactive");
    drawing.setAttribute("aria-label", `${drawing.getAttribute("aria-label")}. Arrow keys give one value after the other.`);
    for (const mark of marks) {
      const title = mark.querySelector("title");
      mark.dataset.label = title.textContent;
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

    // A button for each series instead of the drawn legend: whether it is shown.
    const keys = svg.querySelector(".keys");
    const legend = element("div", "legend plot");
    [...keys.children].forEach((key, index) => {
      const button = element("button", "");
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      const swatch = element("span", "swatch");
      const style = key.querySelector("[stroke-dasharray]") ? "dashed" : "solid";
      swatch.style.borderTop = `3px ${style} var(--${key.getAttribute("class")})`;
      button.append(swatch, key.querySelector("text").textContent);
      button.addEventListener("click", () => {
        const isHidden = series[index].classList.toggle("off");
        button.setAttribute("aria-pressed", String(!isHidden));
        choose(-1);
      });
      legend.append(button);
    });
    drawing.before(legend);
    svg.viewBox.baseVal.height = Number(keys.dataset.top);
    keys.remove();
  };

  document.querySelectorAll("figure").forEach(interactive);
})();

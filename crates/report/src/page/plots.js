// Each plot drawn by Observable Plot from the data beside it, once it comes into view. Without this the drawing stays.
//
// The nearest value is told for a pointer and for the arrow keys by an element of the page: a tip within the drawing
// would be cut off by its ends, and could not be reached with a keyboard.
"use strict";
(() => {
  const NARROWEST = 280;
  const WIDEST = 800;
  const COLOURS = 8;
  // Height of a category, of the values of a plot without categories, and width of a letter.
  const ROW = 24;
  const HEIGHT = 300;
  const LETTER = 7;
  // Further away, a value is not meant.
  const REACH = 40;
  const RADIUS = 3.5;

  const element = (name, className, text) => {
    const made = document.createElement(name);
    made.className = className;
    made.textContent = text ?? "";
    return made;
  };

  const colour = (index) => `var(--c${index % COLOURS})`;
  // Series beyond the colours have dashes, as in the drawing without scripts.
  const dashes = (index) => (index < COLOURS ? undefined : `${2 + 3 * (Math.floor(index / COLOURS) % 4)} 3`);
  const cut = (text, letters) => (text.length > letters ? `${text.slice(0, Math.max(letters - 1, 1))}…` : text);

  class Interactive {
    constructor(figure) {
      this.data = JSON.parse(figure.querySelector("script").textContent);
      this.conditions = figure.querySelector("figcaption").textContent;
      this.hidden = new Set();
      this.chosen = -1;
      const drawing = figure.querySelector(".drawing");
      this.holder = element("div", "interactive plot");
      this.holder.tabIndex = 0;
      this.holder.setAttribute("role", "group");
      this.holder.setAttribute("aria-label", `${drawing.getAttribute("aria-label")}. Arrow keys tell one value after the other.`);
      this.canvas = element("div", "canvas");
      this.tip = element("div", "tip");
      this.tip.setAttribute("role", "status");
      this.tip.hidden = true;
      this.holder.append(this.canvas, this.tip);
      drawing.before(this.holder);
      this.legend(drawing);
      this.width = this.fitting();
      this.draw();
      drawing.hidden = true;
      this.listen();
    }

    fitting() {
      return Math.max(NARROWEST, Math.min(WIDEST, this.holder.clientWidth));
    }

    // A button for each series: whether it is shown.
    legend(before) {
      const list = element("div", "legend plot");
      this.data.series.forEach((series, index) => {
        const hue = series.colour ?? index;
        const item = element("button", "");
        item.type = "button";
        item.setAttribute("aria-pressed", "true");
        const swatch = element("span", "swatch");
        swatch.style.borderTop = `3px ${dashes(hue) ? "dashed" : "solid"} ${colour(hue)}`;
        item.append(swatch, series.name);
        item.addEventListener("click", () => {
          if (!this.hidden.delete(index)) this.hidden.add(index);
          item.setAttribute("aria-pressed", String(!this.hidden.has(index)));
          this.draw();
        });
        list.append(item);
      });
      before.before(list);
    }

    // The values that are shown, each with its colour; bars of a category follow one another.
    points() {
      const { data, hidden } = this;
      const ends = new Map();
      const points = [];
      data.series.forEach((series, order) => {
        if (hidden.has(order)) return;
        const index = series.colour ?? order;
        for (const [x, y, label, low, high, invalid] of series.marks) {
          const point = { x, y, label, invalid, index, colour: colour(index) };
          if (low != null && high != null) Object.assign(point, { low, high });
          if (data.form === "bars") {
            point.from = ends.get(y) ?? 0;
            point.x = point.from + x;
            ends.set(y, point.x);
          }
          points.push(point);
        }
      });
      return points;
    }

    // An axis of names keeps indices as values: two methods may have the same name.
    scale(axis, isVertical) {
      if (axis.names) {
        const type = this.data.form === "bars" && isVertical ? "band" : "point";
        return { type, domain: axis.names.map((_, index) => index), padding: type === "band" ? 0.35 : 0.5, label: null };
      }
      return { type: axis.scale, domain: [axis.low, axis.high], label: null };
    }

    // Ticks as text that has room: of many, each second or third one.
    ticks(axis, room) {
      const all = axis.names ? axis.names.map((name, index) => [index, name]) : axis.ticks;
      const widest = Math.max(1, ...all.map(([, text]) => cut(text, 24).length)) * LETTER + 10;
      const step = room === undefined ? 1 : Math.max(1, Math.ceil((all.length * widest) / room));
      return new Map(all.filter((_, index) => index % step === 0));
    }

    marks(points, ticks, letters) {
      const { data } = this;
      const isByName = data.y.names !== undefined;
      const plain = (pick) => ({ value: pick, scale: null });
      const withRange = points.filter((point) => point.low !== undefined);
      const stroke = plain((point) => point.colour);
      const marks = [
        Plot.gridX([...ticks.x.keys()], { stroke: "var(--grid)", strokeOpacity: 1 }),
        Plot.gridY([...ticks.y.keys()], { stroke: "var(--grid)", strokeOpacity: 1 }),
        Plot.rectX(data.bands, { x1: "0", x2: "1", fill: "var(--band)", insetLeft: -0.5, insetRight: -0.5, className: "band" }),
        Plot.axisX([...ticks.x.keys()], { tickFormat: (value) => cut(ticks.x.get(value) ?? "", 24), tickSize: 0, label: null }),
        Plot.axisY([...ticks.y.keys()], { tickFormat: (value) => cut(ticks.y.get(value) ?? "", letters), tickSize: 0, label: null }),
      ];
      if (data.form === "bars") {
        return [...marks, Plot.barX(points, { x1: "from", x2: "x", y: "y", fill: stroke, insetRight: -0.5, className: "marks" })];
      }
      if (data.form === "lines") {
        for (const [index, own] of d3.group(points, (point) => point.index)) {
          marks.push(Plot.line(own, { x: "x", y: "y", stroke: colour(index), strokeDasharray: dashes(index), strokeWidth: 1.5 }));
        }
      }
      const range = { stroke, strokeWidth: 1.5, marker: "tick" };
      marks.push(
        isByName
          ? Plot.ruleY(withRange, { y: "y", x1: "low", x2: "high", ...range })
          : Plot.ruleX(withRange, { x: "x", y1: "low", y2: "high", ...range }),
        Plot.dot(points, {
          x: "x",
          y: "y",
          r: RADIUS,
          stroke,
          fill: plain((point) => (point.invalid ? "var(--paper)" : point.colour)),
          className: "marks",
        }),
      );
      return marks;
    }

    draw() {
      const { data, width } = this;
      const points = this.points();
      const names = data.y.names ?? data.y.ticks.map(([, text]) => text);
      const longest = Math.max(0, ...names.map((name) => name.length));
      const letters = Math.max(6, Math.min(longest, 44, Math.floor((width * 0.42) / LETTER)));
      const [marginLeft, marginRight] = [letters * LETTER + 16, 24];
      const ticks = { x: this.ticks(data.x, width - marginLeft - marginRight), y: this.ticks(data.y) };
      const svg = Plot.plot({
        width,
        height: (data.y.names ? data.y.names.length * ROW + 8 : HEIGHT) + 48,
        marginLeft,
        marginRight,
        marginTop: 24,
        marginBottom: 24,
        style: { fontSize: "12px", background: "none", overflow: "visible" },
        x: this.scale(data.x, false),
        y: this.scale(data.y, true),
        marks: this.marks(points, ticks, letters),
      });
      svg.setAttribute("aria-hidden", "true");
      const above = data.y.names ? [] : [element("p", "axis", data.y.label)];
      this.canvas.replaceChildren(...above, svg, element("p", "axis below", data.x.label));
      this.svg = svg;
      this.place(points, svg);
      this.choose(-1);
    }

    // Where each value is: from the left and the top of the drawing.
    place(points, svg) {
      const [x, y] = [svg.scale("x"), svg.scale("y")];
      const at = (scale, value) => scale.apply(value) + (scale.bandwidth ?? 0) / 2;
      this.placed = points.map((point) => ({
        ...point,
        left: point.from === undefined ? at(x, point.x) : x.apply(point.from),
        right: at(x, point.x),
        top: at(y, point.y),
        half: point.from === undefined ? 0 : y.bandwidth / 2,
      }));
    }

    // The value under the pointer, or the nearest one.
    nearest(left, top) {
      let [best, least] = [-1, REACH];
      this.placed.forEach((point, index) => {
        const across = Math.max(point.left - left, left - point.right, 0);
        const down = Math.max(Math.abs(point.top - top) - point.half, 0);
        const distance = Math.hypot(across, down);
        if (distance < least) [best, least] = [index, distance];
      });
      return best;
    }

    choose(index) {
      this.chosen = index;
      this.svg.querySelector(".chosen")?.remove();
      this.tip.hidden = index < 0;
      if (index < 0) return;
      const point = this.placed[index];
      const middle = (point.left + point.right) / 2;
      const ring = document.createElementNS("http://www.w3.org/2000/svg", "circle");
      for (const [name, value] of [["cx", middle], ["cy", point.top], ["r", RADIUS + 3], ["class", "chosen"]]) {
        ring.setAttribute(name, value);
      }
      this.svg.append(ring);
      const lines = [element("strong", "", point.label), element("span", "weak", this.conditions)];
      if (point.invalid) lines.splice(1, 0, element("span", "bad", `invalid: ${point.invalid}`));
      this.tip.replaceChildren(...lines);
      const across = middle - this.tip.offsetWidth / 2;
      this.tip.style.left = `${Math.max(0, Math.min(across, this.holder.clientWidth - this.tip.offsetWidth))}px`;
      const above = this.svg.getBoundingClientRect().top - this.holder.getBoundingClientRect().top;
      this.tip.style.top = `${above + point.top + 12}px`;
    }

    listen() {
      this.canvas.addEventListener("pointermove", (event) => {
        const box = this.svg.getBoundingClientRect();
        const zoom = this.width / box.width;
        const index = this.nearest((event.clientX - box.left) * zoom, (event.clientY - box.top) * zoom);
        if (index !== this.chosen) this.choose(index);
      });
      this.canvas.addEventListener("pointerleave", () => this.choose(-1));
      this.holder.addEventListener("blur", () => this.choose(-1));
      this.holder.addEventListener("keydown", (event) => {
        const last = this.placed.length - 1;
        const next = {
          ArrowRight: Math.min(this.chosen + 1, last),
          ArrowDown: Math.min(this.chosen + 1, last),
          ArrowLeft: Math.max(this.chosen - 1, 0),
          ArrowUp: Math.max(this.chosen - 1, 0),
          Home: 0,
          End: last,
          Escape: -1,
        }[event.key];
        if (next === undefined || last < 0) return;
        event.preventDefault();
        this.choose(next);
      });
      new ResizeObserver(() => {
        const width = this.fitting();
        if (Math.abs(width - this.width) < 4 || this.holder.clientWidth === 0) return;
        this.width = width;
        this.draw();
      }).observe(this.holder);
    }
  }

  const observer = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        if (!isIntersecting) continue;
        observer.unobserve(target);
        new Interactive(target);
      }
    },
    { rootMargin: "300px" },
  );
  document.querySelectorAll("figure").forEach((figure) => observer.observe(figure));
})();


"use strict";
// Adds what paper cannot do: tables that sort and filter, a timeline that zooms. The page is complete without it.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const make = (tag, properties, parent) => {
    const element = Object.assign(document.createElement(tag), properties);
    if (parent) parent.append(element);
    return element;
  };

  // The first number of a cell, in the unit of its column; nothing for a dash.
  const scales = { "ns": 1e-3, "µs": 1, "ms": 1e3, "s": 1e6 };
  const number = (text) => {
    const found = /([+-]?)(<?)([\d,]*\.?\d+)\s*(ns|µs|ms|s)?(?![\w/])/.exec(text.trim());
    if (!found) return null;
    const size = Number(found[3].replaceAll(",", "")) * (scales[found[4]] ?? 1) * (found[2] ? 0.5 : 1);
    return found[1] === "-" ? -size : size;
  };

  for (const table of all("table.sheet")) {
    const body = table.tBodies[0];
    if (!body || body.rows.length < 2) continue;
    const rows = [...body.rows];
    const headings = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
    headings.forEach((heading, column) => {
      const numeric = heading.classList.contains("n");
      const values = rows.map((row) => {
        const text = row.cells[column].textContent;
        return numeric ? number(text) : text;
      });
      const button = make("button", { type: "button", textContent: heading.textContent });
      heading.replaceChildren(button);
      button.addEventListener("click", () => {
        // Numbers begin with the largest; a third click brings the order of the report back.
        const orders = numeric ? ["descending", "ascending", null] : ["ascending", "descending", null];
        const now = heading.getAttribute("aria-sort");
        const order = orders[(orders.indexOf(now) + 1) % 3];
        headings.forEach((other) => other.removeAttribute("aria-sort"));
        if (order) heading.setAttribute("aria-sort", order);
        const sign = order === "ascending" ? 1 : -1;
        const places = rows.map((_, at) => at);
        if (order) {
          places.sort((x, y) => {
            const [a, b] = [values[x], values[y]];
            if (a === null || b === null) return (a === null) - (b === null) || x - y;
            const compared = numeric ? a - b : a.localeCompare(b, "en", { numeric: true });
            return sign * compared || x - y;
          });
        }
        body.append(...places.map((at) => rows[at]));
      });
    });
    if (rows.length < 8) continue;
    const texts = rows.map((row) => {
      const titles = all("[title]", row).map((cell) => cell.title);
      return [row.textContent, ...titles].join("\n").toLowerCase();
    });
    const bar = make("div", { className: "filter" });
    const name = "Filter " + (table.parentElement.getAttribute("aria-label") || "rows");
    const input = make("input", { type: "search", placeholder: "Filter rows", ariaLabel: name }, bar);
    const shown = make("output", { textContent: rows.length + " rows" }, bar);
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let count = 0;
      rows.forEach((row, at) => {
        row.hidden = !words.every((word) => texts[at].includes(word));
        count += !row.hidden;
      });
      shown.textContent = words.length ? count + " of " + rows.length + " rows" : rows.length + " rows";
    });
    table.parentElement.before(bar);
  }

  const figure = document.getElementById("timeline");
  if (figure) {
    const data = JSON.parse(document.getElementById("trace-attr-timeline").textContent);
    const paths = all("path", figure);
    const axis = figure.querySelector(".axis");
    const whole = [...axis.childNodes];
    const mark = axis.querySelector("text");
    // Spans with their start and end, ns since the first submission.
    const lanes = data.lanes.map((lane) => {
      let at = 0;
      const spans = lane.spans.map(([gap, length, busy]) => {
        const start = at + gap;
        at = start + length;
        return [start, at, busy / length];
      });
      return { ...lane, spans, end: at };
    });
    let [from, to] = [0, data.length_ns];

    const draw = () => {
      const width = (to - from) / data.columns;
      const busy = lanes.map((lane, nth) => {
        const shares = new Float64Array(data.columns);
        let sum = 0;
        // The first span that reaches into the part that is shown.
        let [low, high] = [0, lane.spans.length];
        while (low < high) {
          const middle = (low + high) >> 1;
          if (lane.spans[middle][1] <= from) low = middle + 1; else high = middle;
        }
        for (let at = low; at < lane.spans.length && lane.spans[at][0] < to; at++) {
          const [start, end, share] = lane.spans[at];
          const [left, right] = [Math.max(start, from), Math.min(end, to)];
          sum += (right - left) * share;
          const last = Math.min(data.columns - 1, Math.floor((right - from) / width));
          for (let column = Math.floor((left - from) / width); column <= last; column++) {
            const inside = Math.min(right, from + (column + 1) * width) - Math.max(left, from + column * width);
            shares[column] += Math.max(0, inside) / width * share;
          }
        }
        let path = "M0 40";
        let before = "";
        shares.forEach((share, column) => {
          const y = (40 * (1 - Math.min(1, share))).toFixed(1);
          if (y !== before) path += "H" + column + "V" + y;
          before = y;
        });
        paths[nth].setAttribute("d", path + "H" + data.columns + "V40Z");
        // What lies behind a trial's end is no idle time of it.
        const seen = Math.min(to, lane.end) - from;
        return seen > 0 ? sum / seen : null;
      });
      const isWhole = from === 0 && to === data.length_ns;
      if (isWhole) {
        axis.replaceChildren(...whole);
      } else {
        axis.replaceChildren();
        for (let nth = 0; nth <= 4; nth++) {
          const text = mark.cloneNode();
          text.setAttribute("x", nth * 25 + "%");
          text.setAttribute("y", "17");
          text.setAttribute("text-anchor", ["start", "middle", "middle", "middle", "end"][nth]);
          text.textContent = ms(from + (to - from) * nth / 4);
          axis.append(text);
        }
      }
      const sides = lanes.map((lane, nth) => [lane, busy[nth]]).filter(([lane]) => lane.channel === null);
      const shares = sides.map(([lane, share]) => {
        const text = share === null ? "ended" : "busy " + (100 * share).toFixed(1) + " %";
        return lane.side.toUpperCase() + " " + text;
      });
      readout.textContent = (isWhole ? "all" : ms(from) + " to " + ms(to)) + ": " + shares.join(", ");
    };
    const ms = (ns) => (ns / 1e6).toFixed(3) + " ms";
    const show = (start, length) => {
      length = Math.min(data.length_ns, Math.max(1000, length));
      from = Math.min(Math.max(0, start), data.length_ns - length);
      to = from + length;
      draw();
    };
    const zoom = (factor, middle = (from + to) / 2) => {
      const length = (to - from) * factor;
      show(middle - (middle - from) * factor, length);
    };
    const pan = (part) => show(from + part * (to - from), to - from);
    const reset = () => show(0, data.length_ns);

    const bar = make("div", { className: "zoom" });
    const actions = [
      ["+", "Zoom in", () => zoom(0.5)],
      ["−", "Zoom out", () => zoom(2)],
      ["←", "Earlier", () => pan(-0.25)],
      ["→", "Later", () => pan(0.25)],
      ["all", "Show all", reset],
    ];
    for (const [text, name, action] of actions) {
      const button = make("button", { type: "button", textContent: text, title: name, ariaLabel: name }, bar);
      button.addEventListener("click", action);
    }
    const readout = make("output", {}, bar);
    const keys = { "+": 0, "=": 0, "-": 1, "ArrowLeft": 2, "ArrowRight": 3, "0": 4, "Home": 4 };
    const stage = figure.querySelector(".lanes");
    stage.after(bar);
    stage.tabIndex = 0;
    stage.setAttribute("role", "group");
    stage.setAttribute("aria-label", "Timeline: + and − zoom, arrow keys move, 0 shows all");
    figure.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in keys)) return;
      event.preventDefault();
      actions[keys[event.key]][2]();
    });
    // Dragging over a stretch shows it.
    const place = (event) => {
      const box = event.currentTarget.getBoundingClientRect();
      return from + (to - from) * (event.clientX - box.left) / box.width;
    };
    for (const lane of all(".lane", figure)) {
      let begun = null;
      lane.addEventListener("pointerdown", (event) => {
        begun = place(event);
        lane.setPointerCapture(event.pointerId);
      });
      lane.addEventListener("pointerup", (event) => {
        const ended = place(event);
        if (begun !== null && Math.abs(ended - begun) > (to - from) / 100) {
          show(Math.min(begun, ended), Math.abs(ended - begun));
        }
        begun = null;
      });
      lane.addEventListener("dblclick", reset);
      lane.addEventListener("wheel", (event) => {
        // Without a key the wheel scrolls the page.
        if (!event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        zoom(event.deltaY < 0 ? 0.8 : 1.25, place(event));
      }, { passive: false });
    }
    draw();
  }

  // Paper shows what is closed.
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = all("details:not([open])");
    closed.forEach((details) => { details.open = true; });
  });
  addEventListener("afterprint", () => closed.forEach((details) => { details.open = false; }));
})();

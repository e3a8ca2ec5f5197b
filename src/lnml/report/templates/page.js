"use strict";
// Everything on the page can be read without this: it adds tips, marks of equal rows, sorting,
// files of tables, and words where a table can be scrolled.
(() => {
  const all = (what, where = document) => [...where.querySelectorAll(what)];
  const make = (tag, of, text) => {
    const made = document.createElement(tag);
    made.className = of;
    made.textContent = text;
    return made;
  };

  // Tips: the titles of marks in pictures, at once, and on touch, too.
  const tip = make("div", "tooltip", "");
  tip.hidden = true;
  document.body.append(tip);
  for (const title of all("svg title")) {
    title.parentNode.dataset.tip = title.textContent;
    title.remove();
  }
  const text = mark => {
    if (!mark.classList.contains("long")) return mark.dataset.tip;
    const whole = document.getElementById(mark.hash.slice(1)).textContent;
    return whole.length > 400 ? whole.slice(0, 400) + "…" : whole;
  };
  const showTip = mark => {
    tip.textContent = text(mark);
    tip.hidden = false;
    const at = mark.getBoundingClientRect(), own = tip.getBoundingClientRect();
    const wide = document.documentElement.clientWidth;
    const left = Math.min(at.left + at.width / 2 - own.width / 2, wide - own.width - 6);
    const above = at.top - own.height - 8;
    tip.style.left = Math.max(6, left) + "px";
    tip.style.top = (above < 4 ? at.bottom + 8 : above) + "px";
  };

  // Rows: what shows the same row of the data is marked in all pictures and tables of its part.
  const halo = use => {
    const ring = document.createElementNS("http://www.w3.org/2000/svg", "circle");
    for (const [key, value] of Object.entries({
      class: "halo", cx: use.getAttribute("x"), cy: use.getAttribute("y"), r: 7,
    })) ring.setAttribute(key, value);
    use.after(ring);
  };
  const clear = () => {
    tip.hidden = true;
    all(".halo").forEach(ring => ring.remove());
    all(".lit").forEach(row => row.classList.remove("lit"));
  };
  const light = mark => {
    const part = mark.closest(".rows");
    if (!part) return;
    for (const same of all(`[data-row="${mark.dataset.row}"]`, part))
      same.localName === "use" ? halo(same) : same.classList.add("lit");
  };
  const point = event => {
    clear();
    const said = event.target.closest("[data-tip], a.long"), row = event.target.closest("[data-row]");
    if (row) light(row);
    if (said) showTip(said);
  };
  for (const kind of ["pointerover", "focusin"]) document.addEventListener(kind, point);
  document.addEventListener("keydown", event => { if (event.key === "Escape") clear(); });
  addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });

  // Tables: a button in each head sorts the first body.
  const value = cell => {
    const given = cell.dataset.value ?? cell.textContent.trim();
    return given === "" || isNaN(given) ? given : Number(given);
  };
  const compare = (a, b) =>
    typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1;
  const sort = (table, head) => {
    const down = head.getAttribute("aria-sort") === "ascending";
    all("th[aria-sort]", table).forEach(other => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const body = table.tBodies[0], at = head.cellIndex;
    const rows = [...body.rows].map(row => [value(row.cells[at]), row]);
    rows.sort((a, b) => (down ? -1 : 1) * compare(a[0], b[0]));
    rows.forEach(([, row]) => body.append(row));
  };
  for (const table of all("table.sortable"))
    for (const head of all("thead th", table)) {
      const button = make("button", "sort", "");
      button.type = "button";
      button.append(...head.childNodes);
      button.addEventListener("click", () => sort(table, head));
      head.append(button);
    }

  // Files: a table as it stands, with full names and all digits.
  const written = cell => {
    const copy = cell.cloneNode(true);
    for (const long of all("a.long", copy))
      long.replaceWith(document.getElementById(long.hash.slice(1)).textContent);
    for (const next of all("ul, li + li", copy)) next.before(next.localName === "ul" ? " " : "; ");
    return copy.textContent.trim().replace(/\s+/g, " ");
  };
  const field = cell => {
    const given = cell.dataset.saved ?? cell.dataset.value ?? written(cell);
    // A spreadsheet would compute a name that begins like a formula.
    const shown = /^[=+@-]/.test(given) && isNaN(given) ? `'${given}` : given;
    return /[",\n]/.test(shown) ? `"${shown.replaceAll('"', '""')}"` : shown;
  };
  const save = table => {
    const lines = [...table.rows].map(row => [...row.cells].map(field).join(","));
    const link = make("a", "", "");
    link.href = URL.createObjectURL(new Blob([lines.join("\r\n") + "\r\n"], { type: "text/csv" }));
    link.download = table.dataset.file + ".csv";
    link.click();
    URL.revokeObjectURL(link.href);
  };
  for (const table of all("table[data-file]")) {
    const button = make("button", "save", "Save as CSV");
    button.type = "button";
    button.setAttribute("aria-label", `Save as CSV: ${table.dataset.file}`);
    button.addEventListener("click", () => save(table));
    table.closest(".scroll").nextElementSibling.after(button);
  }

  // Hints: said only where there is something to scroll.
  const hint = () => {
    for (const box of all(".scroll"))
      box.classList.toggle("cut", box.scrollWidth > box.clientWidth + 1);
  };
  addEventListener("resize", hint);
  hint();
})();

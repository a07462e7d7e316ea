// Weights as shades of one colour: the legend, the table of weights, and bars.

/** The shade from which text is set in the colour for dark ground. */
const STRONG = 0.58;

/** The greatest of many weights; never 0, so that one can divide by it. */
function greatestOf(weights) {
  return weights.reduce((greatest, weight) => Math.max(greatest, weight), 1e-9);
}

/** A strip of all shades, from 0 to the greatest weight. */
function legend(greatest, text) {
  return html(
    "div",
    { class: "legend", "aria-hidden": "true" },
    html("span", {}, "0"),
    html("span", { class: "strip" }),
    html("span", { class: "greatest" }, shown(greatest, 3)),
    html("span", { class: "quiet" }, text),
  );
}

/** A bar of a share from 0 to 1, for eyes only: the number stands beside it. */
function bar(share) {
  const width = Math.max(0, Math.min(1, share));
  return html("span", { class: "bar", "aria-hidden": "true", "--share": width.toFixed(3) });
}

/** A table of names with their values as bars; ``rows`` are {name, value, note, kind}. */
function bars(caption, heads, rows, greatest) {
  return html(
    "table",
    { class: "bars" },
    html("caption", {}, caption),
    html("thead", {}, html("tr", {}, heads.map((head) => html("th", { scope: "col" }, head)))),
    html(
      "tbody",
      {},
      rows.map((row) =>
        html(
          "tr",
          { class: row.kind ?? "" },
          html("th", { scope: "row" }, row.name),
          html("td", {}, bar(row.value / greatest), html("span", { class: "number" }, row.value.toFixed(3))),
          heads.length > 2 ? html("td", { class: "quiet" }, row.note ?? "") : null,
        ),
      ),
    ),
  );
}

/**
 * A table of weights. Options: ``caption``; ``rows``: names; ``groups``: {name, columns} where a column has a short
 * ``label`` and a ``speech``; ``value(row, column)``; ``read(row, column)``: the sentence about a cell;
 * ``onrow(row)``: called when the row of the chosen cell changes.
 *
 * Arrow keys, Home and End move from cell to cell; what the cell holds is read out above the table.
 */
function heatMap(options) {
  const { caption, rows, groups, value, read, onrow } = options;
  const columns = groups.flatMap((group) => group.columns);
  const starts = new Set();
  groups.reduce((start, group) => (starts.add(start), start + group.columns.length), 0);
  const values = rows.map((name, row) => columns.map((column, place) => value(row, place)));
  const greatest = greatestOf(values.map(greatestOf));
  const reading = html("output", { class: "reading", "aria-live": "polite" }, "Point at a cell, or walk with the arrow keys.");
  let current = null;

  const cells = [];
  const body = values.map((line, row) => {
    const most = greatestOf(line);
    cells.push(
      line.map((weight, column) =>
        html(
          "td",
          {
            class: [starts.has(column) ? "first" : "", weight / greatest > STRONG ? "strong" : "", weight / most > STRONG ? "strong-in-row" : ""].join(" "),
            "--weight": (weight / greatest).toFixed(3),
            "--weight-in-row": (weight / most).toFixed(3),
            tabindex: "-1",
          },
          String(Math.round(100 * weight)),
        ),
      ),
    );
    return html("tr", {}, html("th", { scope: "row" }, quoted(shortened(rows[row], 22))), cells[row]);
  });
  const table = html(
    "table",
    { class: "heat", role: "grid", "aria-readonly": "true", onkeydown: key, onmouseover: point, onfocusin: point, onclick: click },
    html("caption", {}, caption),
    html(
      "thead",
      {},
      groups.length > 1
        ? html(
            "tr",
            { class: "groups" },
            html("td", {}),
            groups.map((group) => html("th", { scope: "colgroup", colspan: group.columns.length, class: "first" }, group.name)),
          )
        : null,
      html(
        "tr",
        {},
        html("td", {}),
        columns.map((column, place) =>
          html(
            "th",
            { scope: "col", class: `${starts.has(place) ? "first" : ""} ${column.kind ?? ""}`, title: column.speech },
            html("span", { class: "turned" }, quoted(shortened(column.label, 24))),
          ),
        ),
      ),
    ),
    html("tbody", {}, body),
  );
  if (cells.length && columns.length) cells[0][0].setAttribute("tabindex", "0");
  const numbers = checkbox("Show values in percent", (on) => table.classList.toggle("with-numbers", on));
  const relative = checkbox("Shade each row by its own greatest weight", (on) => table.classList.toggle("by-row", on));
  return html(
    "div",
    { class: "heat-map" },
    html("div", { class: "tools" }, legend(greatest, "weight"), numbers, relative),
    reading,
    html("div", { class: "scroll tall" }, table),
  );

  function placeOf(target) {
    const cell = target.closest("td[tabindex]");
    if (!cell) return null;
    return { cell, column: cell.cellIndex - 1, row: cells.findIndex((line) => line[0].parentNode === cell.parentNode) };
  }

  function point(event) {
    const place = placeOf(event.target);
    if (place) reading.textContent = visible(read(place.row, place.column, values[place.row][place.column]));
  }

  function click(event) {
    const place = placeOf(event.target);
    const row = event.target.closest("tbody tr");
    if (place) go(place.row, place.column);
    else if (row) go(cells.findIndex((line) => line[0].parentNode === row), current?.column ?? 0);
  }

  function key(event) {
    const place = placeOf(event.target);
    if (!place) return;
    const row = moved(event, place.row, rows.length, ["ArrowUp"], ["ArrowDown"]);
    const column = moved(event, place.column, columns.length, ["ArrowLeft"], ["ArrowRight"]);
    const along = ["ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key);
    if (along ? column === null : row === null) return;
    event.preventDefault();
    go(along ? place.row : row, along ? column : place.column);
  }

  function go(row, column) {
    if (current) cells[current.row][current.column].setAttribute("tabindex", "-1");
    else cells[0][0].setAttribute("tabindex", "-1");
    const before = current?.row;
    current = { row, column };
    const cell = cells[row][column];
    cell.setAttribute("tabindex", "0");
    cell.focus();
    body.forEach((line, index) => line.classList.toggle("chosen", index === row));
    if (onrow && before !== row) onrow(row);
  }
}

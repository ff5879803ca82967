"use strict";
(() => {
  // Every number and every sentence comes from Python. This script shows them: it sets the parameters of the
  // charts, which say by themselves what follows, and picks sentences by the same parameters.
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const content = read("content"), specs = read("specs"), rows = read("rows");
  const $ = (id) => document.getElementById(id);
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const numbers = read("numbers");
  const C = numbers.classifiers || { classifier: [], reference: [] };
  const views = {}, calm = matchMedia("(prefers-reduced-motion: reduce)");
  const state = {}; // parameters of all charts, by name
  const parametersOf = (id) => (specs[id].params || []).filter((each) => "value" in each);
  for (const id of Object.keys(specs)) for (const each of parametersOf(id)) state[each.name] = each.value;

  const real = (x, digits) => // with a real minus sign and no negative zero
    x.toFixed(digits).replace(/^-(?=0(\.0*)?$)/, "").replace("-", "\u2212");
  const at = (x, digits = 1) => (x === null || x === undefined ? "–" : real(100 * x, digits)); // a fraction in percent

  // ---------------------------------------------------------------- sentences that follow a control

  function tell(id) {
    const reading = content.readings[id];
    if (!reading) return;
    let text = reading.texts;
    for (const name of reading.by)
      if (typeof text !== "string") text = text[state[name]] || reading.first || text[0];
    if (state.search && parametersOf(id).some((each) => each.name === "search")) {
      const matches = C.classifier.filter((name) => name.toLowerCase().includes(state.search));
      text += ` ${matches.length} of ${C.classifier.length} match the search.`;
    }
    $(`${id}-reading`).textContent = text;
  }

  // ---------------------------------------------------------------- drawing

  // Colours are names of CSS variables: an SVG follows the page, on paper too, a canvas takes them as they are.
  const coloured = (spec) =>
    JSON.parse(JSON.stringify(spec).replace(/"var\((--[a-z-]+)\)"/g, (_, name) => JSON.stringify(css(name))));
  const onCanvas = (id) => C.classifier.length > 500 && (id === "hero" || id === "drops");
  function rowsOf(id) { // of a chart's named data sets
    const text = JSON.stringify(specs[id]);
    return Object.fromEntries(Object.entries(rows).filter(([name]) => text.includes(`"data":{"name":${JSON.stringify(name)}}`)));
  }

  function specOf(id) { // sized for its place, with its rows and parameters as they stand
    const spec = structuredClone(specs[id]), room = $(id).clientWidth;
    if (spec.usermeta && spec.usermeta.square) {
      const most = matchMedia("print").matches ? 480 : Math.max(0.86 * innerHeight, 420);
      spec.width = spec.height = Math.max(Math.min(room, spec.usermeta.square, most) - 62, 180);
    }
    for (const each of spec.params || []) if ("value" in each) each.value = state[each.name];
    return { ...spec, datasets: structuredClone(rowsOf(id)) };
  }
  async function draw(id) {
    if (!$(id)) return;
    const canvas = onCanvas(id), spec = specOf(id);
    const look = { ...content.config, axisY: { labelLimit: Math.max(0.36 * $(id).clientWidth, 60) } };
    const result = await vegaEmbed($(id), canvas ? coloured(spec) : spec, {
      actions: false, config: canvas ? coloured(look) : look, renderer: canvas ? "canvas" : "svg",
      tooltip: () => {}, logLevel: 1,
    });
    if (views[id]) views[id].finalize();
    views[id] = result.view;
    tell(id);
    touched(id);
  }

  async function set(values) {
    Object.assign(state, values);
    for (const [id, view] of Object.entries(views)) {
      const mine = parametersOf(id).filter((each) => each.name in values);
      if (!mine.length) continue;
      for (const { name } of mine) view.signal(name, state[name]);
      tell(id);
      await view.runAsync();
    }
  }

  async function drawAll() { for (const id of Object.keys(specs)) await draw(id); }

  // ---------------------------------------------------------------- the nearest point, by mouse and by touch

  const REACH = 36; // pixels
  function marksOf(view) { // every mark, and where its group begins
    const marks = [];
    const walk = (item, x, y) => {
      for (const mark of item.items || [])
        for (const each of mark.items || [])
          if (mark.marktype === "group") walk(each, x + (each.x || 0), y + (each.y || 0));
          else marks.push({ each, x, y });
    };
    walk({ items: [view.scenegraph().root] }, ...view.origin());
    return marks;
  }
  function nearest(view, x, y) {
    let best = null, least = REACH;
    for (const { each, x: left, y: top } of marksOf(view)) {
      if (!each.tooltip || !each.bounds) continue;
      const { x1, x2, y1, y2 } = each.bounds;
      const point = { x: left + (x1 + x2) / 2, y: top + (y1 + y2) / 2, tooltip: each.tooltip, datum: each.datum };
      const away = Math.hypot(Math.max(Math.abs(point.x - x) - (x2 - x1) / 2, 0), Math.max(Math.abs(point.y - y) - (y2 - y1) / 2, 0));
      if (away < least) [best, least] = [point, away];
    }
    return best;
  }
  const tip = $("tip");
  function showTip(point, box) {
    const rows = Object.entries(point.tooltip);
    const first = document.createElement("b");
    first.textContent = rows[0][1];
    tip.replaceChildren(first);
    for (const [title, text] of rows.slice(1)) {
      if (text === "–" || text === "null" || text === "NaN") continue;
      const line = document.createElement("div");
      line.textContent = `${title}: ${text}`;
      tip.append(line);
    }
    tip.hidden = false;
    const right = document.documentElement.clientWidth - tip.offsetWidth - 6;
    const left = box.left + point.x + 12, above = box.top + point.y - tip.offsetHeight - 12;
    tip.style.left = `${scrollX + Math.max(Math.min(left, right), 6)}px`;
    tip.style.top = `${scrollY + (above > 4 ? above : box.top + point.y + 14)}px`;
  }
  function touched(id) {
    const drawn = $(id).querySelector("svg, canvas"), view = views[id];
    const at = (event) => {
      const box = drawn.getBoundingClientRect();
      return [nearest(view, event.clientX - box.left, event.clientY - box.top), box];
    };
    drawn.addEventListener("pointermove", (event) => {
      const [point, box] = at(event);
      if (point) showTip(point, box); else tip.hidden = true;
    });
    drawn.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") tip.hidden = true; });
    drawn.addEventListener("click", (event) => {
      const [point, box] = at(event);
      if (!point) { tip.hidden = true; return; }
      showTip(point, box);
      if (point.datum && point.datum.classifier !== undefined) choose(C.classifier.indexOf(point.datum.classifier));
    });
  }
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });

  // ---------------------------------------------------------------- one classifier, and a link to it

  const linkTo = (name) => "#" + (document.getElementById(name) ? "classifier:" : "") + encodeURIComponent(name);
  function choose(i, move = true) {
    if (i < 0 || i >= C.classifier.length) return;
    for (const field of document.querySelectorAll(".choose")) field.value = C.classifier[i];
    if ($("one")) {
      $("one").hidden = false;
      $("one-told").textContent = content.sentences[i];
      $("one-link").href = linkTo(C.classifier[i]);
    }
    if (move) try { history.replaceState(null, "", linkTo(C.classifier[i])); } catch { /* where a frame forbids it */ }
    set({ chosen: i });
    fillTable();
  }
  function linked() {
    let name;
    try { name = decodeURIComponent(location.hash.slice(1)); } catch { return; }
    if (document.getElementById(name)) return;
    const i = C.classifier.indexOf(name.replace(/^classifier:/, ""));
    if (i < 0) return;
    choose(i, false);
    if ($("accuracies")) $("accuracies").scrollIntoView();
  }

  // ---------------------------------------------------------------- from measured to adjusted

  async function play() {
    const button = $("hero-play");
    button.disabled = true;
    await set({ stage: 0 });
    await new Promise((done) => setTimeout(done, 900));
    if (!calm.matches) {
      const begin = performance.now(), lasts = 1500;
      for (let t = 0; t < 1; t = (performance.now() - begin) / lasts) {
        await set({ stage: Math.min(t * t * (3 - 2 * t), 0.999) });
        await new Promise(requestAnimationFrame);
      }
    }
    await set({ stage: 1 });
    button.disabled = false;
    button.focus();
  }

  // ---------------------------------------------------------------- table of all classifiers

  let order = { name: content.own || "reference", down: true };
  function tableRows() {
    const search = $("table-search") ? $("table-search").value.toLowerCase() : "";
    const rows = C.classifier.map((classifier, i) => i).filter((i) => C.classifier[i].toLowerCase().includes(search));
    const key = C[order.name];
    const sign = order.down ? -1 : 1;
    return rows.sort((i, j) => {
      const a = key[i], b = key[j];
      if (a === null || b === null) return (a === null) - (b === null);
      return sign * (typeof a === "string" ? a.localeCompare(b) : a - b);
    });
  }
  const shown = (column, i) => {
    if (column.kind === "name") return C.classifier[i];
    const cell = C[column.name][i];
    if (cell === null || cell === undefined) return "–";
    if (column.kind === "percent") return at(cell);
    if (column.kind === "interval") {
      const other = C[column.upper][i];
      return other === null ? "–" : `${at(cell)} to ${at(other)}`;
    }
    return column.kind === "count" ? cell.toFixed(0) : cell.toFixed(3);
  };
  function drawing(name, attributes) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, text] of Object.entries(attributes)) node.setAttribute(key, text);
    return node;
  }
  function barsOf({ of, low, high }, i) { // measured, adjusted with its interval, and the truth if known
    const x = (share) => `${(100 * (share - low) / (high - low)).toFixed(2)}%`, svg = drawing("svg", { "aria-hidden": "true" });
    const lower = C[`${of}_lower`][i], upper = C[`${of}_upper`][i];
    if (lower !== null) svg.append(drawing("line", { x1: x(lower), x2: x(upper), y1: "50%", y2: "50%" }));
    svg.append(drawing("circle", { class: "ring", cx: x(C.replication[i]), cy: "50%", r: 3.5 }));
    if (C[of][i] !== null) svg.append(drawing("circle", { class: "dot", cx: x(C[of][i]), cy: "50%", r: 3.8 }));
    if (C.truth) svg.append(drawing("line", { class: "truth", x1: x(C.truth[i]), x2: x(C.truth[i]), y1: "15%", y2: "85%" }));
    return svg;
  }
  function fillTable() {
    const table = $("classifiers");
    if (!table) return;
    const all = $("all-methods") && $("all-methods").checked, columns = content.columns.filter((column) => all || !column.other);
    const head = document.createElement("tr");
    for (const column of columns) {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.className = column.other ? "other" : "";
      if (column.kind === "bars") {
        cell.className = "bars";
        cell.textContent = column.title;
        head.append(cell);
        continue;
      }
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = column.title;
      button.addEventListener("click", () => {
        order = { name: column.name, down: order.name === column.name ? !order.down : column.kind !== "name" };
        fillTable();
        [...table.tHead.querySelectorAll("button")].find((each) => each.textContent === column.title).focus();
      });
      if (order.name === column.name) cell.setAttribute("aria-sort", order.down ? "descending" : "ascending");
      cell.append(button);
      head.append(cell);
    }
    table.tHead.replaceChildren(head);
    const body = document.createDocumentFragment();
    for (const i of tableRows()) {
      const row = document.createElement("tr");
      if (i === state.chosen) row.className = "chosen";
      for (const column of columns) {
        const cell = document.createElement(column.kind === "name" ? "th" : "td");
        if (column.kind === "name") cell.scope = "row";
        cell.className = [column.kind === "name" || column.kind === "bars" ? column.kind : "", column.other ? "other" : ""].join(" ").trim();
        if (column.kind === "bars") cell.append(barsOf(column, i)); else cell.textContent = shown(column, i);
        if (column.kind === "name") cell.title = C.classifier[i];
        row.append(cell);
      }
      body.append(row);
    }
    table.tBodies[0].replaceChildren(body);
  }

  // ---------------------------------------------------------------- numbers behind a figure

  function csv(rows) {
    if (!rows.length) return "";
    const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
    const cell = (v) => {
      const text = v === null || v === undefined ? ""
        : String(typeof v === "number" ? Number(v.toPrecision(8)) : v);
      return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    return [names, ...rows.map((row) => names.map((name) => row[name]))].map((r) => r.map(cell).join(",")).join("\r\n") + "\r\n";
  }
  function rowsBehind(id) {
    if (id === "classifiers")
      return tableRows().map((i) => Object.fromEntries(Object.keys(C).map((name) => [name, C[name][i]])));
    const fields = content.downloads[id], unique = new Map();
    if (!fields) return Object.values(rowsOf(id)).flat();
    for (const { each: { datum } } of marksOf(views[id])) {
      if (!datum || !fields.some((name) => datum[name] !== undefined)) continue;
      const row = Object.fromEntries(fields.filter((name) => name in datum).map((name) => [name, datum[name]]));
      unique.set(JSON.stringify(row), row);
    }
    return [...unique.values()];
  }
  const download = (id) => save(new Blob([csv(rowsBehind(id))], { type: "text/csv" }), `${id}.csv`);
  function save(blob, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  // ---------------------------------------------------------------- copies

  function say(button, text) {
    const before = button.dataset.says || button.textContent;
    button.dataset.says = before;
    button.textContent = text;
    setTimeout(() => { button.textContent = before; }, 1600);
  }
  async function copySentence(button) {
    const node = $(button.dataset.copy), text = node.textContent;
    try {
      await navigator.clipboard.writeText(text);
      say(button, "Copied");
    } catch { // no clipboard for this page: the sentence is selected instead
      getSelection().selectAllChildren(node);
      say(button, "Selected: press Ctrl+C");
    }
  }
  async function pictureOf(id) { // as a PNG of twice the size, on paper of the page's colour
    const spec = coloured(specOf(id)), hidden = document.createElement("div");
    hidden.style.cssText = `position: absolute; left: -200rem; width: ${$(id).clientWidth}px`;
    document.body.append(hidden);
    const { view } = await vegaEmbed(hidden, spec, { actions: false, config: { ...coloured(content.config), background: css("--paper"), padding: 12 }, renderer: "canvas" });
    const canvas = await view.toCanvas(2);
    view.finalize();
    hidden.remove();
    return new Promise((done) => canvas.toBlob(done, "image/png"));
  }
  async function copyPicture(button) {
    const id = button.dataset.picture, picture = await pictureOf(id);
    try {
      await navigator.clipboard.write([new ClipboardItem({ "image/png": picture })]);
      say(button, "Copied");
    } catch { // no clipboard for pictures: it becomes a file
      save(picture, `${id}.png`);
      say(button, "Saved");
    }
  }

  // ---------------------------------------------------------------- controls

  function valueOf(control) { // a parameter's, as its chart takes it
    if (control.type === "range") return Number(control.value);
    return control.type === "search" ? control.value.toLowerCase() : control.value;
  }
  function showSlider() {
    if ($("annotators")) $("annotators").closest("label").hidden = state.method !== "naive";
  }
  for (const name of Object.keys(state)) {
    const control = $(name);
    if (!control || !control.matches("input, select")) continue;
    state[name] = valueOf(control);
    control.addEventListener("input", () => {
      if ($(name + "-value")) $(name + "-value").value = control.value;
      set({ [name]: valueOf(control) });
      showSlider();
    });
  }
  if ($("table-search")) $("table-search").addEventListener("input", fillTable);
  if ($("all-methods")) $("all-methods").addEventListener("input", fillTable);
  for (const field of document.querySelectorAll(".choose")) {
    for (const name of C.classifier) {
      const option = document.createElement("option");
      option.value = name;
      field.list.append(option);
    }
    field.addEventListener("input", () => {
      const i = C.classifier.indexOf(field.value);
      if (i >= 0) choose(i);
      else if (field.id === "curve-classifier") {
        tell("curve");
        $("curve-reading").prepend(`${content.unknown} `);
      }
    });
  }
  for (const button of document.querySelectorAll("[data-csv]"))
    button.addEventListener("click", () => download(button.dataset.csv));
  for (const button of document.querySelectorAll("[data-picture]"))
    button.addEventListener("click", () => copyPicture(button));
  for (const button of document.querySelectorAll("[data-copy]"))
    button.addEventListener("click", () => copySentence(button));
  if ($("hero-play")) $("hero-play").addEventListener("click", play);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  let room = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === room) return;
    room = innerWidth;
    draw("hero");
  });
  addEventListener("hashchange", linked);
  const PAPER = 660; // pixels of A4 and of Letter between their margins
  const fitted = (width) => {
    for (const [id, view] of Object.entries(views))
      if (!(specs[id].usermeta && specs[id].usermeta.square)) view.width(width($(id))).run();
  };
  addEventListener("beforeprint", () =>
    fitted((chart) => (chart.closest(".pair") && chart.closest(".pair").children.length > 1 ? PAPER / 2 - 8 : PAPER)));
  addEventListener("afterprint", () => fitted((chart) => chart.clientWidth));

  showSlider();
  fillTable();
  drawAll().then(() => {
    linked();
    document.documentElement.dataset.ready = "true";
  });
})();

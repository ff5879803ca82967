"use strict";
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const content = read("content"), specs = read("specs");
  const $ = (id) => document.getElementById(id);
  const value = (id, otherwise) => ($(id) ? $(id).value : otherwise);
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const C = content.classifiers || { classifier: [], reference: [] };
  const views = {};

  // ---------------------------------------------------------------- what each figure shows
  // Rows that no control changes are in the page as they are, under their figure's name.

  function line(x, y) {
    const n = x.length, mx = x.reduce((a, b) => a + b, 0) / n, my = y.reduce((a, b) => a + b, 0) / n;
    let sxx = 0, sxy = 0;
    for (let i = 0; i < n; i++) { sxx += (x[i] - mx) ** 2; sxy += (x[i] - mx) * (y[i] - my); }
    const slope = sxx > 0 ? sxy / sxx : NaN;
    return { slope, intercept: my - slope * mx };
  }

  function logGamma(z) { // Lanczos; Numerical Recipes' coefficients
    const g = [76.18009172947146, -86.50532032941677, 24.01409824083091, -1.231739572450155,
      0.1208650973866179e-2, -0.5395239384953e-5];
    let x = z, t = z + 5.5;
    t -= (z + 0.5) * Math.log(t);
    let s = 1.000000000190015;
    for (const c of g) s += c / ++x;
    return -t + Math.log(2.5066282746310005 * s / z);
  }
  const logBeta = (a, b) => logGamma(a) + logGamma(b) - logGamma(a + b);

  // Equation 1: p_2(s) = sum over k of P_1(k) p_candidates(s | k of n), all betas.
  function toy(a, b, n) {
    const rows = [], size = 201, mix = new Float64Array(size);
    const s = Array.from({ length: size }, (_, i) => Math.min(Math.max(i / (size - 1), 0.0025), 0.9975));
    const pdf = (x, p, q) => Math.exp((p - 1) * Math.log(x) + (q - 1) * Math.log(1 - x) - logBeta(p, q));
    let mean = 0;
    for (let k = 0; k <= n; k++) {
      const choose = -Math.log(n + 1) - logBeta(k + 1, n - k + 1);
      const mass = Math.exp(choose + logBeta(a + 1 + k, b + n - k) - logBeta(a + 1, b));
      mean += mass * (a + k) / (a + b + n);
      const scale = logBeta(a + k, b + n - k);
      for (let i = 0; i < size; i++)
        mix[i] += mass * Math.exp((a + k - 1) * Math.log(s[i]) + (b + n - k - 1) * Math.log(1 - s[i]) - scale);
    }
    for (let i = 0; i < size; i++) {
      rows.push({ s: 100 * s[i], density: pdf(s[i], a + 1, b), which: "reference" });
      rows.push({ s: 100 * s[i], density: pdf(s[i], a, b), which: "candidates" });
      rows.push({ s: 100 * s[i], density: mix[i], which: "replication" });
    }
    return { rows, reference: (a + 1) / (a + 1 + b), replication: mean };
  }

  // What matching on n noisy counts leaves of two populations, on a grid that is closer at its ends.
  const NODES = Array.from({ length: 400 }, (_, i) => {
    const edge = (j) => Math.sin(0.5 * Math.PI * j / 400) ** 2;
    return { s: (edge(i) + edge(i + 1)) / 2, width: edge(i + 1) - edge(i) };
  });
  function betaMasses(mean, concentration) {
    const a = mean * concentration, b = (1 - mean) * concentration, scale = logBeta(a, b);
    const masses = NODES.map(({ s, width }) =>
      width * Math.exp((a - 1) * Math.log(s) + (b - 1) * Math.log1p(-s) - scale));
    const total = masses.reduce((x, y) => x + y, 0);
    return masses.map((mass) => mass / total);
  }
  const meanOf = (masses) => masses.reduce((sum, mass, i) => sum + mass * NODES[i].s, 0);
  function matched(reference, pool, n, bins, careless) {
    if (n === 0) return pool;
    const heard = NODES.map(({ s }) => (1 - careless) * s + careless / 2);
    const kept = new Float64Array(NODES.length), says = [];
    const wanted = new Map(), there = new Map();
    for (let k = 0; k <= n; k++) {
      const choose = -Math.log(n + 1) - logBeta(k + 1, n - k + 1);
      says.push(heard.map((p) => Math.exp(choose + k * Math.log(p) + (n - k) * Math.log1p(-p))));
      const bin = bins ? Math.min(Math.floor(bins * k / n), bins - 1) : k;
      let first = 0, second = 0;
      says[k].forEach((chance, i) => { first += chance * reference[i]; second += chance * pool[i]; });
      wanted.set(bin, (wanted.get(bin) || 0) + first);
      there.set(bin, (there.get(bin) || 0) + second);
    }
    for (let k = 0; k <= n; k++) {
      const bin = bins ? Math.min(Math.floor(bins * k / n), bins - 1) : k;
      const rate = there.get(bin) > 1e-300 ? wanted.get(bin) / there.get(bin) : 0;
      says[k].forEach((chance, i) => { kept[i] += pool[i] * chance * rate; });
    }
    return Array.from(kept);
  }
  function labInputs() {
    const number = (id) => Number(value(id, 0));
    return {
      reference: betaMasses(number("lab-reference") / 100, number("lab-reference-spread")),
      pool: betaMasses(number("lab-pool") / 100, number("lab-pool-spread")),
      n: number("lab-answers"), bins: value("lab-method") === "published" ? 5 : 0,
      careless: number("lab-careless") / 100,
      low: number("lab-low") / 100, high: number("lab-high") / 100,
    };
  }

  const rowsOf = {
    lab: () => {
      const { reference, pool, n, bins, careless, low, high } = labInputs();
      const chosen = matched(reference, pool, n, bins, careless), data = [];
      for (const [which, masses] of [["reference", reference], ["candidates", pool], ["replication", chosen]])
        NODES.forEach(({ s, width }, i) => {
          if (i % 2 === 0) data.push({ s: 100 * s, density: masses[i] / width, which });
        });
      const means = [reference, pool, chosen].map(meanOf), gap = means[0] - means[2];
      const heard = (mean) => 100 * ((1 - careless) * mean + careless / 2);
      $("lab-reading").textContent =
        `Matched on ${n} answer${n === 1 ? "" : "s"} an image, the replication's mean selection frequency is ` +
        `${(100 * means[2]).toFixed(2)} %, the reference's ${(100 * means[0]).toFixed(2)} %, the candidates' ` +
        `${(100 * means[1]).toFixed(2)} %: ${(100 * gap).toFixed(2)} points are left. Asked again, people would ` +
        `select ${heard(means[2]).toFixed(2)} % of it and ${heard(means[0]).toFixed(2)} % of the reference. A ` +
        `classifier that does not see the difference loses ${(100 * (high - low) * gap).toFixed(2)} points of accuracy.`;
      return { data };
    },
    "lab-gap": () => {
      const { reference, pool, careless, n } = labInputs(), data = [], wanted = meanOf(reference);
      const numbers = [...new Set([0, 1, 2, 3, 4, 5, 7, 10, 14, 20, 28, 40, 60, 80, 100, n])].sort((a, b) => a - b);
      for (const [which, bins] of [["every count", 0], ["five bins", 5]])
        for (const answers of numbers)
          data.push({ answers, which, now: answers === n,
            gap: 100 * (wanted - meanOf(matched(reference, pool, answers, bins, careless))) });
      $("lab-gap-reading").textContent =
        "What is left of the gap in selection frequency falls as one over the answers, and slower with coarse bins.";
      return { data };
    },
    scatter: () => {
      const method = value("method", "raw"), search = value("search", "").toLowerCase();
      const n = Number(value("annotators", 0));
      const y = method === "naive" ? content.naive[n] : method === "raw" ? C.replication : C[method];
      const lower = method === "raw" || (method === "naive" && n !== content.naive.length - 1)
        ? null : C[method + "_lower"];
      const upper = lower && C[method + "_upper"];
      const points = C.classifier.map((classifier, i) => ({
        classifier, reference: 100 * C.reference[i], accuracy: 100 * y[i],
        lower: lower && lower[i] !== null ? 100 * lower[i] : null,
        upper: upper && upper[i] !== null ? 100 * upper[i] : null,
        found: search !== "" && classifier.toLowerCase().includes(search),
      }));
      const low = Math.min(...C.reference), high = Math.max(...C.reference);
      const pad = 0.03 * Math.max(high - low, 0.01);
      const fit = line(C.reference, y), across = [low - pad, high + pad];
      const lines = across.map((x) => ({ x: 100 * x, y: 100 * x, which: "no drop" }));
      if (Number.isFinite(fit.slope)) {
        for (const x of [low, high])
          lines.push({ x: 100 * x, y: 100 * (fit.intercept + fit.slope * x), which: "fitted line" });
      }
      const gap = C.reference.reduce((t, r, i) => t + r - y[i], 0) / y.length;
      const shown = points.filter((p) => p.found).length;
      $("scatter-reading").textContent = `${content.labels[method]}: on average ${(100 * gap).toFixed(2)} points ` +
        `below the reference` + (Number.isFinite(fit.slope) ? `, slope ${fit.slope.toFixed(2)}` : "") + "." +
        (search ? ` ${shown} of ${points.length} classifiers match the search.` : "");
      return { data: points, lines };
    },
    image: () => {
      const k = Number(value("selected", 0)), n = content.image.annotators;
      const rows = [], means = {};
      for (const [role, table] of Object.entries(content.image.densities)) {
        let total = 0, mean = 0;
        table[k].forEach((density, i) => {
          rows.push({ s: i, density, which: role });
          total += density; mean += density * i;
        });
        means[role] = mean / total;
      }
      const told = Object.entries(means).map(([r, m]) => `${m.toFixed(1)} % if it is one of the ${r}`);
      $("image-reading").textContent = `An image that ${k} of ${n} annotators selected ` +
        `(${(100 * k / n).toFixed(0)} %) has a true selection frequency of about ${told.join(", ")}.`;
      return { data: rows };
    },
    toy: () => {
      const a = Number(value("alpha", 2)), b = Number(value("beta", 2)), n = Number(value("toy-annotators", 10));
      const found = toy(a, b, n);
      $("toy-reading").textContent = `Matched by ${n} annotators, the replication's mean selection frequency is ` +
        `${(100 * found.replication).toFixed(1)} %, the reference's ${(100 * found.reference).toFixed(1)} %: ` +
        `${(100 * (found.reference - found.replication)).toFixed(1)} points are lost to noise.`;
      return { data: found.rows };
    },
    curve: () => {
      const wanted = value("curve-classifier", C.classifier[0]);
      const i = Math.max(C.classifier.indexOf(wanted), 0), curves = content.curves;
      const data = curves.mean[i].map((mean, j) => ({
        s: 100 * j / (curves.mean[i].length - 1), mean: 100 * mean,
        lower: 100 * curves.lower[i][j], upper: 100 * curves.upper[i][j],
      }));
      const cells = curves.frequency.map((f, j) => ({
        frequency: 100 * f, images: curves.images[j], right: curves.right[i][j],
        accuracy: 100 * curves.right[i][j] / curves.images[j],
      }));
      const found = C.classifier.indexOf(wanted) >= 0;
      $("curve-reading").textContent = (found ? "" : `No classifier is called so; this is ${C.classifier[i]}. `) +
        `${C.classifier[i]} is right on ${data[Math.round(0.5 * (data.length - 1))].mean.toFixed(0)} % of the ` +
        `replication's images that half of all annotators would select, and on ` +
        `${data[data.length - 1].mean.toFixed(0)} % of those that all would.`;
      return { data, cells };
    },
  };

  const shownBy = (id) => (rowsOf[id] ? rowsOf[id]() : { data: content[id] });

  // ---------------------------------------------------------------- drawing

  function config() {
    const ink = css("--ink"), soft = css("--soft"), grid = css("--line");
    return {
      background: null, font: "system-ui, sans-serif",
      axis: { labelColor: soft, titleColor: ink, gridColor: grid, domainColor: soft, tickColor: soft,
        labelFontSize: 12, titleFontSize: 13, titleFontWeight: "normal", gridOpacity: 0.6 },
      legend: { labelColor: ink, titleColor: ink, labelFontSize: 12, orient: "bottom", title: null,
        symbolOpacity: 1 },
      view: { stroke: null },
    };
  }

  // Colours are names of CSS variables in the specs, so that light and dark pages share them.
  function coloured(spec) {
    const text = JSON.stringify(spec).replace(/"var\((--[a-z-]+)\)"/g, (_, name) => JSON.stringify(css(name)));
    return JSON.parse(text);
  }

  async function draw(id) {
    if (!specs[id] || !$(id)) return;
    const spec = coloured(specs[id]), rows = shownBy(id);
    spec.datasets = rows;
    const result = await vegaEmbed($(id), spec, {
      actions: false, config: config(), renderer: C.classifier.length > 500 && id === "scatter" ? "canvas" : "svg",
    });
    if (views[id]) views[id].finalize();
    views[id] = result.view;
  }

  async function update(id) {
    const view = views[id];
    if (!view) return;
    for (const [name, rows] of Object.entries(shownBy(id))) view.data(name, rows);
    await view.runAsync();
  }

  async function drawAll() { for (const id of Object.keys(specs)) await draw(id); }

  // ---------------------------------------------------------------- table of all classifiers

  const columns = content.columns;
  let order = { name: "reference", down: true };
  function tableRows() {
    const search = value("table-search", "").toLowerCase();
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
    const at = C[column.name][i];
    if (at === null || at === undefined) return "–";
    if (column.kind === "percent") return (100 * at).toFixed(1);
    if (column.kind === "interval") {
      const other = C[column.other][i];
      return other === null ? "–" : `${(100 * at).toFixed(1)} to ${(100 * other).toFixed(1)}`;
    }
    return column.kind === "count" ? at.toFixed(0) : at.toFixed(3);
  };
  function fillTable() {
    const table = $("classifiers");
    if (!table) return;
    const head = document.createElement("tr");
    for (const column of columns) {
      const cell = document.createElement("th"), button = document.createElement("button");
      cell.scope = "col";
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
      for (const column of columns) {
        const cell = document.createElement("td");
        if (column.kind === "name") cell.className = "name";
        cell.textContent = shown(column, i);
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
  function numbers(id) {
    if (id === "classifiers")
      return tableRows().map((i) => Object.fromEntries(Object.keys(C).map((name) => [name, C[name][i]])));
    const { data, cells } = shownBy(id);
    return cells ? [...data, ...cells] : data.map(({ found, ...row }) => row);
  }
  function download(id) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([csv(numbers(id))], { type: "text/csv" }));
    link.download = `${id}.csv`;
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  // ---------------------------------------------------------------- controls

  const redraws = {
    method: "scatter", search: "scatter", annotators: "scatter", selected: "image", alpha: "toy", beta: "toy",
    "toy-annotators": "toy", "curve-classifier": "curve",
  };
  for (const name of ["reference", "reference-spread", "pool", "pool-spread", "answers", "method", "careless",
    "low", "high"]) redraws[`lab-${name}`] = ["lab", "lab-gap"];
  function showSlider() {
    const slider = $("annotators");
    if (slider) slider.closest("label").hidden = value("method") !== "naive";
  }
  for (const [control, figure] of Object.entries(redraws)) {
    if (!$(control)) continue;
    $(control).addEventListener("input", () => {
      if ($(control + "-value")) $(control + "-value").value = $(control).value;
      showSlider();
      for (const each of [figure].flat()) update(each);
    });
  }
  if ($("table-search")) $("table-search").addEventListener("input", fillTable);
  if ($("curve-classifier-list")) {
    for (const name of C.classifier) {
      const option = document.createElement("option");
      option.value = name;
      $("curve-classifier-list").append(option);
    }
  }
  for (const button of document.querySelectorAll("[data-csv]"))
    button.addEventListener("click", () => download(button.dataset.csv));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);

  showSlider();
  fillTable();
  drawAll().then(() => { document.documentElement.dataset.ready = "true"; });
})();

"use strict";
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const content = read("content"), specs = read("specs");
  const $ = (id) => document.getElementById(id);
  const value = (id, otherwise) => ($(id) ? $(id).value : otherwise);
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const numbers = read("numbers");
  const C = numbers.classifiers || { classifier: [], reference: [] };
  const opening = content.opening, ranks = numbers.ranks;
  const views = {}, calm = matchMedia("(prefers-reduced-motion: reduce)");
  let chosen = -1, stage = 1; // a classifier; how far the first figure is from measured to adjusted

  // ---------------------------------------------------------------- words

  const words = content.words || {}; // of ours, what the study says in their place
  const ours = new RegExp(`\\b(?:([Aa])n? )?(${Object.keys(words).join("|") || "(?!)"})\\b`, "gi");
  const inWords = (text) => text.replace(ours, (_, article, word) => {
    const other = words[word.toLowerCase()], big = word[0] !== word[0].toLowerCase();
    const said = big ? other[0].toUpperCase() + other.slice(1) : other;
    return article ? `${article}${/^[aeiou]/.test(other) ? "n" : ""} ${said}` : said;
  });
  const worded = (texts, ...values) => // a template in the study's words; what is put into it stays
    texts.map((text, i) => inWords(text) + (i < values.length ? values[i] : "")).join("");
  const real = (x, digits) => // with a real minus sign and no negative zero
    x.toFixed(digits).replace(/^-(?=0(\.0*)?$)/, "").replace("-", "\u2212");
  const at = (x, digits = 1) => (x === null || x === undefined ? "–" : real(100 * x, digits)); // a fraction in percent
  const interval = (value, low, high, digits = 1) =>
    at(value, digits) + (low === null || low === undefined ? "" : ` (${at(low, digits)} to ${at(high, digits)})`);
  const percent = (x) => (x === null || x === undefined ? null : 100 * x);
  const own = () => value("method", content.own);
  function adjustedOf(method) { // values and, where there are any, intervals
    if (method === "raw") return { y: C.replication, lower: null, upper: null };
    const n = Number(value("annotators", 0));
    if (method === "naive" && n !== content.naive.length - 1) return { y: content.naive[n], lower: null, upper: null };
    return { y: C[method], lower: C[`${method}_lower`], upper: C[`${method}_upper`] };
  }
  function tips(i, { y, lower, upper }) { // of a point, in the order of its titles
    const reference = C.reference[i], lost = reference - C.replication[i], moved = y[i] - C.replication[i];
    return {
      tip_0: C.classifier[i], tip_1: `${at(reference)} %`,
      tip_2: `${at(C.replication[i])} % on the replication`,
      tip_3: `${interval(y[i], lower && lower[i], upper && upper[i])} % at the same selection frequency`,
      tip_4: `${at(lost)} points lost: selection ${at(moved)}, remaining ${at(reference - y[i])}`,
      tip_5: ranks ? `${interval(ranks.rank[i] / 100, ranks.lower[i] / 100, ranks.upper[i] / 100, 0)}; as measured ${ranks.measured[i]}` : "–",
    };
  }
  function toldOf(i) {
    const method = content.own, all = adjustedOf(method), reference = C.reference[i];
    const lower = all.lower && all.lower[i], upper = all.upper && all.upper[i];
    const rank = ranks ? ` By it, it ranks ${ranks.rank[i].toFixed(0)} of ${C.classifier.length} ` +
      `(${ranks.lower[i].toFixed(0)} to ${ranks.upper[i].toFixed(0)}); as measured ${ranks.measured[i]}.` : "";
    return `${C.classifier[i]}: ${at(reference)} % on the reference, ${at(C.replication[i])} % on the replication as ` +
      `measured, ${interval(all.y[i], lower, upper)} % at the same selection frequency. Of ` +
      `${at(reference - C.replication[i])} points, ${at(all.y[i] - C.replication[i])} are selection and ` +
      `${lower === null ? at(reference - all.y[i]) : interval(reference - all.y[i], reference - upper, reference - lower)} remain.${rank}`;
  }
  const isFound = (i, search) => i === chosen || (search !== "" && C.classifier[i].toLowerCase().includes(search));
  const named = (points) => { const found = points.filter((p) => p.found); return found.length > 12 ? [] : found; };

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
  function toy(own, pool, n) {
    const rows = [], size = 201, mix = new Float64Array(size), [a, b] = pool;
    const s = Array.from({ length: size }, (_, i) => Math.min(Math.max(i / (size - 1), 0.0025), 0.9975));
    const pdf = (x, p, q) => Math.exp((p - 1) * Math.log(x) + (q - 1) * Math.log(1 - x) - logBeta(p, q));
    let mean = 0;
    for (let k = 0; k <= n; k++) {
      const choose = -Math.log(n + 1) - logBeta(k + 1, n - k + 1);
      const mass = Math.exp(choose + logBeta(own[0] + k, own[1] + n - k) - logBeta(...own));
      mean += mass * (a + k) / (a + b + n);
      const scale = logBeta(a + k, b + n - k);
      for (let i = 0; i < size; i++)
        mix[i] += mass * Math.exp((a + k - 1) * Math.log(s[i]) + (b + n - k - 1) * Math.log(1 - s[i]) - scale);
    }
    for (let i = 0; i < size; i++) {
      rows.push({ s: 100 * s[i], density: pdf(s[i], ...own), which: "reference" });
      rows.push({ s: 100 * s[i], density: pdf(s[i], a, b), which: "candidates" });
      rows.push({ s: 100 * s[i], density: mix[i], which: "replication" });
    }
    return { rows, reference: own[0] / (own[0] + own[1]), replication: mean };
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
        worded`Matched on ${n} answer${n === 1 ? "" : "s"} an image, the replication's mean selection frequency is ` +
        `${(100 * means[2]).toFixed(2)} %, the reference's ${(100 * means[0]).toFixed(2)} %, the candidates' ` +
        worded`${(100 * means[1]).toFixed(2)} %: ${at(gap, 2)} points are left. Asked again, people would ` +
        `select ${heard(means[2]).toFixed(2)} % of it and ${heard(means[0]).toFixed(2)} % of the reference. ` +
        worded`A classifier that does not see the difference loses ${at((high - low) * gap, 2)} points of accuracy.`;
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
    hero: () => {
      const search = value("search", "").toLowerCase(), method = opening.method, all = adjustedOf(method), t = stage;
      const { low, high } = opening, data = C.classifier.map((classifier, i) => {
        const measured = percent(C.replication[i]), adjusted = percent(all.y[i]);
        const still = t === 1 && all.lower && all.lower[i] !== null;
        return {
          classifier, reference: percent(C.reference[i]), measured, adjusted,
          place: measured + t * (adjusted - measured),
          lower: still ? percent(all.lower[i]) : null, upper: still ? percent(all.upper[i]) : null,
          truth: C.truth ? percent(C.truth[i]) : null, found: isFound(i, search), ...tips(i, all),
        };
      });
      const mean = percent(opening.mean), { selection, remaining } = opening;
      const level = mean - percent(remaining.value), bottom = level - percent(selection.value);
      const place = bottom + t * (level - bottom);
      const guides = [mean, place, bottom].map((y) => ({ low: low + 0.025 * (high - low), x: mean, y }));
      const bracket = [
        { from: place, to: mean, color: css("--soft") },
        { from: bottom, to: place, color: css("--posterior") },
      ];
      const parts = t < 1
        ? [{ y: (mean + bottom) / 2, text: `${at(selection.value + remaining.value)} points lost, as measured` }]
        : [
          { y: (mean + level) / 2, text: `${interval(remaining.value, remaining.lower, remaining.upper)} remain` },
          { y: (level + bottom) / 2, text: `${interval(selection.value, selection.lower, selection.upper)} selection` },
        ];
      const side = views.hero ? views.hero.height() : 400, least = 19 * (high - low) / side;
      if (parts.length > 1 && Math.abs(parts[0].y - parts[1].y) < least) { // not over each other
        const up = parts[0].y >= parts[1].y ? 1 : -1, middle = (parts[0].y + parts[1].y) / 2;
        parts[0].y = middle + up * least / 2;
        parts[1].y = middle - up * least / 2;
      }
      return { data, lines: [{ x: low, y: low }, { x: high, y: high }], corner: [{ x: high, y: high }], guides, bracket,
        told: parts, named: named(data) };
    },
    "answer-chart": () => ({
      data: content["answer-chart"], zero: [{ x: 0 }],
      truth: content.truth === null ? [] : [{ x: content.truth }],
    }),
    drops: () => {
      const method = own(), search = value("search", "").toLowerCase(), all = adjustedOf(method), { y, lower, upper } = all;
      const color = css(content.colors[method]);
      const points = C.classifier.map((classifier, i) => ({
        classifier, reference: percent(C.reference[i]), measured: percent(C.reference[i] - C.replication[i]),
        drop: percent(C.reference[i] - y[i]),
        lower: lower && lower[i] !== null ? percent(C.reference[i] - upper[i]) : null,
        upper: upper && upper[i] !== null ? percent(C.reference[i] - lower[i]) : null,
        truth: C.truth ? percent(C.reference[i] - C.truth[i]) : null,
        found: isFound(i, search), color, ...tips(i, all),
      }));
      const low = Math.min(...C.reference), high = Math.max(...C.reference), fit = line(C.reference, y);
      const lines = Number.isFinite(fit.slope)
        ? [low, high].map((x) => ({ x: 100 * x, y: 100 * (x - fit.intercept - fit.slope * x) })) : [];
      const gap = C.reference.reduce((t, r, i) => t + r - y[i], 0) / y.length;
      const shown = points.filter((p) => p.found).length;
      $("drops-reading").textContent = `${content.labels[method]}: ${y.length > 1 ? "on average " : ""}${at(gap, 2)} points ` +
        `below the reference` + (Number.isFinite(fit.slope) ? `; accuracies have slope ${real(fit.slope, 2)}` : "") + "." +
        (search ? ` ${shown} of ${points.length} match the search.` : "");
      return { data: points, lines, zero: [{ y: 0 }], named: named(points) };
    },
    ranking: () => {
      const { order, shown, mean, lower, upper, measured } = content.ranks, near = Math.max(order.indexOf(chosen), 0);
      const first = Math.min(Math.max(near - Math.floor(shown / 2), 0), order.length - shown);
      const data = order.slice(first, first + shown).map((i) => ({
        classifier: C.classifier[i], mean: mean[i], lower: lower[i], upper: upper[i], measured: measured[i],
        told: `${mean[i].toFixed(1)} (${lower[i].toFixed(0)} to ${upper[i].toFixed(0)})`, found: i === chosen,
      }));
      $("ranking-reading").textContent = `Ranks ${first + 1} to ${first + shown} of ${order.length} by mean rank` +
        (order.length > shown ? worded`; choose a classifier to see those around it.` : ".");
      return { data };
    },
    pairs: () => {
      const { neighbours, mean, lower, upper, probability } = content.pairs;
      const i = chosen < 0 ? content.ranks.order[0] : chosen;
      const data = neighbours[i].map((other, j) => ({
        classifier: C.classifier[other], mean: percent(mean[i][j]), lower: percent(lower[i][j]),
        upper: percent(upper[i][j]), probability: percent(probability[i][j]),
        told: interval(mean[i][j], lower[i][j], upper[i][j], 2),
      }));
      const apart = data.filter((row) => row.lower > 0 || row.upper < 0).length;
      $("pairs-reading").textContent = `${C.classifier[i]} against the ${data.length} of nearest rank: ` +
        `${apart} of them ${apart === 1 ? "is" : "are"} clearly better or worse.`;
      return { data, zero: [{ x: 0 }] };
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
      $("image-reading").textContent = worded`An image that ${k} of ${n} annotators selected ` +
        `(${(100 * k / n).toFixed(0)} %) has a true selection frequency of about ${told.join(", ")}.`;
      return { data: rows };
    },
    toy: () => {
      const number = (id, start) => Number(value(id, start)), n = number("toy-annotators", 10);
      const own = [number("own-alpha", 3), number("own-beta", 2)], pool = [number("alpha", 2), number("beta", 2)];
      const found = toy(own, pool, n), lost = 100 * (found.reference - found.replication);
      $("toy-reading").textContent = worded`Matched by ${n} annotators, the replication's mean selection frequency is ` +
        `${(100 * found.replication).toFixed(1)} %, the reference's ${(100 * found.reference).toFixed(1)} %: ` +
        `${at(Math.abs(lost) / 100)} points are ${lost < 0 ? "gained by" : "lost to"} noise.`;
      return { data: found.rows };
    },
    curve: () => {
      const wanted = value("curve-classifier", C.classifier[0]), curves = content.curves;
      const i = Math.max(C.classifier.indexOf(wanted), 0), expected = curves.expected;
      const data = curves.mean[i].map((mean, j) => ({
        s: 100 * j / (curves.mean[i].length - 1), mean: 100 * mean,
        lower: 100 * curves.lower[i][j], upper: 100 * curves.upper[i][j],
      }));
      const cells = curves.frequency.map((f, j) => ({
        frequency: 100 * f, images: curves.images[j], right: curves.right[i][j],
        accuracy: 100 * curves.right[i][j] / curves.images[j],
        low: expected ? 100 * expected.lower[i][j] : null, high: expected ? 100 * expected.upper[i][j] : null,
        told: expected ? interval(expected.mean[i][j], expected.lower[i][j], expected.upper[i][j]) : "–",
      }));
      const outside = cells.filter((c) => expected && (c.accuracy < c.low - 1e-6 || c.accuracy > c.high + 1e-6)).length;
      const found = C.classifier.indexOf(wanted) >= 0;
      $("curve-reading").textContent = (found ? "" : worded`No classifier is called so; this is ${C.classifier[i]}. `) +
        `${C.classifier[i]} is right on ${data[Math.round(0.5 * (data.length - 1))].mean.toFixed(0)} % of the ` +
        worded`replication's images that half of all annotators would select, and on ` +
        `${data[data.length - 1].mean.toFixed(0)} % of those that all would.` +
        (expected ? ` At ${outside} of ${cells.length} counts the ring is outside its bar; about one in twenty would be by chance.` : "");
      return { data, cells };
    },
  };

  const shownBy = (id) => (rowsOf[id] ? rowsOf[id]() : { data: content[id] });

  // ---------------------------------------------------------------- drawing

  function config() {
    const [ink, soft, grid] = ["var(--ink)", "var(--soft)", "var(--line)"];
    return {
      background: null, font: "system-ui, sans-serif",
      axis: { labelColor: soft, titleColor: ink, gridColor: grid, domainColor: soft, tickColor: soft,
        labelFontSize: 12, titleFontSize: 13, titleFontWeight: "normal", gridOpacity: 0.6, labelOverlap: "parity", labelSeparation: 4 },
      legend: { labelColor: ink, titleColor: ink, labelFontSize: 12, orient: "bottom", title: null,
        symbolOpacity: 1 },
      view: { stroke: null },
      mark: { aria: false }, // a figure is one picture with one label; its numbers are in tables
    };
  }

  // Colours are names of CSS variables: an SVG follows the page, on paper too, a canvas takes them as they are.
  const coloured = (spec) =>
    JSON.parse(JSON.stringify(spec).replace(/"var\((--[a-z-]+)\)"/g, (_, name) => JSON.stringify(css(name))));
  const onCanvas = (id) => C.classifier.length > 500 && (id === "hero" || id === "drops");

  function specOf(id) { // sized for its place
    const spec = structuredClone(specs[id]), room = $(id).clientWidth;
    if (spec.usermeta && spec.usermeta.square) {
      const most = matchMedia("print").matches ? 480 : Math.max(0.86 * innerHeight, 420);
      spec.width = spec.height = Math.max(Math.min(room, spec.usermeta.square, most) - 62, 180);
    }
    return spec;
  }
  async function draw(id) {
    if (!specs[id] || !$(id)) return;
    const canvas = onCanvas(id), spec = { ...specOf(id), datasets: shownBy(id) }, look = config();
    look.axisY = { labelLimit: Math.max(0.36 * $(id).clientWidth, 60) };
    const result = await vegaEmbed($(id), canvas ? coloured(spec) : spec, {
      actions: false, config: canvas ? coloured(look) : look, renderer: canvas ? "canvas" : "svg",
      tooltip: () => {}, logLevel: 1,
    });
    if (views[id]) views[id].finalize();
    views[id] = result.view;
    if (id === "hero") await update(id); // its words have their places by its height
    touched(id);
  }

  async function update(id) {
    const view = views[id];
    if (!view) return;
    for (const [name, rows] of Object.entries(shownBy(id))) view.data(name, rows);
    await view.runAsync();
  }

  async function drawAll() { for (const id of Object.keys(specs)) await draw(id); }

  // ---------------------------------------------------------------- the nearest point, by mouse and by touch

  const REACH = 36; // pixels
  function pointsOf(view) { // of every mark that says something: where, and what
    const found = [];
    const walk = (item, x, y) => {
      for (const mark of item.items || []) {
        for (const each of mark.items || []) {
          if (mark.marktype === "group") walk(each, x + (each.x || 0), y + (each.y || 0));
          else if (each.tooltip && each.bounds) {
            const { x1, x2, y1, y2 } = each.bounds;
            found.push({ x: x + (x1 + x2) / 2, y: y + (y1 + y2) / 2, wide: (x2 - x1) / 2, high: (y2 - y1) / 2, tooltip: each.tooltip });
          }
        }
      }
    };
    walk({ items: [view.scenegraph().root] }, ...view.origin());
    return found;
  }
  function nearest(view, x, y) {
    let best = null, least = REACH;
    for (const point of pointsOf(view)) {
      const away = Math.hypot(Math.max(Math.abs(point.x - x) - point.wide, 0), Math.max(Math.abs(point.y - y) - point.high, 0));
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
      const name = point.tooltip[inWords("classifier")] || point.tooltip["compared with"];
      if (name !== undefined && id !== "pairs") choose(C.classifier.indexOf(name));
    });
  }
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });

  // ---------------------------------------------------------------- one classifier, and a link to it

  const linkTo = (name) => "#" + (document.getElementById(name) ? "classifier:" : "") + encodeURIComponent(name);
  function choose(i, move = true) {
    if (i < 0 || i >= C.classifier.length) return;
    chosen = i;
    for (const field of document.querySelectorAll(".choose")) field.value = C.classifier[i];
    if ($("one")) {
      $("one").hidden = false;
      $("one-told").textContent = toldOf(i);
      $("one-link").href = linkTo(C.classifier[i]);
    }
    if (move) try { history.replaceState(null, "", linkTo(C.classifier[i])); } catch { /* where a frame forbids it */ }
    fillTable();
    for (const id of ["hero", "drops", "ranking", "pairs", "curve"]) update(id);
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
    const wait = (ms) => new Promise((done) => setTimeout(done, ms));
    stage = 0;
    await update("hero");
    await wait(900);
    if (!calm.matches) {
      const begin = performance.now(), lasts = 1500;
      for (let t = 0; t < 1; t = (performance.now() - begin) / lasts) {
        stage = Math.min(t * t * (3 - 2 * t), 0.999);
        await update("hero");
        await new Promise(requestAnimationFrame);
      }
    }
    stage = 1;
    await update("hero");
    button.disabled = false;
    button.focus();
  }

  // ---------------------------------------------------------------- table of all classifiers

  let order = { name: content.own || "reference", down: true };
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
      if (i === chosen) row.className = "chosen";
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
    const { data, cells } = shownBy(id), mine = /^(found|color|told|place|tip_.)$/;
    const rows = cells ? [...data, ...cells] : data;
    return rows.map((row) => Object.fromEntries(Object.entries(row).filter(([name]) => !mine.test(name))));
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
    const spec = coloured({ ...specOf(id), datasets: shownBy(id) }), hidden = document.createElement("div");
    hidden.style.cssText = `position: absolute; left: -200rem; width: ${$(id).clientWidth}px`;
    document.body.append(hidden);
    const { view } = await vegaEmbed(hidden, spec, { actions: false, config: { ...coloured(config()), background: css("--paper"), padding: 12 }, renderer: "canvas" });
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

  const redraws = {
    method: "drops", search: ["drops", "hero"], annotators: "drops", selected: "image", alpha: "toy", beta: "toy",
    "own-alpha": "toy", "own-beta": "toy", "toy-annotators": "toy",
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
  if ($("all-methods")) $("all-methods").addEventListener("input", fillTable);
  for (const field of document.querySelectorAll(".choose")) {
    for (const name of C.classifier) {
      const option = document.createElement("option");
      option.value = name;
      field.list.append(option);
    }
    field.addEventListener("input", () => {
      const i = C.classifier.indexOf(field.value);
      if (i >= 0) choose(i); else if (field.id === "curve-classifier") update("curve");
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

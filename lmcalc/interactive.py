"""A roofline as one HTML page that needs nothing else: hover for numbers, toggles for machines, models, phases and levels."""

import json

from .colours import COLOURS, DARK

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>lmcalc roofline</title>
<style>
:root { --ink: #1a1a1a; --paper: #fff; --faint: #ddd; }
body.dark { --ink: #e8e8e8; --paper: #16181d; --faint: #3a3f4a; }
body { margin: 1rem auto; max-width: 70rem; font: 15px/1.4 system-ui, sans-serif; color: var(--ink); background: var(--paper); }
h1 { font-size: 1.1rem; margin: 0 0 .3rem; }
#toggles { display: flex; flex-wrap: wrap; gap: .2rem 1.4rem; margin: .4rem 0; }
#toggles label { cursor: pointer; white-space: nowrap; }
svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--ink); font-size: 13px; }
svg.sample { width: 30px; height: 16px; display: inline-block; vertical-align: middle; }
.grid { stroke: var(--faint); }
.axis { stroke: var(--ink); fill: none; }
.mark { cursor: pointer; stroke-width: 2.2; }
.mark:focus, .mark.on { stroke: var(--ink); outline: none; }
#hover { position: absolute; pointer-events: none; display: none; padding: .5rem .7rem; border: 1px solid var(--faint);
  background: var(--paper); box-shadow: 0 2px 8px #0004; white-space: pre; font: 13px/1.45 ui-monospace, monospace; }
table { border-collapse: collapse; margin-top: 1rem; font-size: 13px; }
th, td { padding: .1rem .7rem .1rem 0; text-align: right; border-bottom: 1px solid var(--faint); }
th:first-child, td:first-child, th.text, td.text { text-align: left; }
tr.on td { font-weight: bold; }
#turns { font-size: 13px; }
</style>
</head>
<body>
<h1 id="title"></h1>
<div id="toggles"></div>
<svg id="plot" viewBox="0 0 960 600" role="img" aria-label="Roofline plot"></svg>
<div id="hover" role="status"></div>
<ul id="turns"></ul>
<table id="table"></table>
<script type="application/json" id="data">@DATA@</script>
<script>
"use strict";
const held = JSON.parse(document.getElementById("data").textContent);
const { data, title, sentences, colours } = held;
const id = name => document.getElementById(name);
const escape = text => String(text).replace(/[&<>"]/g, c => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
const names = key => [...new Set(data.points.map(point => point[key]))];
const groups = { machine: data.machines.map(m => m.id), model: names("model"), phase: names("phase"), show: ["vector", "other dtypes", "levels", "links"] };
const off = new Set(["show:other dtypes", "show:links"]);
const shown = (group, name) => !off.has(group + ":" + name);
let dark = matchMedia("(prefers-color-scheme: dark)").matches;

function si(number, unit) {
  if (number === null || number === undefined) return "not known";
  if (number === 0) return "0 " + unit;
  const steps = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"], [1e-12, "p"]];
  const [size, prefix] = steps.find(step => Math.abs(number) >= step[0]) || steps[steps.length - 1];
  return (number / size).toPrecision(3) + " " + prefix + unit;
}
const digits = number => number === null ? "" : number >= 1000 ? Math.round(number).toLocaleString("en") : number.toPrecision(3);

const points = data.points.map((point, at) => ({ ...point, at })).filter(point => point.intensity > 0);
const box = { left: 80, right: 940, top: 20, bottom: 540 };
const xs = points.map(p => p.intensity).concat(data.machines.filter(m => m.ridge).map(m => m.ridge));
const ys = points.map(p => p.reached_flop_per_s).concat(data.machines.flatMap(m => m.ceilings.map(c => c.flop_per_s)));
const range = [Math.min(...xs) / 4, Math.max(...xs) * 8, Math.min(...ys) / 3, Math.max(...ys) * 3];
const X = x => box.left + (Math.log(x / range[0]) / Math.log(range[1] / range[0])) * (box.right - box.left);
const Y = y => box.bottom - (Math.log(y / range[2]) / Math.log(range[3] / range[2])) * (box.bottom - box.top);
const dashes = ["", "9 4", "9 3 2 3", "3 3", "12 3 3 3 3 3"];
const shapes = [
  (x, y) => `M${x - 6},${y}a6,6 0 1,0 12,0a6,6 0 1,0 -12,0`, (x, y) => `M${x - 6},${y - 6}h12v12h-12z`,
  (x, y) => `M${x},${y - 7}l7,13h-14z`, (x, y) => `M${x},${y - 8}l8,8l-8,8l-8,-8z`, (x, y) => `M${x},${y + 7}l7,-13h-14z`,
  (x, y) => `M${x - 2},${y - 7}h4v5h5v4h-5v5h-4v-5h-5v-4h5z`];

function roofs(machine) {
  const found = [];
  for (const roof of machine.ceilings) {
    const used = roof.unit === "matrix" ? roof.flop_per_s === machine.peak_flop_per_s : roof.flop_per_s === machine.vector_flop_per_s;
    if (roof.unit === "vector" && !shown("show", "vector")) continue;
    if (!used && !shown("show", "other dtypes")) continue;
    const from = Math.max(range[0], roof.flop_per_s / machine.bandwidth);
    found.push({ x: [from, range[1]], y: [roof.flop_per_s, roof.flop_per_s], main: used && roof.unit === "matrix",
      text: `${machine.id} ${roof.dtypes.join(", ")}${roof.unit === "vector" ? " vector" : ""} ${si(roof.flop_per_s, "FLOP/s")}` });
  }
  const highest = Math.max(...found.map(roof => roof.y[0]), range[2]);
  for (const level of machine.levels) {
    const main = level.level === "device memory";
    if (!main && !shown("show", level.level.includes("link") ? "links" : "levels")) continue;
    const end = Math.min(range[1], highest / level.bytes_per_s);
    found.push({ x: [range[0], end], y: [range[0] * level.bytes_per_s, end * level.bytes_per_s], main, slope: true,
      text: `${machine.id} ${level.level} ${si(level.bytes_per_s, "B/s")}` });
  }
  return found;
}

function draw() {
  const palette = colours[dark ? 1 : 0], out = [];
  document.body.classList.toggle("dark", dark);
  for (let power = Math.ceil(Math.log10(range[0])); 10 ** power < range[1]; power++)
    out.push(`<line class="grid" x1="${X(10 ** power)}" x2="${X(10 ** power)}" y1="${box.top}" y2="${box.bottom}"/>`,
      `<text x="${X(10 ** power)}" y="${box.bottom + 18}" text-anchor="middle">${10 ** power}</text>`);
  for (let power = Math.ceil(Math.log10(range[2])); 10 ** power < range[3]; power++)
    out.push(`<line class="grid" x1="${box.left}" x2="${box.right}" y1="${Y(10 ** power)}" y2="${Y(10 ** power)}"/>`,
      `<text x="${box.left - 8}" y="${Y(10 ** power) + 4}" text-anchor="end">${si(10 ** power, "").replace(/[.]0+ /, " ")}</text>`);
  out.push(`<path class="axis" d="M${box.left},${box.top}V${box.bottom}H${box.right}"/>`,
    `<text x="${(box.left + box.right) / 2}" y="${box.bottom + 42}" text-anchor="middle">arithmetic intensity, FLOP/B</text>`,
    `<text transform="translate(18,${(box.top + box.bottom) / 2}) rotate(-90)" text-anchor="middle">FLOP/s</text>`,
    `<clipPath id="inside"><rect x="${box.left}" y="${box.top}" width="${box.right - box.left}" height="${box.bottom - box.top}"/></clipPath>`);
  let above = [];
  data.machines.forEach((machine, at) => {
    if (!shown("machine", machine.id)) return;
    const colour = palette[at % palette.length];
    for (const roof of roofs(machine)) {
      const [x0, x1, y0, y1] = [...roof.x.map(X), ...roof.y.map(Y)];
      out.push(`<line class="roof" clip-path="url(#inside)" x1="${x0}" x2="${x1}" y1="${y0}" y2="${y1}" stroke="${colour}" stroke-width="${roof.main ? 2.4 : 1.1}" stroke-dasharray="${dashes[at % dashes.length]}"/>`);
      if (roof.slope) continue;  // its numbers are in the hover
      let y = y1 - 5;
      while (above.some(other => Math.abs(other - y) < 14)) y -= 14;
      above.push(y);
      out.push(`<text x="${box.right}" y="${y}" text-anchor="end" style="fill:${colour}">${escape(roof.text)}</text>`);
    }
  });
  for (const point of points) {
    if (!shown("machine", point.hardware) || !shown("model", point.model) || !shown("phase", point.phase)) continue;
    const colour = palette[groups.machine.indexOf(point.hardware) % palette.length];
    const shape = shapes[groups.model.indexOf(point.model) % shapes.length](X(point.intensity), Y(point.reached_flop_per_s));
    out.push(`<path class="mark" tabindex="0" data-at="${point.at}" d="${shape}" stroke="${colour}" fill="${point.phase === "prefill" ? colour : "var(--paper)"}"/>`);
  }
  id("plot").innerHTML = out.join("");
  for (const sample of document.querySelectorAll("[data-sample]")) {
    const [group, name] = sample.dataset.sample.split(/:(.*)/), at = groups[group].indexOf(name);
    const inside = group === "machine" ? `<line x1="0" x2="30" y1="8" y2="8" stroke="${palette[at % palette.length]}" stroke-width="2.4" stroke-dasharray="${dashes[at % dashes.length]}"/>`
      : group === "model" ? `<path d="${shapes[at % shapes.length](15, 8)}" fill="var(--ink)"/>`
      : group === "phase" ? `<path d="${shapes[0](15, 8)}" stroke="var(--ink)" stroke-width="2" fill="${name === "prefill" ? "var(--ink)" : "var(--paper)"}"/>` : "";
    sample.innerHTML = inside && `<svg class="sample" viewBox="0 0 30 16">${inside}</svg>`;
  }
  for (const mark of document.querySelectorAll(".mark")) {
    mark.addEventListener("mouseenter", () => hover(mark));
    mark.addEventListener("focus", () => hover(mark));
    mark.addEventListener("mouseleave", leave);
    mark.addEventListener("blur", leave);
  }
}

function hover(mark) {
  leave();
  const point = data.points[mark.dataset.at], place = mark.getBoundingClientRect();
  const rows = [["FLOPs", si(point.flops, "FLOP")], ["bytes", si(point.bytes, "B")], ["intensity", digits(point.intensity) + " FLOP/B"],
    ["reaches", si(point.reached_flop_per_s, "FLOP/s")], ["contractions", si(point.contraction_s, "s")], ["other work", si(point.other_s, "s")],
    ["memory", si(point.memory_s, "s")], ["bound", si(point.bound_s, "s") + (point.bound_by ? " by " + point.bound_by : "")],
    ["to memory", digits(point.ridge_distance) + " (1 at the ridge)"]];
  id("hover").textContent = `${point.model} on ${point.hardware}\\n${point.phase} ${point.kernel || ""}${point.times > 1 ? " x " + point.times : ""}\\n` +
    rows.map(row => row[0].padEnd(14) + row[1]).join("\\n");
  id("hover").style.display = "block";
  const left = Math.min(place.right + scrollX + 8, scrollX + document.documentElement.clientWidth - id("hover").offsetWidth - 12);
  id("hover").style.left = Math.max(4, left) + "px";
  id("hover").style.top = Math.max(4, place.top + scrollY - id("hover").offsetHeight - 4) + "px";
  mark.classList.add("on");
  const row = document.querySelector(`tr[data-at="${mark.dataset.at}"]`);
  if (row) row.classList.add("on");
}

function leave() {
  id("hover").style.display = "none";
  document.querySelectorAll(".on").forEach(each => each.classList.remove("on"));
}

function toggles() {
  for (const [group, members] of Object.entries(groups))
    for (const name of members) {
      const key = group + ":" + name, label = document.createElement("label"), input = document.createElement("input");
      input.type = "checkbox";
      input.checked = !off.has(key);
      input.dataset.key = key;
      input.addEventListener("change", () => { input.checked ? off.delete(key) : off.add(key); draw(); });
      const sample = document.createElement("span");
      sample.dataset.sample = key;
      label.append(input, " ", sample, " " + name);
      id("toggles").append(label);
    }
  const label = document.createElement("label"), input = document.createElement("input");
  input.type = "checkbox";
  input.checked = dark;
  input.dataset.key = "dark";
  input.addEventListener("change", () => { dark = input.checked; draw(); });
  label.append(input, " dark");
  id("toggles").append(label);
}

id("title").textContent = title;
for (const sentence of sentences) { const item = document.createElement("li"); item.textContent = sentence; id("turns").append(item); }
id("table").innerHTML = "<tr><th class=text>model<th class=text>machine<th class=text>point<th>FLOPs<th>bytes<th>FLOP/B<th>FLOP/s<th>bound<th class=text>by<th>to memory</tr>" +
  data.points.map((p, at) => `<tr data-at="${at}"><td class=text>${escape(p.model)}<td class=text>${escape(p.hardware)}<td class=text>${escape(p.phase + " " + (p.kernel || ""))}` +
    `<td>${si(p.flops, "")}<td>${si(p.bytes, "B")}<td>${digits(p.intensity)}<td>${si(p.reached_flop_per_s, "")}<td>${si(p.bound_s, "s")}<td class=text>${escape(p.bound_by || "not known")}<td>${digits(p.ridge_distance)}</tr>`).join("");
toggles();
draw();
</script>
</body>
</html>
"""


def page(data):
    """The page of a roofline question (schema lmcalc.roofline/1)."""
    from .render.roofline import sentence, title

    held = {"data": data, "title": f"Roofline: {title(data)}", "sentences": [sentence(each) for each in data["turns"]],
            "colours": [COLOURS, DARK]}  # fmt: skip
    text = json.dumps(held, allow_nan=False).replace("<", "\\u003c")  # no tag can begin inside the script
    return PAGE.replace("@DATA@", text)

// Charts that zoom and show values under the pointer, runs that can be hidden, tables that sort.
// Without a script the page has the numbers of each chart in a table.
"use strict";
(() => {
const root = document.documentElement;
root.classList.add("scripted");

const hidden = new Set(); // numbers of runs
const charts = new Map(); // figure → its chart, once it has been seen

// ---- colours: those of the page, whatever its scheme is now

const colour = name => getComputedStyle(root).getPropertyValue(name).trim();
const ink = s => colour("--c" + s.colour);
const dashes = [[], [6, 3], [1.5, 3]];

// ---- numbers as people read them: three or four digits

const short = v => {
	if (v == null) return "–";
	const a = Math.abs(v);
	if (a !== 0 && (a >= 1e6 || a < 1e-3)) return v.toExponential(2).replace("e+", "e");
	return String(+v.toPrecision(a >= 1000 ? 5 : 4));
};

// ---- charts

// data are the series of a chart over one list of positions.
function data(spec) {
	let x;
	const tables = spec.series.map(s => {
		x = s.x || x;
		return [x, s.y];
	});
	// What an axis cannot show is a gap, or not there.
	const shown = (axis, v) => v == null || axis.log && v <= 0 ? null : v;
	for (const t of tables) {
		t[1] = t[1].map((v, i) => shown(spec.x, t[0][i]) == null ? null : shown(spec.y, v));
		if (spec.x.log && t[0].some(v => v <= 0)) {
			t[1] = t[1].filter((_, i) => t[0][i] > 0);
			t[0] = t[0].filter(v => v > 0);
		}
	}
	if (!tables.length) return [[0, spec.heat.at.at(-1)]];
	const longest = tables.find(t => t[0].length > 1 || tables.length === 1) || tables[0];
	return tables.every(t => t[0] === longest[0])
		? [longest[0], ...tables.map(t => t[1])]
		: uPlot.join(tables, tables.map(t => t.map(() => 2)));
}

// range is what an axis shows: all numbers, unless the chart fixes it. A little is left at the ends
// of an axis that begins at 0, and of a logarithmic one.
function range(axis, numbers) {
	const place = axis.log ? Math.log10 : v => v;
	let lo = Infinity, hi = -Infinity;
	for (const v of numbers) {
		if (v == null) continue;
		lo = Math.min(lo, place(v));
		hi = Math.max(hi, place(v));
	}
	if (axis.zero && !axis.log) {
		[lo, hi] = [Math.min(lo, 0), Math.max(hi, 0)];
		hi += (hi - lo) * 0.05;
	}
	if (axis.range) [lo, hi] = axis.range.map(place);
	let room = lo === hi ? Math.max(0.5, Math.abs(lo) / 20) : 0;
	if (axis.log && !axis.range) room ||= (hi - lo) * 0.04;
	[lo, hi] = [lo - room, hi + room];
	return axis.log ? [10 ** lo, 10 ** hi] : [lo, hi];
}

// ends are the ranges of both axes.
function ends(spec, [at, ...columns]) {
	const h = spec.heat, x = at.filter((_, i) => columns.some(c => c[i] != null));
	const y = [...columns, ...spec.series.map(s => s.high || [])].flat();
	if (h) {
		x.push(0, h.at.at(-1));
		y.push(h.from[0], h.from.at(-1) * halfOctave);
	}
	return {x: range(spec.x, x), y: range(spec.y, y)};
}

// axis is one of uPlot's.
function axis(of, across, size) {
	const a = {
		label: of.label, labelSize: 18, labelGap: 0, size, gap: 4, font: "12px system-ui, sans-serif",
		labelFont: "12.5px system-ui, sans-serif", stroke: () => colour("--muted"),
		grid: {stroke: () => colour("--grid"), width: 1}, ticks: {show: false},
	};
	if (across) a.space = 60;
	if (!of.ticks && !of.log) {
		a.values = (u, at) => at.map(short);
		return a;
	}
	const label = new Map(of.ticks?.map(t => [t.At, t.Label]));
	const place = of.log ? Math.log10 : v => v;
	let lower = new Set(); // ticks whose labels stand in the second line
	a.splits = (u, i, min, max) => {
		const from = place(min), span = place(max) - from;
		lower = new Set();
		if (!of.ticks) {
			// Decades, and what is round between them where there are few.
			const round = span > 2.5 ? [1] : span > 1.2 ? [1, 2, 5] : [1, 2, 3, 5, 7];
			const every = Math.ceil(span / 10), all = [];
			for (let e = Math.floor(from); e <= from + span; e += every || 1)
				all.push(...round.map(k => k * 10 ** e));
			return all.filter(v => v >= min && v <= max);
		}
		// Labels that touch stand in two lines, every second one below; what touches there is left out.
		const all = of.ticks.map(t => t.At).filter(v => v >= min && v <= max);
		if (!across) return all;
		const at = v => (place(v) - from) / span * (u.width - 80);
		const room = 8 + 6.5 * Math.max(0, ...all.map(v => label.get(v).length));
		const fit = rows => {
			const last = Array(rows).fill(-Infinity);
			let n = 0;
			return all.filter(v => {
				if (at(v) - last[n % rows] < room) return false;
				last[n++ % rows] = at(v);
				return true;
			});
		};
		const one = fit(1);
		if (one.length === all.length) return one;
		const two = fit(2);
		lower = new Set(two.filter((v, i) => i % 2));
		return two;
	};
	a.filter = (u, at) => at; // uPlot's own leaves out what is no power of ten
	a.values = (u, at) => at.map(v => (lower.has(v) ? "\n" : "") + (label.get(v) ?? short(v)));
	return a;
}

// Each row of a heat map is a half octave high.
const halfOctave = Math.SQRT2;

// heat paints cells. Their darkness is the logarithm of their count by the length of their column,
// compared with the largest: one request of a million still has a shade.
function heat(u, h) {
	const ctx = u.ctx;
	const length = i => h.at[i] - (i ? h.at[i - 1] : 0);
	const dark = (i, k) => length(i) > 0 ? Math.log1p(h.counts[i][k] / length(i)) : 0;
	const most = Math.max(...h.counts.map((rows, i) => Math.max(...rows.map((_, k) => dark(i, k)))));
	ctx.save();
	ctx.beginPath();
	ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
	ctx.clip();
	ctx.fillStyle = ink(h);
	h.at.forEach((end, i) => {
		const x0 = u.valToPos(i ? h.at[i - 1] : 0, "x", true), x1 = u.valToPos(end, "x", true);
		h.from.forEach((low, k) => {
			if (!h.counts[i][k]) return;
			const y0 = u.valToPos(low * halfOctave, "y", true), y1 = u.valToPos(low, "y", true);
			ctx.globalAlpha = Math.max(0.1, dark(i, k) / most);
			ctx.fillRect(x0, y0, x1 - x0, y1 - y0);
		});
	});
	ctx.restore();
}

// bands fill the range of the values that a point is the mean of.
function bands(u, spec) {
	const {ctx} = u, {left, top, width, height} = u.bbox;
	ctx.save();
	ctx.beginPath();
	ctx.rect(left, top, width, height);
	ctx.clip();
	ctx.globalAlpha = 0.18;
	let at;
	spec.series.forEach((s, i) => {
		at = s.x || at;
		ctx.fillStyle = ink(s);
		if (u.series[i + 1].show) s.high?.forEach((high, k) => {
			if (high == null) return;
			const [x0, x1] = [at[k], at[k + 1] ?? 2 * at[k] - at[k - 1]].map(x => u.valToPos(x, "x", true));
			const [y0, y1] = [high, s.low[k]].map(y => u.valToPos(y, "y", true));
			ctx.fillRect(x0, y0, x1 - x0, y1 - y0);
		});
	});
	ctx.restore();
}

const pointed = (u, h) => {
	const {left, top} = u.cursor;
	if (left < 0 || top == null || top < 0) return "";
	const x = u.posToVal(left, "x"), y = u.posToVal(top, "y");
	const i = h.at.findIndex(end => x < end), k = h.from.findLastIndex(low => y >= low);
	if (i < 0 || k < 0 || y >= h.from[k] * halfOctave) return "";
	return `${h.counts[i][k]} from ${short(h.from[k])} to ${short(h.from[k] * halfOctave)}`;
};

// numbered writes the numbers of the runs at their lines, each at another part of the axis.
function numbered(u, spec) {
	const ctx = u.ctx, n = spec.series.length;
	ctx.font = `bold ${11 * devicePixelRatio}px system-ui, sans-serif`;
	ctx.textAlign = "center";
	ctx.textBaseline = "middle";
	ctx.lineJoin = "round";
	ctx.lineWidth = 3 * devicePixelRatio;
	spec.series.forEach((s, i) => {
		if (!s.run || !u.series[i + 1].show) return;
		const [lo, hi] = u.series[0].idxs ?? [0, u.data[0].length - 1];
		const known = [];
		for (let k = lo; k <= hi; k++) if (u.data[i + 1][k] != null) known.push(k);
		if (known.length < 2) return;
		const k = known[Math.floor((2 * i + 1) * known.length / (2 * n))];
		const x = u.valToPos(u.data[0][k], "x", true), y = u.valToPos(u.data[i + 1][k], "y", true);
		ctx.strokeStyle = colour("--card");
		ctx.strokeText(s.run, x, y);
		ctx.fillStyle = ink(s);
		ctx.fillText(s.run, x, y);
	});
}

// marks are vertical lines with a text.
function marks(u, spec) {
	const ctx = u.ctx, {left, top, width, height} = u.bbox;
	ctx.font = `600 ${12 * devicePixelRatio}px system-ui, sans-serif`;
	ctx.textBaseline = "top";
	for (const m of spec.marks || []) {
		const x = u.valToPos(m.X, "x", true);
		if (x < left || x > left + width) continue;
		ctx.strokeStyle = colour("--muted");
		ctx.lineWidth = devicePixelRatio;
		ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
		ctx.beginPath();
		ctx.moveTo(x, top);
		ctx.lineTo(x, top + height);
		ctx.stroke();
		ctx.setLineDash([]);
		const end = x > left + width * 0.66;
		ctx.textAlign = end ? "right" : "left";
		ctx.fillStyle = colour("--ink");
		ctx.fillText(m.Text, x + (end ? -4 : 4) * devicePixelRatio, top + 2);
	}
}

// zoom shows a part of the axis from left to right, or all of it without one; of time in all charts
// that have it, also in those that are not made yet.
let time = [];
function zoom(fig, ...part) {
	const c = charts.get(fig);
	if (!c.spec.time) return c.show(...part);
	time = part;
	charts.forEach(o => o.spec.time && o.show(...part));
}

function build(fig) {
	const spec = JSON.parse(fig.querySelector("script").textContent);
	spec.series ??= []; // of a heat map of few requests
	const table = data(spec), whole = ends(spec, table);
	const host = document.createElement("div");
	host.className = "live";
	host.setAttribute("role", "img");
	host.setAttribute("aria-label", spec.title);
	const width = () => Math.max(200, fig.clientWidth - 20);
	const height = () => Math.round(Math.min(340, Math.max(230, width() * 0.6)));
	const [from, to] = whole.x;
	const cellText = document.createElement("p");
	cellText.className = "cell";
	const u = new uPlot({
		width: width(), height: height(), padding: [8, 12, 0, 0],
		scales: {
			x: {time: false, auto: false, distr: spec.x.log ? 3 : 1, range: (u, a, b) => [a, b]},
			y: {auto: false, distr: spec.y.log ? 3 : 1, range: (u, a, b) => [a, b]},
		},
		axes: [axis(spec.x, true, (u, labels) => labels?.some(l => l.includes("\n")) ? 42 : 28),
			axis(spec.y, false, 54)],
		series: [
			{label: spec.x.label, value: (u, v) => v == null ? "–" :
				spec.x.ticks?.find(t => t.At === v)?.Label ?? short(v)},
			...spec.series.map(s => ({
				label: (s.run ? s.run + " " : "") + s.name, stroke: () => ink(s), width: 1.8,
				dash: dashes[s.dash || 0], show: !hidden.has(s.run), scale: "y",
				value: (u, v) => short(v),
				points: {show: !!s.dots, size: 6, fill: () => ink(s)},
				paths: s.step ? uPlot.paths.stepped({align: 1}) : undefined,
			})),
		],
		cursor: {
			drag: {x: true, y: false, dist: 4}, points: {size: 7}, focus: {prox: 24},
			sync: spec.time ? {key: "time", filters: {pub: t => t.startsWith("mouse") &&
				t !== "mousedown" && t !== "mouseup", sub: () => true}} : undefined,
			bind: {dblclick: () => () => { zoom(fig); return null; }},
		},
		focus: {alpha: 0.35},
		legend: {live: true, markers: {width: 3,
			dash: (u, i) => ["solid", "dashed", "dotted"][spec.series[i - 1]?.dash || 0], stroke: (u, i) => ink(spec.series[i - 1]), fill: () => "transparent"}},
		hooks: {
			drawClear: [u => spec.heat ? heat(u, spec.heat) : bands(u, spec)],
			setCursor: [u => {
				host.classList.toggle("pointed", u.cursor.idx != null);
				if (spec.heat) cellText.textContent = pointed(u, spec.heat);
			}],
			draw: [u => {
				marks(u, spec);
				numbered(u, spec);
			}],
			setSelect: [u => {
				if (u.select.width < 4) return;
				zoom(fig, u.posToVal(u.select.left, "x"),
					u.posToVal(u.select.left + u.select.width, "x"));
				u.setSelect({left: 0, top: 0, width: 0, height: 0}, false);
			}],
		},
	}, table, host);
	const tools = document.createElement("div");
	tools.className = "tools";
	const button = (text, what, act) => {
		const b = document.createElement("button");
		b.type = "button";
		b.textContent = text;
		b.title = what;
		b.setAttribute("aria-label", what);
		b.addEventListener("click", act);
		tools.append(b);
	};
	// Keys and fingers cannot drag: half and double of what is shown, around its middle.
	const by = f => () => {
		const {min, max} = u.scales.x, log = spec.x.log;
		const [a, b] = log ? [Math.log(min), Math.log(max)] : [min, max];
		const middle = (a + b) / 2, half = (b - a) / 2 * f;
		const [lo, hi] = [middle - half, middle + half].map(v => log ? Math.exp(v) : v);
		zoom(fig, Math.max(lo, from), Math.min(hi, to));
	};
	button("+", "zoom in", by(0.5));
	button("−", "zoom out", by(2));
	button("all", "whole range", () => zoom(fig));
	fig.append(tools, host);
	if (spec.heat) host.append(cellText);
	fig.classList.add("drawn");
	const c = {
		spec, u,
		show(min = from, max = to) {
			fig.classList.toggle("zoomed", min > from || max < to);
			u.setScale("x", {min, max});
		},
		resize() { u.setSize({width: width(), height: height()}); },
		runs() {
			u.batch(() => spec.series.forEach((s, i) =>
				s.run && u.setSeries(i + 1, {show: !hidden.has(s.run)})));
		},
	};
	charts.set(fig, c);
	u.batch(() => {
		c.show(...(spec.time ? time : []));
		u.setScale("y", {min: whole.y[0], max: whole.y[1]});
	});
	return c;
}

// Charts outside of the window are made when they come near: a report of twenty benchmarks has two hundred. The end of
// this script makes the others, so that a picture of the page at its load has them.
const near = new IntersectionObserver(seen => {
	for (const e of seen) {
		if (e.isIntersecting && !charts.has(e.target)) build(e.target);
	}
}, {rootMargin: "300px"});

addEventListener("resize", () => charts.forEach(c => c.resize()));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
	charts.forEach(c => c.u.redraw()));

// On paper all charts stand, in the colours and the width of paper.
const buildAll = () =>
	document.querySelectorAll("figure").forEach(f => charts.has(f) || build(f));
addEventListener("beforeprint", buildAll);
matchMedia("print").addEventListener("change", () => {
	buildAll();
	charts.forEach(c => { c.resize(); c.u.redraw(); });
});

// ---- choosing runs

for (const box of document.querySelectorAll(".chooser input")) {
	const choose = () => {
		const run = +box.value;
		box.checked ? hidden.delete(run) : hidden.add(run);
		document.querySelectorAll(`[data-run="${run}"]`).forEach(e =>
			e.toggleAttribute("hidden", hidden.has(run)));
		// Rows below the first of a benchmark do not say its name while that stands above them.
		root.classList.toggle("partial", hidden.size > 0);
		charts.forEach(c => c.runs());
	};
	box.checked = true; // browsers keep what was chosen before a page was loaded again
	box.addEventListener("change", choose);
}

// ---- sorting tables

// Of a cell with a value this, else its text.
const keyOf = cell => cell?.dataset.key != null ? +cell.dataset.key : cell?.textContent.trim() ?? "";

function compare(a, b) {
	const unknown = v => v === "" || v === "–";
	if (unknown(a) || unknown(b)) return unknown(a) - unknown(b);
	if (typeof a === "number" && typeof b === "number") return a - b;
	return String(a).localeCompare(String(b), undefined, {numeric: true});
}

for (const table of document.querySelectorAll("table")) {
	const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
	const first = [...body.rows]; // as the page was made
	if (first.length < 2) continue;
	heads.forEach((head, i) => {
		if (head.classList.contains("plain")) return;
		head.tabIndex = 0;
		head.classList.add("sorts");
		const sort = () => {
			const next = {none: "descending", descending: "ascending", ascending: "none"}[
				head.getAttribute("aria-sort") ?? "none"];
			heads.forEach(h => h.removeAttribute("aria-sort"));
			if (next !== "none") head.setAttribute("aria-sort", next);
			const rows = [...first];
			if (next !== "none") {
				const sign = next === "ascending" ? 1 : -1;
				// Unknown values stay at the end, whichever way.
				rows.sort((a, b) => {
					const [x, y] = [keyOf(a.cells[i]), keyOf(b.cells[i])];
					const lost = [x, y].some(v => v === "" || v === "–");
					return (lost ? 1 : sign) * compare(x, y);
				});
			}
			table.classList.toggle("sorted", next !== "none");
			body.append(...rows);
		};
		head.addEventListener("click", sort);
		head.addEventListener("keydown", e => {
			if (e.key !== "Enter" && e.key !== " ") return;
			e.preventDefault();
			sort();
		});
	});
}

for (const f of document.querySelectorAll("figure")) {
	if (f.getBoundingClientRect().top < innerHeight) build(f);
	else near.observe(f);
}

// What a test or a console may look at.
window.kvbench = {charts, hidden, build};
})();

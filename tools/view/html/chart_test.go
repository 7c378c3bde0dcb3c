package html

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/units"
	"kvbench/tools/golden"
	"kvbench/tools/load"
	"kvbench/tools/view"
)

// twelve are runs of the same benchmarks: a measured trial with a timeline and a traced one.
func twelve(t *testing.T) (runs []string) {
	parts := golden.Parts(t)
	for i := range 12 {
		dir := filepath.Join(t.TempDir(), fmt.Sprintf("drive-%c <b>&", 'a'+i))
		require.NoError(t, os.Mkdir(dir, 0o755))
		for k, from := range []string{parts[1],
			"../../load/testdata/option_2/trial_0/rank_0/kvcache_results_20261120_103902.json"} {
			data, err := os.ReadFile(from)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir,
				fmt.Sprintf("kvcache_results_%d.json", k)), data, 0o644))
		}
		runs = append(runs, dir)
	}
	return runs
}

// near scrolls to the figure of a title, waits until its chart is drawn, and returns the rectangle
// of the plot.
const near = `new Promise(done => {
	window.fig = [...document.querySelectorAll("figure")].find(f =>
		f.querySelector("figcaption").textContent.startsWith(%q));
	for (let d = fig; d = d.parentElement.closest("details");) d.open = true;
	let last = "";
	const look = () => {
		fig.scrollIntoView({block: "center"}); // until those around it are drawn, too
		requestAnimationFrame(() => requestAnimationFrame(() => {
			const r = fig.querySelector(".u-over")?.getBoundingClientRect();
			const now = JSON.stringify([r, kvbench.charts.size]);
			if (!r || now !== last) return last = now, look();
			done({x: r.left, y: r.top, w: r.width, h: r.height});
		}));
	};
	look();
})`

type box struct{ X, Y, W, H float64 }

// smuggled would run if any part of it reached the page unescaped.
const smuggled = `</script><script>document.title = "smuggled"</script><img src=x onerror=alert(1)>`

// single is a page with a chart of each kind, all names of which are smuggled.
func single(t *testing.T) string {
	line := view.Line{Name: smuggled, X: []float64{1, 2}, Y: []float64{1, 2}}
	axis := view.Axis{Label: smuggled}
	var sizes []view.Tick
	for at := 4096; at <= 1<<22; at *= 2 {
		sizes = append(sizes, view.Tick{At: float64(at), Label: units.Bytes.Text(at)})
	}
	var page strings.Builder
	require.NoError(t, WritePage(&page, view.Page{Title: smuggled, Figures: []view.Chart{
		{Title: smuggled, X: axis, Y: axis, Lines: []view.Line{line}},
		{Title: "heat", Time: true, X: view.Axis{Label: "s", Zero: true},
			Y: view.Axis{Label: "µs", Log: true},
			Heat: &view.Heat{Colour: 7, At: []float64{1, 2},
				From: []float64{64, 64 * math.Sqrt2}, Counts: [][]int64{{4321, 0}, {0, 30}}},
			Lines: []view.Line{{Name: "p50", Step: true, X: []float64{0, 1, 2},
				Y: []float64{64, 90, 90}}}},
		{Title: "few", Time: true, X: view.Axis{Zero: true}, Y: view.Axis{Log: true}, // requests: no percentiles
			Heat: &view.Heat{At: []float64{1}, From: []float64{64}, Counts: [][]int64{{1}}}},
		{Title: "wide", X: view.Axis{Log: true}, Y: view.Axis{Log: true, Label: "B"},
			Lines: []view.Line{{X: []float64{0, 1, 1}, Y: []float64{1, 1e-30, 1e30}}}},
		{Title: "sizes", X: view.Axis{Label: "size", Log: true, Ticks: sizes}, Y: view.Axis{Label: "B"},
			Lines: []view.Line{{Dots: true, X: []float64{4096, 1 << 22}, Y: []float64{1, 2}}}},
		{Title: "flat", Y: view.Axis{Label: "B"},
			Lines: []view.Line{{X: []float64{1, 1}, Y: []float64{5, 5}}}},
	}}))
	return page.String()
}

// A chart in JSON has null for a gap, and its table has everything that it draws.
func TestAChartAndItsTable(t *testing.T) {
	x := []float64{1, 2, 4}
	c := view.Chart{Title: "a <b>", X: view.Axis{Label: "users", Log: true,
		Ticks: []view.Tick{{At: 1, Label: "one user"}, {At: 4, Label: "four"}}}, Y: view.Axis{Label: "share", Range: view.Values{0, 1}},
		Lines: []view.Line{{Name: "read", X: x, Y: []float64{1, math.NaN(), 3.5}},
			{Name: "write", Run: 2, Colour: 1, X: x, Y: []float64{1, 1, 2}}}}
	text, err := json.Marshal(newPlot(c))
	require.NoError(t, err)
	assert.JSONEq(t, `{"title": "a <b>", "x": {"label": "users", "log": true,
		"ticks": [{"At": 1, "Label": "one user"}, {"At": 4, "Label": "four"}]}, "y": {"label": "share", "range": [0, 1]},
		"series": [{"name": "read", "colour": 0, "x": [1, 2, 4], "y": [1, null, 3.5]},
			{"name": "write", "run": 2, "colour": 1, "y": [1, 1, 2]}]}`, string(text))
	assert.Equal(t, grid{
		Heads: []string{"users", "read", "2 write"},
		Rows:  [][]string{{"one user", "1", "1"}, {"four", "3.50", "2"}}}, newGrid(c))
	assert.Equal(t, grid{Heads: []string{"", "how often from 64", "how often from 90.5"},
		Rows: [][]string{{"0", "4321", "0"}, {"1", "0", "30"}}},
		newGrid(view.Chart{Heat: &view.Heat{At: x[:2], From: []float64{64, 64 * math.Sqrt2},
			Counts: [][]int64{{4321, 0}, {0, 30}}}}))
}

// A reader's actions on a page of twelve runs, by a real mouse in a real browser: nothing is
// reported on its console.
func TestThePageInABrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes seconds: make test-all")
	}
	b := newBrowser(t)
	html := render(t, load.Options{}, twelve(t)...)
	b.open(html, 1280, "light")

	var at box
	b.eval(fmt.Sprintf(near, "Bandwidth of the storage tier"), &at)
	var runs struct{ Colours, Numbers, Series int }
	b.eval(`(() => {
		const s = kvbench.charts.get(fig).spec.series;
		return {series: s.length, colours: new Set(s.map(s => getComputedStyle(document.documentElement)
			.getPropertyValue("--c" + s.colour))).size, numbers: new Set(s.map(s => s.run)).size};
	})()`, &runs)
	assert.Equal(t, 12, runs.Colours, "each run has a colour of its own")
	assert.Equal(t, 12, runs.Numbers, "and a number")
	assert.GreaterOrEqual(t, runs.Series, 12)

	// Pointing at a place shows the values there, in all charts of the time.
	const pointed = `getComputedStyle(fig.querySelectorAll(".u-value")[1]).visibility`
	var visibility string
	b.eval(pointed, &visibility)
	assert.Equal(t, "hidden", visibility, "a legend without a pointer has names only")
	const shownValues = `[...fig.querySelectorAll(".u-series .u-value")].map(v => v.textContent)`
	var values []string
	b.eval(shownValues, &values)
	assert.NotContains(t, strings.Join(values, ""), "1", "no pointer yet")
	b.mouse("mouseMoved", at.X+at.W/2, at.Y+at.H/2, false)
	b.eval(shownValues, &values)
	b.eval(pointed, &visibility)
	assert.Equal(t, "visible", visibility)
	require.Len(t, values, runs.Series+1)
	for i, v := range values {
		assert.NotContains(t, []string{"", "–", "--"}, v, "series %d has a value in the middle", i)
	}

	// Dragging zooms every time chart of the page.
	const shown = `[...kvbench.charts.values()].filter(c => c.spec.time)
		.map(c => [c.u.scales.x.min, c.u.scales.x.max])`
	var before, zoomed [][2]float64
	b.eval(shown, &before)
	b.drag(at.X+at.W/4, at.X+at.W/2, at.Y+at.H/2)
	b.eval(shown, &zoomed)
	require.Len(t, zoomed, len(before))
	require.NotEmpty(t, zoomed)
	length := before[0][1] - before[0][0]
	for _, z := range zoomed {
		assert.InDelta(t, length/4, z[1]-z[0], length/50, "%v of %v", z, before[0])
	}
	b.eval(`fig.querySelector(".tools button:last-child").click()`, nil)
	b.eval(shown, &zoomed)
	assert.Equal(t, before, zoomed)

	// A run can be hidden: in tables, drawings and charts.
	var left struct{ Visible, Series int }
	b.eval(`document.querySelector('.chooser input[value="3"]').click()`, nil)
	b.eval(`({visible: [...document.querySelectorAll('[data-run="3"]')].filter(e =>
		getComputedStyle(e).display !== "none").length,
		series: kvbench.charts.get(fig).u.series.filter((s, i) => i && s.show).length})`, &left)
	assert.Zero(t, left.Visible)
	assert.Equal(t, runs.Series*11/12, left.Series)
	b.eval(`document.querySelector('.chooser input[value="3"]').click()`, nil)

	// A click on a head sorts by the values and not by their texts.
	var order []string
	const column = `[...document.querySelectorAll("#headlines tbody tr")].map(r =>
		r.cells[3].dataset.key)`
	var unsorted []string
	b.eval(column, &unsorted)
	b.eval(`document.querySelectorAll("#headlines th")[3].click()`, nil)
	b.eval(column, &order)
	assert.ElementsMatch(t, unsorted, order)
	var sorted bool
	b.eval(`(k => k.every((v, i) => !i || +k[i-1] >= +v))(`+column+`)`, &sorted)
	assert.True(t, sorted, order)

	// On a phone: the answer is on the first screen, and no horizontal scrolling is needed.
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int{1280, 390} {
			b.open(html, width, scheme)
			var page struct{ First, Wide float64 }
			b.eval(`({first: document.querySelector("#headlines .answer").getBoundingClientRect().bottom,
				wide: document.documentElement.scrollWidth})`, &page)
			assert.Less(t, page.First, 844.0)
			assert.LessOrEqual(t, page.Wide, float64(width))
			b.eval(fmt.Sprintf(near, "Bandwidth of the storage tier"), &at)
		}
	}

	// On paper all charts are there, without their buttons.
	b.call("Emulation.setEmulatedMedia", map[string]any{"media": "print"}, nil)
	var printed string
	b.eval(`new Promise(function look(done) {
		if (kvbench.charts.size < document.querySelectorAll("figure").length)
			return requestAnimationFrame(() => look(done));
		done(getComputedStyle(fig.querySelector(".tools")).display);
	})`, &printed)
	assert.Equal(t, "none", printed)
	b.call("Emulation.setEmulatedMedia", map[string]any{"media": ""}, nil)

	// A picture of the whole page, as a headless browser takes it at the load: no chart waits for a frame.
	b.call("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": `addEventListener("load", () =>
		window.atLoad = [kvbench.charts.size, document.querySelectorAll("figure").length])`}, nil)
	var atLoad []int
	b.open(html, 1280, "light")
	b.eval("atLoad", &atLoad)
	assert.Less(t, atLoad[0], atLoad[1], "a window of 844 pixels has a part of them")
	b.height = 100_000
	b.open(html, 1280, "light")
	b.eval("atLoad", &atLoad)
	assert.Equal(t, atLoad[1], atLoad[0])
	b.height = 0

	// Text of a result is never executed, and a heat map shows the count at the pointer.
	b.open(single(t), 1280, "dark")
	b.eval(fmt.Sprintf(near, "heat"), &at)
	b.mouse("mouseMoved", at.X+at.W/4, at.Y+at.H*3/4, false)
	var title, legend, cell string
	b.eval(`fig.querySelector(".cell").textContent`, &cell)
	b.eval(fmt.Sprintf(near, "few"), new(box))
	b.eval(fmt.Sprintf(near, "heat"), &at)
	assert.Equal(t, "4321 from 64 to 90.51", cell)
	b.eval(fmt.Sprintf(near, "</script>"), new(box))
	b.eval(`document.title`, &title)
	assert.Equal(t, smuggled, title)
	b.eval(`fig.querySelectorAll(".u-label")[1].textContent`, &legend)
	assert.Equal(t, smuggled, legend)
	var ranges map[string][][]float64
	b.eval(`(document.querySelectorAll("figure").forEach(f =>
		kvbench.charts.has(f) || kvbench.build(f)), Object.fromEntries([...kvbench.charts.values()].map(
		c => [c.spec.title, ["x", "y"].map(k => [c.u.scales[k].min, c.u.scales[k].max])])))`, &ranges)
	assert.Equal(t, [][]float64{{0.5, 1.5}, {4.5, 5.5}}, ranges["flat"])
	var labels []string
	b.eval(fmt.Sprintf(near, "sizes"), &at)
	b.eval(`kvbench.charts.get(fig).u.axes[0]._values`, &labels)
	assert.Len(t, labels, 11, "every size has its label: %v", labels)
	for _, ends := range ranges["wide"] {
		assert.Less(t, ends[0], ends[1])
	}

	// Without a script the numbers of each chart are in a table.
	b.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil)
	b.open(html, 390, "light")
	assert.Empty(t, b.troubles)
}

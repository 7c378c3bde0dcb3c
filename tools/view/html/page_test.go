package html

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	stdhtml "html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tools/golden"
	"kvbench/tools/load"
	"kvbench/tools/stats"
	"kvbench/tools/view"
)

var inputs = []string{"../../load/testdata/bench.txt", "../../load/testdata/option_2",
	"../../load/testdata/python.json"}

func render(t testing.TB, o load.Options, args ...string) string {
	t.Helper()
	records, units, err := load.All(args, o)
	require.NoError(t, err)
	var b strings.Builder
	require.NoError(t, Write(&b, records, stats.Build(records, units), nil))
	return b.String()
}

var (
	styleTag = regexp.MustCompile(
		`(?s)<style>.*?</style>|<script.*?</script>|<noscript>.*?</noscript>`)
	allMetrics = regexp.MustCompile(`(?s)<details><summary>All metrics .*?</details>`)
	quoted     = regexp.MustCompile(`(?s)<pre>.*?</pre>`)
	anyTag     = regexp.MustCompile(`<[^>]*>`)
	blanks     = regexp.MustCompile(`[ \t]*\n\s*`)
)

// text is the text of a page without graphics.
func text(html string) string {
	html = anyTag.ReplaceAllString(styleTag.ReplaceAllString(html, ""), "\n")
	return strings.TrimSpace(blanks.ReplaceAllString(html, "\n")) + "\n"
}

func TestGoldenText(t *testing.T) {
	golden.Check(t, "page.txt", text(render(t, load.Options{}, inputs...)))
}

// The library is the file that was released, to the byte: its hash is that of dist/ in the package
// of npm.
func TestTheLibraryIsTheReleasedOne(t *testing.T) {
	assert.Equal(t, "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
		fmt.Sprintf("%x", sha256.Sum256([]byte(library))), "uplot 1.6.32")
	assert.Contains(t, render(t, load.Options{}, inputs...), "Copyright (c) 2022 Leon Sorokin",
		"the page carries the licence")
}

func TestPageIsSelfContained(t *testing.T) {
	html := render(t, load.Options{}, inputs...)
	for _, s := range append(scripts, licence) { // of which the policy takes care
		html = strings.ReplaceAll(html, s, "")
	}
	for _, link := range regexp.MustCompile(`(?:href|src)="([^"]*)"`).FindAllStringSubmatch(html,
		-1) {
		assert.True(t, strings.HasPrefix(link[1], "#") || link[1] == "data:,", link[1])
	}
	assert.NotContains(t, html, "url(")
	assert.NotContains(t, html, "NaN")
	assert.NotContains(t, html, "Inf")
	ids := map[string]bool{}
	for _, id := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(html, -1) {
		assert.False(t, ids[id[1]], "id %s twice", id[1])
		ids[id[1]] = true
	}
	for _, link := range regexp.MustCompile(`href="#([^"]*)"`).FindAllStringSubmatch(html, -1) {
		assert.True(t, ids[link[1]], "nothing is called %s", link[1])
	}
}

// Every plot has two axis labels with a unit or a name of the counted things, and a table.
func TestPlotsAreLabelled(t *testing.T) {
	html := render(t, load.Options{}, inputs...)
	figures := regexp.MustCompile(`(?s)<figure>.*?</figure>`).FindAllString(html, -1)
	require.GreaterOrEqual(t, len(figures), 8)
	for _, f := range figures {
		_, text, _ := strings.Cut(f, `<script type="application/json">`)
		text, rest, _ := strings.Cut(text, "</script>")
		var p view.Chart
		require.NoError(t, json.Unmarshal([]byte(text), &p))
		for _, label := range []string{p.X.Label, p.Y.Label} {
			assert.Regexp(t, `\(.+\)`, label)
			assert.Contains(t, stdhtml.UnescapeString(rest), ">"+label+"<")
		}
		assert.Contains(t, rest, "<noscript>")
		assert.NotContains(t, rest, "<tbody></tbody>")
	}
}

// Sections of some benchmarks only, and no prediction that could pass for a measurement.
func TestParts(t *testing.T) {
	html := render(t, load.Options{}, golden.Parts(t)...)
	page := text(quoted.ReplaceAllString(allMetrics.ReplaceAllString(html, ""), ""))
	page = regexp.MustCompile(`(/[^/\s]+)+/kvcache_results_1.json`).ReplaceAllString(page, "RESULT")
	golden.Check(t, "parts.txt", page)
	assert.NotRegexp(t, `[▲▼~≠] [+-]`, page, "a prediction and a measurement are never compared")
	sim := html[strings.Index(html, `id="AutoscaleCapacity--simulated-"`):]
	sim = sim[:strings.Index(sim, "</section>")]
	captions := regexp.MustCompile(`<figcaption>([^<]*)`).FindAllStringSubmatch(sim, -1)
	require.NotEmpty(t, captions)
	for _, c := range captions {
		assert.True(t, strings.HasPrefix(c[1], "SIMULATED: "), c[1])
	}
}

// A run with simulated and measured trials: neither is in the other's median.
func TestOneRunOfBothKinds(t *testing.T) {
	files := golden.Parts(t)
	dir := t.TempDir()
	for i, f := range files[:2] {
		require.NoError(t, os.Rename(f,
			filepath.Join(dir, "kvcache_results_"+string(rune('0'+i))+".json")))
	}
	page := text(render(t, load.Options{}, dir))
	assert.Contains(t, page, "AutoscaleCapacity (simulated)")
	assert.NotContains(t, page, "n=2")
}

// Texts of other programs and of runs whose files are gone.
func TestLinesAlone(t *testing.T) {
	var sweep strings.Builder
	for _, p := range []struct{ n, rate string }{{"1", "1073741824"}, {"2", "2147483648"},
		{"4", "4080218931"}, {"8", "4294967296"}, {"16", "4294967296"}} {
		numbers := "-2 1 5 ns/op " + p.rate + " read-B/s 1000000 read-p95-ns\n"
		sweep.WriteString("BenchmarkMaxStorageStress/num-users=" + p.n + numbers +
			"BenchmarkBlockIO/op=read/size=" + p.n + "MiB" + numbers)
	}
	for _, c := range []struct{ lines, has, not string }{
		{"kvbench-format: 2\ndivision: open\nsimulated: true\nBenchmarkSynthetic-2 1 5 ns/op " +
			"1073741824 read-B/s\n", ">Synthetic (simulated)<", ""},
		// The size of a request is no load.
		{sweep.String(), ">MaxStorageStress/num-users=…<", "of the maximum at size"},
		{sweep.String(), "read: 90 % of the maximum at num-users=4, 3.80 GiB/s", ""},
		{sweep.String(), `"num-users (log scale)"`, ""},
		{sweep.String(), ">BlockIO/op=read/size=…<", ""},
		{"note: <b>&\nBenchmarkA/x=<script>alert(1)</script>/y=\"1-2 1 5 ns/op 3 <i>\n", "note",
			"<script>alert|<i>|<b>"},
	} {
		page := render(t, load.Options{Stdin: strings.NewReader(c.lines)}, "-")
		assert.Contains(t, page, c.has)
		if c.not != "" {
			assert.NotRegexp(t, c.not, page)
		}
	}
}

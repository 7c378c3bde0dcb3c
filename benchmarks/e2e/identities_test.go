package e2e

import (
	_ "embed"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/xuri/excelize/v2"
)

// With KVTEST_IDENTITIES=1 every result that a test of this package leaves is checked: its file by the identities of testdata/identities.txt, and the
// benchmark line, the summary, the CSV file and the workbook against the file, by testdata/views.txt. Nothing here calls the
// code that computes these numbers. Files are read as JSON, and RESULT.md says which keys there are and how ranks are merged.

var (
	//go:embed testdata/identities.txt
	identitiesText string
	//go:embed testdata/views.txt
	viewsText string
)

// resultFile is a result that a test left.
type resultFile struct {
	path string
	*scope
}

func (r *resultFile) text(key string) string { v, _ := r.of(key).(string); return v }

// checked counts what was compared: results, and how often each row of the two files applied.
var checked struct {
	sync.Mutex
	results int
	rows    map[string]int
}

// value evaluates a row for a structure and counts it if it applies.
func (f formula) value(s *scope) (v any) {
	if f.when != nil && s.eval(f.when) != true {
		return nil
	}
	if v = s.eval(f.is); v != nil {
		checked.Lock()
		defer checked.Unlock()
		if checked.rows == nil {
			checked.rows = map[string]int{}
		}
		checked.rows[f.row]++
	}
	return v
}

// identities checks the identities of a structure and of all structures in it.
func (s *scope) identities(t testing.TB, path string) {
	for _, f := range formulas()[s.section] {
		if f.value(s) == false {
			sides := ""
			if e, ok := f.is.(*ast.BinaryExpr); ok {
				sides = fmt.Sprintf(" (%.17g and %.17g)", s.eval(e.X), s.eval(e.Y))
			}
			t.Errorf("%s: %s does not hold in %s%s", path, f.row, s.place(), sides)
		}
	}
	for key := range reference()[s.section] {
		switch v := s.of(key).(type) {
		case *scope:
			v.identities(t, path)
		case several:
			for _, x := range v.list {
				if inner, ok := x.(*scope); ok {
					inner.identities(t, path)
				}
			}
		}
	}
}

// place names the keys above a structure.
func (s *scope) place() string {
	if s.outer == nil {
		return "the result"
	}
	return strings.TrimPrefix(s.outer.place()+"."+s.key, "the result.")
}

// merged compares a value of a merged result with those of its ranks, by the column "of several ranks" of RESULT.md. A device that
// ranks share counts once, and a checkpoint ends with its slowest rank: these have identities of their own.
func merged(t testing.TB, place, rule string, have any, of []any) {
	how := map[string]string{"added": "sum", "largest": "greatest", "smallest": "least"}[rule]
	by, keyed := strings.CutPrefix(rule, "merged by ")
	// the values of the ranks that have a value like this
	like := func(same func(several) any) (parts []any) {
		for _, v := range of {
			if list, ok := v.(several); ok && same(list) != nil {
				parts = append(parts, same(list))
			}
		}
		return parts
	}
	switch have := have.(type) {
	case *scope:
		for key, f := range reference()[have.section] {
			var parts []any
			for _, v := range of {
				if p, ok := v.(*scope); ok {
					parts = append(parts, p.of(key))
				}
			}
			rated := have.section == "TierTraffic" && (key == "bytes_per_s" || key == "mean_in_flight")
			if rated && have.lookup("checkpoint") == nil || !rated && key != "device_witness" && key != "checkpoint" &&
				f.ranks != "derived" && f.ranks != "absent" {
				merged(t, place+"."+key, f.ranks, have.of(key), parts)
			}
		}
	case several:
		for key, v := range have.named {
			merged(t, place+"."+key, rule, v, like(func(s several) any { return s.named[key] }))
		}
		for _, v := range have.list {
			if x, ok := v.(*scope); ok && keyed {
				merged(t, place+"."+fmt.Sprint(x.object[by]), "", x, like(func(s several) any {
					for _, y := range s.list {
						if y.(*scope).object[by] == x.object[by] {
							return y
						}
					}
					return nil
				}))
			}
		}
	default:
		if how == "" || len(of) == 0 {
			return
		}
		known := slices.DeleteFunc(slices.Clone(of), func(v any) bool { return v == nil })
		want := aggregate(how, known)
		if len(known) == 0 || how == "sum" && len(known) < len(of) {
			want = nil
		}
		x, number := want.(float64)
		y, also := have.(float64)
		if (number || want == nil && have != nil && also) && (number != also || !near(x, y, 1e-9)) {
			t.Errorf("%s is %v, and its ranks have %v (%s)", place, have, of, rule)
		}
	}
}

// quantity matches a number as the benchmark line and the summary print it.
var quantity = regexp.MustCompile(`^(-?[\d.,]+)(?:e([-+]\d+))? ?([A-Za-zµ%/]*)$`)

// printedUnits are in ns, bytes and shares.
var printedUnits = map[string]float64{"": 1, "ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
	"TiB": 1 << 40, "B/s": 1, "KiB/s": 1 << 10, "MiB/s": 1 << 20, "GiB/s": 1 << 30, "%": 0.01}

// prints reports whether a text is a number within the half of its last digit.
func prints(text string, x float64) bool {
	m := quantity.FindStringSubmatch(text)
	if m == nil || printedUnits[m[3]] == 0 {
		return false
	}
	digits := strings.ReplaceAll(m[1], ",", "")
	shown, err := strconv.ParseFloat(digits, 64)
	exponent, _ := strconv.Atoi(m[2]) // 0 without one
	_, decimals, _ := strings.Cut(digits, ".")
	x /= printedUnits[m[3]] * math.Pow10(exponent)
	return err == nil && math.Abs(shown-x) <= 0.5000001*math.Pow10(-len(decimals))+1e-12*math.Abs(shown)
}

func (r *resultFile) lineSection() string {
	if r.lookup("checkpoint") != nil {
		return "line of checkpoints"
	}
	return "line of others"
}

// line compares a benchmark line with the result that its log names.
func (r *resultFile) line(t testing.TB, text string) {
	words := strings.Fields(text)
	shown := map[string]string{}
	for i := 2; i+1 < len(words); i += 2 {
		shown[words[i+1]] = words[i]
	}
	for _, f := range formulas()[r.lineSection()] {
		text, there := shown[f.name]
		x, known := f.value(r.scope).(float64)
		if known != there || known && !prints(text, x) {
			t.Errorf("%s: the line has %q %s, and %s is %v", r.path, text, f.name, f.row, f.value(r.scope))
		}
		delete(shown, f.name)
	}
	for unit := range shown {
		if r.text("benchmark") != "DataGen" {
			t.Errorf("%s: no row of views.txt has the unit %s", r.path, unit)
		}
	}
}

// cell reports whether a cell of the CSV file or the workbook has a value.
func cell(text string, v any) bool {
	switch v := v.(type) {
	case nil:
		return text == ""
	case bool:
		return strings.EqualFold(text, strconv.FormatBool(v)) || text == map[bool]string{true: "1", false: "0"}[v]
	case float64:
		x, err := strconv.ParseFloat(text, 64)
		return err == nil && near(x, v, 1e-12)
	}
	want := fmt.Sprint(v)
	x, err := strconv.ParseFloat(want, 64)
	y, also := strconv.ParseFloat(text, 64)
	return text == want || text == "" && want == "–" || err == nil && also == nil && x == y
}

// columns are the columns of the CSV file with their values: a row of views.txt for P stands for five percentiles.
func (r *resultFile) columns() map[string]any {
	all := map[string]any{}
	for _, f := range formulas()["CSV"] {
		v := f.value(r.scope)
		if !strings.Contains(f.name, " P (ms)") {
			all[f.name] = v
			continue
		}
		d := r.eval(f.is.(*ast.BinaryExpr).X.(*ast.SelectorExpr).X)
		for title, key := range map[string]string{"P50": "p50", "P95": "p95", "P99": "p99", "P99.9": "p999", "P99.99": "p9999"} {
			name := strings.Replace(f.name, " P (", " "+title+" (", 1)
			if all[name] = nil; d != nil {
				if x, ok := d.(*scope).lookup(key).(float64); ok {
					all[name] = x / 1e6
				}
			}
		}
	}
	return all
}

// kvreport runs a command of kvreport, which the tests build once.
func kvreport(t testing.TB, args ...string) string {
	t.Helper()
	program, err := reporter()
	require.NoError(t, err)
	out, err := exec.Command(program, args...).Output()
	require.NoError(t, err, "%v", args)
	return string(out)
}

// summary compares the numbers of summary.txt. The name of a row is what the text is, with the number in its only group.
func (r *resultFile) summary(t testing.TB) {
	dir := filepath.Dir(r.path)
	all, _ := filepath.Glob(filepath.Join(dir, "kvcache_results_*.json"))
	text, err := os.ReadFile(filepath.Join(dir, "summary.txt"))
	if err != nil || len(all) > 1 { // the disk was full; or the summary is of the last run
		return
	}
	for _, f := range formulas()["summary"] {
		m := regexp.MustCompile("(?m)" + f.name).FindStringSubmatch(string(text))
		if m == nil {
			continue
		}
		if x, known := f.value(r.scope).(float64); known && !prints(m[1], x) {
			t.Errorf("%s: the summary has %q, and %s is %v", r.path, m[0], f.row, x)
		}
	}
}

// runSummary compares summary.json, which several ranks have, with the results of the ranks.
func runSummary(t testing.TB, dir string, results map[string]*resultFile) {
	text, err := os.ReadFile(filepath.Join(dir, "summary.json"))
	var all struct {
		Options map[string]map[string]any
	}
	if err != nil || json.Unmarshal(text, &all) != nil {
		return
	}
	for name, o := range all.Options {
		sums, trials := map[string]float64{}, 0.0
		for _, trial := range o["trials"].([]any) {
			trial := trial.(map[string]any)
			trials++
			for _, f := range formulas()["summary.json"] {
				sum := 0.0
				for _, r := range results {
					group := r.text("name")
					if n, option := r.of("option").(float64); option && group == r.text("benchmark") {
						group = strconv.Itoa(int(n))
					}
					if group == name && r.of("trial") == trial["trial"] && slices.Contains(trial["ranks"].([]any), r.of("rank")) &&
						r.eval(formulas()["terms"][1].is) == true {
						x, _ := f.value(r.scope).(float64)
						sum += x
					}
				}
				sums[f.name] += sum
				if r := trial[f.name]; sum > 0 && !near(r.(float64), sum, 1e-9) && o["benchmark"] != "Checkpoint" {
					t.Errorf("%s/summary.json: %s of %s, trial %v is %v, and its ranks have %v", dir, f.name, name, trial["trial"], r, sum)
				}
			}
		}
		for key, sum := range sums {
			if have := o["aggregated_"+key].(float64); sum > 0 && !near(have, sum/trials, 1e-9) && o["benchmark"] != "Checkpoint" {
				t.Errorf("%s/summary.json: aggregated_%s of %s is %v, and the mean of its trials %v", dir, key, name, have, sum/trials)
			}
		}
	}
}

// notAlone are the results of ranks.
var notAlone, _ = parser.ParseExpr("ranks > 1 && alone")

// documents compares the CSV file and the workbook of a results directory with its results.
func documents(t testing.TB, dir string, results map[string]*resultFile) {
	rows, err := csv.NewReader(strings.NewReader(kvreport(t, "csv", dir))).ReadAll()
	require.NoError(t, err)
	book := filepath.Join(t.TempDir(), "book.xlsx")
	kvreport(t, "xlsx", dir, "-o", book)
	f, err := excelize.OpenFile(book)
	require.NoError(t, err)
	defer f.Close()
	sheet := func(name string) [][]string {
		rows, _ := f.GetRows(name, excelize.Options{RawCellValue: true})
		if len(rows) == 0 { // no result has such numbers
			return [][]string{nil}
		}
		for i := range rows { // empty cells at the end are left out
			rows[i] = append(rows[i], make([]string, len(rows[0])-len(rows[i]))...)
		}
		return rows
	}
	summary, at := sheet("Summary"), map[string]int{}
	for i, head := range rows[0] {
		at[head] = i
	}
	assert.Equal(t, len(rows), len(summary), "%s: rows of the CSV file and of the workbook", dir)
	named := map[[2]string]*resultFile{} // by benchmark and trial; nil if there are several
	lines := map[[2]string][]float64{}   // by benchmark and unit
	for i, row := range rows[1:] {
		for k, text := range row {
			if got := summary[i+1][k]; rows[0][k] != "Timestamp" && got != text && !cell(got, asValue(text)) {
				t.Errorf("%s: %s is %q in the CSV file and %q in the workbook", dir, rows[0][k], text, got)
			}
		}
		r := results[row[at["File"]]]
		if r == nil || r.eval(notAlone) == true { // ranks that no file has together
			continue
		}
		known := r.columns()
		for title, v := range known {
			if k, there := at[title]; !there || !cell(row[k], v) {
				t.Errorf("%s: the column %s of the CSV file has %q, and the result %v", r.path, title, row[k], v)
			}
		}
		for _, f := range formulas()[r.lineSection()] {
			if x, ok := f.value(r.scope).(float64); ok && r.text("status") == "complete" {
				at := [2]string{row[at["Benchmark"]], f.name}
				lines[at] = append(lines[at], x)
			}
		}
		name := [2]string{row[at["Benchmark"]], row[at["Trial"]]}
		if _, again := named[name]; again {
			r = nil
		}
		named[name] = r
	}
	for _, row := range sheet("Performance Metrics")[1:] {
		x := lines[[2]string{row[0], row[2]}]
		slices.Sort(x)
		median := func() float64 { return (x[(len(x)-1)/2] + x[len(x)/2]) / 2 }
		if got, _ := strconv.ParseFloat(row[5], 64); strconv.Itoa(len(x)) == row[4] && !near(got, median(), 1e-11) {
			t.Errorf("%s: the median of %s of %s is %s in the workbook, and of the results %v", dir, row[2], row[0], row[5], median())
		}
	}
	for section, formulas := range formulas() {
		head, ok := strings.CutPrefix(section, "sheet ")
		if !ok {
			continue
		}
		title, of, _ := strings.Cut(head, ": ")
		table := sheet(title)
		for _, row := range table[1:] {
			r := named[[2]string{row[1], row[2]}]
			words := strings.Fields(row[3])
			if r == nil || len(words) > 2 {
				continue
			}
			level, op := words[0], words[len(words)-1]
			e, err := parser.ParseExpr(strings.NewReplacer("(LEVEL)", strconv.Quote(level), "LEVEL", level, "OP", op, "ROW", level).Replace(
				strings.Replace(of, "(LEVEL)", "("+strconv.Quote(level)+")", 1)))
			require.NoError(t, err)
			s, _ := r.eval(e).(*scope)
			if !assert.NotNil(t, s, "%s: %s of the sheet %s", r.path, row[3], title) {
				continue
			}
			for _, f := range formulas {
				k := slices.Index(table[0], f.name)
				if k >= 0 && !(row[k] == "" && f.value(s) == 0.0) && !cell(row[k], f.value(s)) {
					t.Errorf("%s: the sheet %s has %q for %s of %s, and the result %v", r.path, title, row[k], f.name, row[3], f.value(s))
				}
			}
		}
	}
}

// asValue is a cell of the CSV file as a value.
func asValue(text string) any {
	if x, err := strconv.ParseFloat(text, 64); err == nil {
		return x
	}
	if b, err := strconv.ParseBool(text); err == nil {
		return b
	}
	return text
}

// checkTree checks all results below a directory, and the lines of outputs that name them.
func checkTree(t testing.TB, dir string, outputs ...string) {
	results := map[string]*resultFile{}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasPrefix(d.Name(), "kvcache_results_") || !strings.HasSuffix(d.Name(), ".json") {
			return nil
		}
		text, err := os.ReadFile(path)
		var object map[string]any
		if err != nil || json.Unmarshal(text, &object) != nil || object["schema_version"] == nil {
			return nil // a file that a test made
		}
		results[path] = &resultFile{path, &scope{section: "Result", object: object}}
		return nil
	})
	if len(results) == 0 {
		return
	}
	checked.Lock()
	checked.results += len(results)
	checked.Unlock()
	for path, r := range results {
		// The counts of an interrupted trial are taken while its workers go on, and what was in flight in a pause has no latency.
		if r.text("status") != "incomplete" && len(r.of("pauses").(several).list) == 0 {
			r.identities(t, path)
		}
		r.summary(t)
		var ranks []any
		for other, o := range results {
			if o.object["nonce"] == r.object["nonce"] && o.object["merged_ranks"] == nil &&
				filepath.Dir(filepath.Dir(other)) == filepath.Dir(filepath.Dir(path)) {
				ranks = append(ranks, o.scope)
			}
		}
		if list, _ := r.object["merged_ranks"].([]any); len(list) > 0 && len(list) == len(ranks) {
			merged(t, path+": ", "", r.scope, ranks)
		}
	}
	for _, output := range outputs {
		last := ""
		for line := range strings.Lines(output) {
			if i := strings.LastIndex(line, "Benchmark"); i >= 0 && strings.Contains(line, " ns/op") {
				last = line[i:]
			} else if strings.HasPrefix(line, "--- FAIL: ") { // it has no line
				last = ""
			}
			if _, path, ok := strings.Cut(line, "result: "); ok && last != "" {
				// -test.v prints the log before the line, so that another benchmark's may follow it.
				if r := results[strings.TrimSpace(path)]; r != nil && strings.HasPrefix(last, "Benchmark"+r.text("name")) {
					r.line(t, last)
				}
				last = ""
			}
		}
	}
	runSummary(t, dir, results)
	if len(results) > 1 { // two processes for each result would take long
		documents(t, dir, results)
	}
}

// notChecked returns what the tests of this package should have left to check and did not, if all of them ran: 200 results, and if
// none was skipped one for nearly each row of the two files. It depends on the machine whether a few rows apply.
func notChecked(all bool) (missing []string) {
	if checked.results < 200 {
		missing = append(missing, fmt.Sprintf("%d results of at least 200", checked.results))
	}
	rows, left := 0, []string{}
	for section, list := range formulas() {
		for _, f := range list {
			if rows++; section != "terms" && checked.rows[f.row] == 0 {
				left = append(left, f.row)
			}
		}
	}
	if all && 10*len(left) > rows {
		missing = append(missing, left...)
	}
	return missing
}

// identitiesEnv switches the check on: KVTEST_IDENTITIES=1 go test ./benchmarks/e2e.
const identitiesEnv = "KVTEST_IDENTITIES"

// checkResultsBelow checks the results directories in the directory of a test, if identitiesEnv is set.
func checkResultsBelow(t testing.TB, work string, outputs []string) {
	if os.Getenv(identitiesEnv) == "" {
		return
	}
	t.Helper()
	dirs, err := os.ReadDir(work)
	require.NoError(t, err)
	for _, d := range dirs {
		if d.IsDir() && d.Name() != "cache" && d.Name() != "tmp" {
			checkTree(t, filepath.Join(work, d.Name()), outputs...)
		}
	}
}

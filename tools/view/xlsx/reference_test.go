package xlsx

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/units"
	"kvbench/tools/golden"
)

// otherSheets are the sheets whose columns are no table of package report: the name, what it does, and the columns.
var otherSheets = [][3]string{
	{"Run Parameters", "has a row for each parameter and each fact about the machine", "Parameter; one for each run, with " +
		"several values of a run in one cell"},
	{"Performance Metrics", "has a row for each metric of a benchmark", "Benchmark; Metric; Unit; Better; of each run Trials, " +
		"Median, 95 % Interval Low, 95 % Interval High, Spread (CV), and from the second run on Change of Median, p, Significant"},
	{"Facts", "has the lines of summary.txt that are in no table", "Section; Topic; Fact"},
	{"Timeline", "has a row for each interval of the window", "time (s); one for each line of the page's charts over time: " +
		"bandwidth and fill of each tier, requests queued, in flight and completed, percentiles of latencies"},
	{"Kernel Times", "has the times that the kernel's trace counted", kernelColumns(" (ms)")},
	{"Kernel Sizes (KiB)", "has the sizes that it counted", kernelColumns("")},
	{"Kernel Places", "has the places on the device that it counted", kernelColumns(" (GiB)")},
	{"Kernel Depths", "has the queue depths that it counted", kernelColumns("")},
	{"Trace Histograms", "has a row for each bucket of these histograms", "Histogram; Unit; Low; High; Count"},
	{"Other Programs", "has results of engines' own benchmarks, and ours of the same name", "file; program; model; rates and " +
		"latencies; other values"},
	{"Charts", "has the first ten charts of the page", ""},
	{"Chart Data", "has their points", "the place; the value of each line"},
}

func kernelColumns(unit string) string {
	return strings.ReplaceAll("histogram; what it is; samples; p50#; p95#; p99#; below#", "#", unit)
}

// TestReference compares the page of the workbook's columns with columns.txt, with the tables of package report
// and with workbooks. With -update it writes the page.
func TestReference(t *testing.T) {
	var b strings.Builder
	b.WriteString("# The columns of the workbook\n\nWritten by `go test ./tools/view/xlsx -run Reference -update`. " +
		"`kvreport xlsx` writes the sheets for which the results have rows. Empty cells are unknown, or do not apply.\n\n" +
		"## Summary\n\nA row is a trial; of several ranks, their merged result. `kvreport csv` has the same columns. A value is a " +
		"key of the result ([meaning](../kvbench/RESULT.md#keys); those in `summary` are the Python benchmark's, see " +
		"[Result.Python](../kvbench/result/python.go)), a parameter ([meaning](../benchmarks/PARAMETERS.md)) or described here.\n\n" +
		"| column | value |\n|---|---|\n")
	docs := functions(t)
	for line := range strings.Lines(columnText) {
		title, from, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if ok && !strings.HasPrefix(title, "#") {
			b.WriteString("| " + title + " | " + source(strings.TrimSpace(from), docs) + " |\n")
		}
	}
	b.WriteString("\n## The other sheets\n\nAll but Run Parameters, Performance Metrics, Charts and Chart Data begin with Run, Benchmark and Trial. Times are ms or s, sizes " +
		"GiB, as the heads say; a spreadsheet shows shares in per cent.\n\n| sheet | it … | columns |\n|---|---|---|\n")
	sheets := map[string]string{"Summary": ""}
	for _, s := range slices.Concat(otherSheets[:3], sections(t), otherSheets[3:]) {
		b.WriteString("| " + s[0] + " | " + s[1] + " | " + s[2] + " |\n")
		sheets[s[0]] = s[2] + "; Run; Benchmark; Trial"
	}
	golden.Check(t, "../../../COLUMNS.md", b.String())

	for _, in := range [][]string{inputs, golden.Parts(t)} {
		f := open(t, in...)
		for _, name := range f.GetSheetList() {
			require.Contains(t, sheets, name)
			rows, err := f.GetRows(name)
			require.NoError(t, err)
			if slices.Contains([]string{"Summary", "Run Parameters", "Performance Metrics", "Timeline", "Charts",
				"Chart Data", "Block Hits By Time"}, name) {
				continue
			}
			for _, head := range rows[0] {
				assert.Contains(t, strings.Split(sheets[name], "; "), head, name)
			}
		}
	}
}

// source describes where a column's value comes from.
func source(from string, docs map[string]string) string {
	if doc := docs[from]; doc != "" {
		return doc
	}
	from, line, _ := strings.Cut(from, " | ")
	from, ours, _ := strings.Cut(from, " ? ")
	from, unit, _ := strings.Cut(from, " / ")
	kind, name, flag := strings.Cut(from, ":")
	switch {
	case flag && kind == "not":
		return "`-" + name + "=false`"
	case flag:
		return "`-" + name + "`"
	case ours != "":
		return "`" + ours + "` in ms"
	}
	text := "`" + from + "`"
	if unit != "" {
		text += " in " + unit
	}
	if line != "" {
		text += "; without a result file `" + line + "` of the benchmark line"
	}
	return text
}

// functions are the comments of the functions in the table special.
func functions(t *testing.T) map[string]string {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "columns.go", nil, parser.ParseComments)
	require.NoError(t, err)
	comments, docs := map[int]string{}, map[string]string{} // by the line below them; by name
	for _, c := range file.Comments {
		comments[files.Position(c.End()).Line+1] = c.Text()
	}
	ast.Inspect(file, func(n ast.Node) bool {
		pair, ok := n.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		key, ok := pair.Key.(*ast.BasicLit)
		if !ok || !strings.HasPrefix(key.Value, `"=`) {
			return true
		}
		doc := comments[files.Position(pair.Pos()).Line]
		if f, ok := pair.Value.(*ast.Ident); ok {
			doc = f.Obj.Decl.(*ast.FuncDecl).Doc.Text()
			_, doc, _ = strings.Cut(doc, " returns ")
		}
		name, err := strconv.Unquote(key.Value)
		require.NoError(t, err)
		require.NotEmpty(t, doc, "%s has no comment", name)
		docs[name] = sentence(doc)
		return true
	})
	assert.ElementsMatch(t, slices.Collect(maps.Keys(special)), slices.Collect(maps.Keys(docs)))
	return docs
}

// sentence is a comment as a cell of a table, without the full stop at its end.
func sentence(doc string) string {
	doc = strings.TrimSuffix(strings.Join(strings.Fields(doc), " "), ".")
	return strings.ToLower(doc[:1]) + doc[1:]
}

var unitNames = map[string]units.Unit{"Nanoseconds": units.Nanoseconds, "Milliseconds": units.Milliseconds,
	"Seconds": units.Seconds, "Bytes": units.Bytes, "BytesPerSec": units.BytesPerSec}

// sections are the tables of package report: the title, the comment of the function that makes it, and its columns.
func sections(t *testing.T) (list [][3]string) {
	names, err := filepath.Glob("../../../kvbench/report/*.go")
	require.NoError(t, err)
	var all []*ast.FuncDecl
	var parts *ast.FuncDecl
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		require.NoError(t, err)
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && !strings.HasSuffix(name, "_test.go") {
				all = append(all, f)
				if f.Name.Name == "partColumns" {
					parts = f
				}
			}
		}
	}
	for _, f := range all {
		title, columns := title(f), columnsOf(f.Body, parts)
		// What may be quoted is of several results and stands in no workbook.
		if title == "" || len(columns) == 0 || f.Name.Name == "Quote" {
			continue
		}
		_, doc, _ := strings.Cut(f.Doc.Text(), " ")
		list = append(list, [3]string{title, sentence(firstSentence.FindString(strings.TrimSpace(doc))),
			strings.Join(columns, "; ")})
	}
	return list
}

var firstSentence = regexp.MustCompile(`(?s)^.*?(\.\s|$)`)

// title is the text that a function gives the Title of a section.
func title(f *ast.FuncDecl) (title string) {
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Title" {
				title += literal(n.Value)
			}
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				if field, ok := to.(*ast.SelectorExpr); ok && field.Sel.Name == "Title" {
					title += literal(n.Rhs[i])
				}
			}
		}
		return true
	})
	return title
}

// columnsOf are the heads of the columns that a function makes. parts is the function partColumns.
func columnsOf(body ast.Node, parts *ast.FuncDecl) (heads []string) {
	add := func(args []ast.Expr, values bool) {
		unit := ""
		for i := 0; i < len(args); i++ {
			if u, ok := args[i].(*ast.SelectorExpr); ok && literal(args[i]) == "" && u.X.(*ast.Ident).Name == "units" {
				unit = sheetUnits[unitNames[u.Sel.Name]]
				continue
			}
			name := literal(args[i])
			if name != "" {
				heads = append(heads, name+unit)
			}
			if values && name != "" { // each name is followed by its value
				i++
			}
		}
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr: // a short form of the table
			key, ok := n.Key.(*ast.Ident)
			return !ok || key.Name != "Short"
		case *ast.AssignStmt: // another name of a column
			if field, ok := n.Lhs[0].(*ast.SelectorExpr); ok && field.Sel.Name == "Name" && literal(n.Rhs[0]) != "" {
				heads = append(heads, literal(n.Rhs[0])+" (GiB)")
			}
		case *ast.CallExpr:
			switch f := n.Fun.(type) {
			case *ast.Ident:
				switch f.Name {
				case "columns":
					add(n.Args, false)
				case "partColumns":
					heads = append(append(heads, literal(n.Args[0])), columnsOf(parts.Body, nil)...)
				}
			case *ast.SelectorExpr:
				if f.Sel.Name == "row" {
					add(n.Args, true)
				}
			}
		}
		return true
	})
	return heads
}

// literal is the text of a literal, "" for other expressions.
func literal(e ast.Expr) string {
	if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
		text, _ := strconv.Unquote(l.Value)
		return text
	}
	return ""
}

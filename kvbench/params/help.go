package params

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// defaults returns the text of the divisions' defaults, one value if all are equal, "" if the help text
// has them.
func (p *parameter) defaults(format string) string {
	switch {
	case p.has(action):
		return ""
	case p.uniform():
		return p.show(p.def[Quick])
	}
	return fmt.Sprintf(format, p.show(p.def[Quick]), p.show(p.def[Open]), p.show(p.def[Closed]))
}

// usage is the line of -help. Defaults stand in it as text, because there are three of them; the
// flag package would print what is typed.
func (p *parameter) usage() string {
	if text := p.defaults("quick %s, open %s, closed %s"); text != "" {
		return p.help + " (default " + text + ")"
	}
	return p.help
}

// WriteHelp prints the benchmarks, then the table of parameters in groups: what is in force, where
// it came from, the division's default and the meaning; then what the keys of the YAML file did. A
// filter leaves the benchmarks, groups and parameters that have it in their names.
func (v *Values) WriteHelp(w io.Writer, filter string) error {
	wanted := func(name string) bool {
		return strings.Contains(strings.ToLower(name), strings.ToLower(filter))
	}
	list := [][]string{{"benchmark", "what it does"}}
	for _, b := range benchmarks {
		if wanted(b.Name) {
			list = append(list, []string{b.Name, b.About})
		}
	}
	for _, row := range scenarioRows(v.scenarios) {
		if row[0] = "-scenario " + row[0]; wanted(row[0]) {
			list = append(list, row)
		}
	}
	rows := [][]string{{"parameter", "value", "from", "default", "meaning [applies to]"}}
	group := ""
	for _, p := range table {
		if p.has(action) || !wanted(p.name) && !wanted(p.group) {
			continue
		}
		if group != p.group {
			group = p.group
			rows = append(rows, []string{group})
		}
		def, help := p.show(p.def[v.Division]), p.help
		// Its default holds time and process: the table would differ with each run.
		if p.name == "results-dir" {
			def = "kvbench-results/…"
		}
		if p.scope != "" {
			help += " [" + p.scope + "]"
		}
		rows = append(rows, []string{"-" + p.name, p.show(v.text(p)),
			v.Origin(p.name).String(), def, help})
	}
	out := bufio.NewWriter(w)
	if len(list) > 1 {
		writeTable(out, list)
	} else if len(rows) == 1 {
		return fmt.Errorf("no benchmark, parameter or group of parameters has %q in its name: "+
			"-%s prints all of them", filter, helpFlag)
	}
	if len(rows) > 1 {
		title := "division " + string(v.Division)
		if notice := v.Notice(); notice != "" {
			title += ": " + notice
		}
		if v.Bench.Name != "" {
			title += ", Benchmark" + v.Bench.Name
		}
		fmt.Fprintf(out, "\n%s\n\n", title)
		writeTable(out, rows)
		fmt.Fprintf(out, "\nEnvironment: %s + the name in capitals, _ for -.\nPrecedence: sweep, "+
			"flag, environment, file, scenario, launcher, layout, engine, profile, benchmark, "+
			"division.\n", EnvPrefix)
	}
	if filter != "" {
		return out.Flush()
	}
	for i, p := range v.profileKeys() {
		if i == 0 {
			fmt.Fprintln(out, "\nkeys of the profile and the file:")
		}
		fmt.Fprintf(out, "  %s = %s (%s)\n", p.Name, p.Value, p.Origin)
	}
	// Python's keys that mean nothing here are listed, or their file would look obeyed.
	for i, name := range v.IdleKeys() {
		if i == 0 {
			fmt.Fprintln(out, "\naccepted without effect:")
		}
		fmt.Fprintf(out, "  %s: %s: %s\n", v.Origin(name), name, byName[name].help)
	}
	return out.Flush()
}

// Sizes of the table of -help-parameters in columns: of a line, of the widest cell for which all
// rows of its column have space, and of the text in the last column at least.
const (
	tableWidth  = 160
	cellWidth   = 30
	meaningLess = 48
)

// writeTable writes rows with aligned columns and folds the text of the last column. After a cell that
// is too long, such as a path, the row continues on the next line. A row of one cell is a heading.
func writeTable(w io.Writer, rows [][]string) {
	last := len(rows[0]) - 1
	ends := make([]int, last) // of the columns before the last
	end := 0
	for i := range ends {
		width := 0
		for _, row := range rows {
			if n := utf8.RuneCountInString(row[min(i, len(row)-1)]); len(row) > last && n <= cellWidth {
				width = max(width, n)
			}
		}
		end += width + 2
		ends[i] = end
	}
	for _, row := range rows {
		if len(row) <= last {
			fmt.Fprintf(w, "\n%s\n", row[0])
			continue
		}
		begin := 0
		for i, cell := range row[:last] {
			fmt.Fprintf(w, "%-*s", ends[i]-begin, cell)
			if utf8.RuneCountInString(cell) > ends[i]-begin-2 {
				fmt.Fprintf(w, "\n%*s", ends[i], "")
			}
			begin = ends[i]
		}
		lines := folded(row[last], max(tableWidth-end, meaningLess))
		fmt.Fprintln(w, strings.Join(lines, "\n"+strings.Repeat(" ", end)))
	}
}

// folded breaks text between words into lines of at most width runes where that is enough.
func folded(text string, width int) (lines []string) {
	for _, word := range strings.Fields(text) {
		n := len(lines) - 1
		if n >= 0 && utf8.RuneCountInString(lines[n]+" "+word) <= width {
			lines[n] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}

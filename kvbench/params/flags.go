package params

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"kvbench/kvbench/units"
)

// EnvPrefix begins the environment name of every parameter.
const EnvPrefix = "KVBENCH_"

// EnvName is the environment variable of a parameter: cache-dir is KVBENCH_CACHE_DIR.
func EnvName(parameter string) string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(parameter, "-", "_"))
}

// Set collects what was typed. Flags keep their text until Resolve, so that the flag package does
// not stop at the first bad one.
type Set struct {
	given map[string][]string
}

// Register defines the flags on fs. Call it before fs is parsed.
func Register(fs *flag.FlagSet) *Set {
	s := &Set{given: make(map[string][]string)}
	for i := range rows {
		p := &rows[i]
		// Any text is taken: what it means depends on the division, which another flag, the
		// environment or the file may set. Of a repeated flag the last counts, as everywhere in Go,
		// and of -sweep and of lists all.
		take := func(text string) error {
			if p.name != "sweep" && !p.has(many) {
				s.given[p.name] = nil
			}
			s.given[p.name] = append(s.given[p.name], text)
			return nil
		}
		if p.has(goFlag) {
			continue
		}
		// -precondition stands for -precondition=true, -help-parameters for all of them.
		if _, ok := p.value.(kind[bool]); ok || p.name == helpFlag {
			fs.BoolFunc(p.name, p.usage(), take)
		} else {
			fs.Func(p.name, p.usage(), take)
		}
	}
	return s
}

const helpFlag = "help-parameters"

// HelpRequested reports whether -help-parameters was given, and what has to be in the names that it
// prints, "" for all of them. It is called before anything is resolved: help must be had in spite
// of what is wrong.
func (s *Set) HelpRequested() (filter string, is bool) {
	filter = strings.Join(s.given[helpFlag], "")
	if all, err := strconv.ParseBool(filter); err == nil {
		return "", all
	}
	return filter, filter != ""
}

// VersionRequested reports whether -version was given.
func (s *Set) VersionRequested() bool {
	wanted, err := strconv.ParseBool(strings.Join(s.given["version"], ""))
	return err == nil && wanted
}

// Typed lists the flags that were typed, in the order of the table.
func (s *Set) Typed() (names []string) {
	for _, p := range rows {
		if len(s.given[p.name]) > 0 {
			names = append(names, p.name)
		}
	}
	return names
}

// UnknownEnvironment refuses variables that begin as those of parameters do and are none: one that
// is ignored would make a run of defaults that looks configured. They are as os.Environ has them;
// an empty one counts as not set.
func UnknownEnvironment(environ []string) (bad Violations) {
	var known []string
	for _, p := range rows {
		if !p.has(goFlag, action) {
			known = append(known, EnvName(p.name))
		}
	}
	for _, variable := range environ {
		name, text, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, EnvPrefix) || text == "" || slices.Contains(known, name) {
			continue
		}
		flag := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, EnvPrefix)), "_", "-")
		hint := units.Suggestion(name, known)
		if p := find(flag); p != nil { // Go's own, and what ends at once
			hint = ", but a flag: -" + flag
		} else if other := Instead[flag]; other != "" {
			hint = ": " + other
		}
		bad = append(bad, name+" (environment) is no parameter"+hint)
	}
	return bad
}

// Instead names the replacement of flags that are none here: of the Python benchmark's, and of
// those that were removed.
var Instead = map[string]string{
	"duration":        "it is -benchtime here, such as -benchtime 60s",
	"output":          "it is -results-dir here, a directory",
	"xlsx-output":     "it is go tool kvreport xlsx here",
	"use-burst-trace": "it is -bench BurstGPT with -burst-trace-path here",

	"evict-ttl":     "it was removed: entries leave in the order of -evict alone",
	"pin-tokens":    "it was removed: -evict lfu and s3-fifo keep what many requests use",
	"recycle":       "it was removed: -layout slots overwrites in place",
	"hosts":         removedLauncher,
	"ssh":           removedLauncher,
	"remote-binary": removedLauncher,
}

const removedLauncher = "it was removed: mpirun, srun, torchrun or Kubernetes start the ranks, and " +
	"-ranks starts those of this machine"

// usage is the line of -help. Defaults stand in it as text, because there are three of them; the
// flag package would print what is typed.
func (p *parameter) usage() string {
	var defaults []string
	for _, d := range divisions {
		defaults = append(defaults, string(d)+" "+p.show(p.def[d]))
	}
	switch {
	case p.has(action) || p.show(p.def[Quick]) == "":
		return p.help
	case p.uniform():
		return p.help + " (default " + p.show(p.def[Quick]) + ")"
	}
	return p.help + " (default " + strings.Join(defaults, ", ") + ")"
}

// WriteHelp prints the benchmarks, then the table of parameters in groups: what is in force, where
// it came from, the division's default and the meaning; then what the keys of the YAML file did. A
// filter leaves the benchmarks, groups and parameters that have it in their names.
func (v *Values) WriteHelp(w io.Writer, filter string) error {
	wanted := func(name string) bool {
		return strings.Contains(strings.ToLower(name), strings.ToLower(filter))
	}
	benchmarks := [][]string{{"benchmark", "what it does"}}
	for _, b := range Benchmarks() {
		if wanted(b.Name) {
			benchmarks = append(benchmarks, []string{b.Name, b.About()})
		}
	}
	table := [][]string{{"parameter", "value", "from", "default", "meaning [applies to]"}}
	group := ""
	for _, p := range v.rows {
		if p.has(action) || !wanted(p.name) && !wanted(p.group) {
			continue
		}
		if group != p.group {
			group = p.group
			table = append(table, []string{group})
		}
		def := p.show(p.def[v.Division])
		// Its default holds time and process: the table would differ with each run.
		if p.name == "results-dir" {
			def = "kvbench-results/…"
		}
		help := p.help
		if len(p.heard) > 0 {
			help += " [" + p.hearers() + "]"
		}
		table = append(table, []string{"-" + p.name, p.show(v.Text(p.name)),
			p.given.origin.String(), def, help})
	}
	out := bufio.NewWriter(w)
	if len(benchmarks) > 1 {
		writeTable(out, benchmarks)
	} else if len(table) == 1 {
		return fmt.Errorf("no benchmark, parameter or group of parameters has %q in its name: "+
			"-%s prints all of them", filter, helpFlag)
	}
	if len(table) > 1 {
		fmt.Fprintf(out, "\ndivision %s", v.Division)
		if notice := v.Notice(); notice != "" {
			fmt.Fprintf(out, ": %s", notice)
		}
		if v.Bench.Name != "" {
			fmt.Fprintf(out, ", Benchmark%s", v.Bench.Name)
		}
		fmt.Fprint(out, "\n\n")
		writeTable(out, table)
		fmt.Fprintf(out, "\nEnvironment: %s + the name in capitals, _ for -. Precedence: sweep, "+
			"flag, environment, file, benchmark, division.\n", EnvPrefix)
	}
	if filter != "" {
		return out.Flush()
	}
	for i, p := range v.profiles() {
		if i == 0 {
			fmt.Fprintln(out, "\nusers' profile:")
		}
		fmt.Fprintf(out, "  %s = %s (%s)\n", p.Name, p.Value, p.Origin)
	}
	// Python's keys that mean nothing here are said once more, or their file would look obeyed.
	for i, n := range v.Notes() {
		if i == 0 {
			fmt.Fprintf(out, "\naccepted without effect in %s:\n", v.ConfigFile)
		}
		fmt.Fprintf(out, "  line %s: %s: %s\n", n.Line, n.Key, n.Why)
	}
	return out.Flush()
}

// Sizes of the table of -help-parameters in columns: of a line, of a cell that all rows of its
// column make room for, and of the text in the last column, however little room the others leave.
const (
	tableWidth  = 160
	cellWidth   = 30
	meaningLess = 48
)

// writeTable aligns rows by what stands in them and folds the text of the last column into lines
// below each other. A longer cell, such as a path, ends its line: the rest follows on the next.
func writeTable(w io.Writer, rows [][]string) {
	last := len(rows[0]) - 1
	widths := make([]int, last)
	for _, row := range rows {
		for i, cell := range row[:min(last, len(row)-1)] {
			if n := utf8.RuneCountInString(cell); n <= cellWidth {
				widths[i] = max(widths[i], n)
			}
		}
	}
	column := 0
	for _, n := range widths {
		column += n + 2
	}
	for _, row := range rows {
		if len(row) <= last { // a heading
			fmt.Fprintf(w, "\n%s\n", row[0])
			continue
		}
		begin := 0 // the column at which the next cell stands
		for i, cell := range row[:last] {
			fmt.Fprintf(w, "%-*s", widths[i]+2, cell)
			begin += widths[i] + 2
			if utf8.RuneCountInString(cell) > widths[i] {
				fmt.Fprintf(w, "\n%*s", begin, "")
			}
		}
		for i, line := range folded(row[last], max(tableWidth-column, meaningLess)) {
			if i > 0 {
				fmt.Fprintf(w, "%*s", column, "")
			}
			fmt.Fprintln(w, line)
		}
	}
}

// folded breaks text between words, and a word that is too long behind its commas, into lines of at
// most width runes where that is enough.
func folded(text string, width int) []string {
	var lines []string
	line := ""
	add := func(word, space string) {
		if line != "" && utf8.RuneCountInString(line+space+word) > width {
			lines, line, space = append(lines, line), "", ""
		} else if line == "" {
			space = ""
		}
		line += space + word
	}
	for _, word := range strings.Fields(text) {
		if utf8.RuneCountInString(word) <= width {
			add(word, " ")
			continue
		}
		for i, part := range strings.SplitAfter(word, ",") {
			add(part, []string{" ", ""}[min(i, 1)])
		}
	}
	return append(lines, line)
}

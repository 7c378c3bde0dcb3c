package params

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
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
		if p := &rows[i]; !p.has(goFlag) {
			fs.Var(&flagText{s, p}, p.name, p.usage())
		}
	}
	return s
}

// HelpRequested tells whether -help-parameters was given.
func (s *Set) HelpRequested() bool {
	// Asked before anything is resolved: help must be had in spite of what is wrong.
	texts := s.given["help-parameters"]
	if len(texts) == 0 {
		return false
	}
	wanted, err := strconv.ParseBool(texts[len(texts)-1])
	return err == nil && wanted
}

// usage is the line of -help. Defaults stand in it as text, because there are three of them; the
// flag package would print what is typed.
func (p *parameter) usage() string {
	var b strings.Builder
	b.WriteString(p.help)
	switch {
	case p.has(action) || p.show(p.def[0]) == "":
	case p.uniform():
		b.WriteString(" (default " + p.show(p.def[0]) + ")")
	default:
		b.WriteString(" (default")
		for i, d := range divisions {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(" " + string(d) + " " + p.show(p.def[i]))
		}
		b.WriteString(")")
	}
	return b.String()
}

// flagText is the flag.Value of one parameter on the command line. It only keeps texts: what they
// mean depends on the division, which another flag, the environment or the file may set.
type flagText struct {
	set *Set
	p   *parameter
}

// String is asked by the flag package on a zero value too.
func (f *flagText) String() string {
	if f == nil || f.set == nil {
		return ""
	}
	return strings.Join(f.set.given[f.p.name], " ")
}

// Set takes any text, also a second one: the last counts, and of -sweep all.
func (f *flagText) Set(text string) error {
	f.set.given[f.p.name] = append(f.set.given[f.p.name], text)
	return nil
}

// IsBoolFlag lets -precondition stand for -precondition=true.
func (f *flagText) IsBoolFlag() bool {
	_, ok := f.p.value.(boolean)
	return ok
}

// WriteHelp prints the table of -help-parameters: what is in force, where it came from, the
// division's default and the meaning; then what the keys of the YAML file did.
func (v *Values) WriteHelp(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "division %s", v.Division)
	if notice := v.Division.Notice(); notice != "" {
		fmt.Fprintf(out, ": %s", notice)
	}
	if v.Bench.Name != "" {
		fmt.Fprintf(out, ", Benchmark%s", v.Bench.Name)
	}
	fmt.Fprint(out, "\n\n")
	// Columns are aligned by what is in force, which is why the table is not kept as text.
	tab := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "parameter\tvalue\tfrom\tdefault\tmeaning")
	for _, p := range v.rows {
		if p.has(action) {
			continue
		}
		def := p.show(p.def[v.Division.index()])
		// Its default holds time and process: the table would differ with each run.
		if p.name == "results-dir" {
			def = "kvbench-results/…"
		}
		fmt.Fprintf(tab, "-%s\t%s\t%s\t%s\t%s\n", p.name, p.show(v.Text(p.name)), v.Origin(p.name),
			def, p.help)
	}
	tab.Flush()
	fmt.Fprintf(out, "\nEnvironment: %s + the name in capitals, _ for -. Precedence: sweep, "+
		"flag, environment, file, benchmark, division.\n", EnvPrefix)
	if len(v.profiles) > 0 {
		fmt.Fprintln(out, "\nusers' profile:")
		for _, p := range v.profiles {
			fmt.Fprintf(out, "  %s = %s (%s)\n", p.Name, p.Value, p.Origin)
		}
	}
	// Python's keys that mean nothing here are said once more, or their file would look obeyed.
	first := true
	for _, n := range v.Notes {
		if n.Acts {
			continue
		}
		if first {
			fmt.Fprintf(out, "\naccepted without effect in %s:\n", v.ConfigFile)
			first = false
		}
		fmt.Fprintf(out, "  line %d: %s: %s\n", n.Line, n.Key, n.Why)
	}
	return out.Flush()
}

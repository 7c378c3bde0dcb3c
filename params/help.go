package params

import (
	"bufio"
	"fmt"
	"io"
	"text/tabwriter"
)

// WriteHelp prints the table of -help-parameters: what is in force, where it came from, the division's default and the
// meaning; then what the keys of the YAML file did.
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
	tab := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "parameter\tvalue\tfrom\tdefault\tmeaning")
	for _, p := range v.rows {
		if p.has(action) {
			continue
		}
		def := p.show(p.def[v.Division.index()])
		if p.name == "results-dir" {
			def = "kvbench-results/…"
		}
		fmt.Fprintf(tab, "-%s\t%s\t%s\t%s\t%s\n", p.name, p.show(v.Text(p.name)), v.Origin(p.name), def, p.help)
	}
	tab.Flush()
	fmt.Fprintf(out, "\nEnvironment: %s + the name in capitals, _ for -. Precedence: sweep, flag, environment, file, benchmark, division.\n", EnvPrefix)
	if len(v.profiles) > 0 {
		fmt.Fprintln(out, "\nusers' profile:")
		for _, p := range v.profiles {
			fmt.Fprintf(out, "  %s = %s (%s)\n", p.Name, p.Value, p.Origin)
		}
	}
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

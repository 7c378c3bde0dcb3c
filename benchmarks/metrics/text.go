package metrics

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// prefix keeps the names apart from those of the server beside which they are watched.
const prefix = "kvbench_"

// text is everything, in OpenMetrics or in the older format. The two differ in what a counter's
// metadata is called, and in how the end is told:
// https://github.com/prometheus/OpenMetrics/blob/v1.0.0/specification/OpenMetrics.md
func (s *Server) text(open bool) []byte {
	var b bytes.Buffer
	head := func(name, kind, unit, help string) {
		fmt.Fprintf(&b, "# TYPE %s %s\n", name, kind)
		if open && unit != "" {
			fmt.Fprintf(&b, "# UNIT %s %s\n", name, unit)
		}
		fmt.Fprintf(&b, "# HELP %s %s\n", name, help)
	}
	for _, f := range families {
		name, kind := prefix+f.name, "gauge"
		if f.unit != "" {
			name += "_" + f.unit
		}
		sample := name
		if !f.gauge {
			kind, sample = "counter", name+"_total"
			if !open {
				name = sample
			}
		}
		// All series of a family stand together, behind its metadata: both formats want that.
		begun := false
		for _, one := range s.series {
			f.of(one, func(v float64, labels ...string) {
				// A family of which there is nothing yet is left out.
				if !begun {
					head(name, kind, f.unit, f.help)
					begun = true
				}
				line(&b, sample, v, append([]string{"benchmark", one.benchmark,
					"rank", strconv.Itoa(one.rank)}, labels...))
			})
		}
	}
	build := prefix + "build"
	kind := "info"
	if !open { // which has no such type
		build, kind = build+"_info", "gauge"
	}
	head(build, kind, "", "The version that is running.")
	line(&b, prefix+"build_info", 1, []string{"version", s.build})
	if open {
		b.WriteString("# EOF\n")
	}
	return b.Bytes()
}

// escapes of label values are those of both formats.
var escapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

func line(b *bytes.Buffer, name string, v float64, labels []string) {
	b.WriteString(name)
	for i := 0; i < len(labels); i += 2 {
		fmt.Fprintf(b, `%c%s="%s"`, "{,"[min(i, 1)], labels[i], escapes.Replace(labels[i+1]))
	}
	fmt.Fprintf(b, "} %s\n", strconv.FormatFloat(v, 'g', -1, 64))
}

package discover

import (
	_ "embed"
	"fmt"
	"strings"
	"text/tabwriter"
	"text/template"

	"kvbench/kvbench/units"
)

//go:embed text.tmpl
var text string

var textTemplate = template.Must(template.New("text").Funcs(template.FuncMap{
	"size": size, "bytes": units.Bytes.Text, "join": strings.Join, "spin": spin,
}).Parse(text))

// Text is the description as text, one fact per line, so that diff can compare two machines.
func (h Hardware) Text() string {
	var out strings.Builder
	tab := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	_ = textTemplate.Execute(tab, h) // into memory; TestServer executes the whole template
	_ = tab.Flush()
	return out.String()
}

// Limited reports whether this process may use fewer logical CPUs than the machine has.
func (c CPU) Limited() bool { return c.AllowedCores < float64(c.Threads) }

// spin returns the words for whether a drive rotates, "" if unknown.
func spin(rotational *bool) string {
	if rotational == nil {
		return ""
	}
	return map[bool]string{true: ", rotating", false: ", not rotating"}[*rotational]
}

// Limits returns the known limits of the device's request queue as text.
func (d Device) Limits() string {
	var parts []string
	add := func(known bool, format string, v any) {
		if known {
			parts = append(parts, fmt.Sprintf(format, v))
		}
	}
	q := d.Queue
	add(q.Scheduler != "", "scheduler %s", q.Scheduler)
	add(q.MaxSectorsKB != nil, "at most %d KiB per request", units.OrZero(q.MaxSectorsKB))
	add(q.MaxSegments != nil, "segments %d", units.OrZero(q.MaxSegments))
	add(q.Requests != nil, "requests %d", units.OrZero(q.Requests))
	add(q.LogicalBlockSize != nil, "logical block %d B", units.OrZero(q.LogicalBlockSize))
	add(q.WriteCache != "", "write cache %s", q.WriteCache)
	return strings.Join(parts, ", ")
}

func size(n *int64) string {
	if n == nil {
		return "unknown size"
	}
	return units.Bytes.Text(*n)
}

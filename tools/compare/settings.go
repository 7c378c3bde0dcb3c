package compare

import (
	"fmt"
	"slices"
	"strings"

	"kvbench/kvbench"
	"kvbench/tools/input"
)

// settings are what defines the meaning of a result's numbers. Results that differ in one of them are shown side by side
// but never compared.
func settings(rec *input.Record) map[string]string {
	s := map[string]string{}
	switch {
	case rec.Python:
		s["I/O"], s["decode reads"], s["device time of writes"] = "buffered", "batched", kvbench.WriteDeviceFlush
	case rec.Result != nil:
		r := rec.Result
		s["division"], s["I/O"], s["decode reads"], s["device time of writes"] = r.Division, r.IO.Mode, r.Workload.DecodeReads, r.IO.WriteDevice
	default:
		for _, c := range rec.Config {
			switch c.Key {
			case "division":
				s["division"] = string(c.Value)
			case "io":
				s["I/O"] = string(c.Value)
			case "decode-reads":
				s["decode reads"] = string(c.Value)
			}
		}
	}
	return s
}

// differences says in which settings two sets of trials differ: "I/O is direct and buffered". A setting that one side does
// not tell is no difference.
func differences(a, b []*input.Record) string {
	var parts []string
	for _, key := range []string{"division", "I/O", "decode reads", "device time of writes"} {
		x, y := values(a, key), values(b, key)
		if len(x) > 0 && len(y) > 0 && !slices.Equal(x, y) {
			parts = append(parts, fmt.Sprintf("%s is %s and %s", key, strings.Join(x, "+"), strings.Join(y, "+")))
		}
	}
	return strings.Join(parts, ", ")
}

func values(trials []*input.Record, key string) (out []string) {
	for _, rec := range trials {
		if v := settings(rec)[key]; v != "" && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return out
}

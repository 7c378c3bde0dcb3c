package tracing

import (
	"fmt"
	"strings"
)

// fieldOffsets reads where the fields of a tracepoint lie in its records, from the format file of tracefs:
//
//	field:dev_t dev;	offset:8;	size:4;	signed:0;
func fieldOffsets(format string, names ...string) ([]uint32, error) {
	at := map[string]uint32{}
	for l := range strings.Lines(format) {
		declaration, rest, ok := strings.Cut(strings.TrimSpace(l), ";")
		declaration, isField := strings.CutPrefix(declaration, "field:")
		if !ok || !isField {
			continue
		}
		var offset uint32
		if _, err := fmt.Sscanf(strings.TrimSpace(rest), "offset:%d;", &offset); err != nil {
			continue
		}
		name := declaration[strings.LastIndexAny(declaration, " *")+1:]
		name, _, _ = strings.Cut(name, "[")
		at[name] = offset
	}
	out := make([]uint32, len(names))
	for i, n := range names {
		offset, ok := at[n]
		if !ok {
			return nil, fmt.Errorf("the tracepoint has no field %s", n)
		}
		out[i] = offset
	}
	return out, nil
}

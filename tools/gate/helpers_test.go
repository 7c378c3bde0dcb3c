package gate

import (
	"golang.org/x/perf/benchfmt"

	"kvbench/kvbench"
)

// knownUnits are the Unit lines of the suite.
func knownUnits() benchfmt.UnitMetadataMap {
	m := make(benchfmt.UnitMetadataMap)
	for _, d := range kvbench.UnitDirections() {
		key := benchfmt.UnitMetadataKey{Unit: d.Unit, Key: "better"}
		m[key] = &benchfmt.UnitMetadata{UnitMetadataKey: key, OrigUnit: d.Unit, Value: d.Better}
	}
	return m
}

package units

// Unit directions, as Unit lines name them.
const (
	HigherIsBetter = "higher"
	LowerIsBetter  = "lower"
)

// UnitDirection tells which direction of a metric is an improvement.
type UnitDirection struct{ Unit, Better string }

// UnitDirections are those of every unit on the suite's benchmark lines, in the order of their Unit lines. Units of the
// testing package (ns/op) have theirs already.
func UnitDirections() []UnitDirection {
	return []UnitDirection{
		{"req/s", HigherIsBetter}, {"tok/s", HigherIsBetter}, {"storage-tok/s", HigherIsBetter},
		{"read-B/s", HigherIsBetter}, {"write-B/s", HigherIsBetter},
		{"read-p50-ns", LowerIsBetter}, {"read-p95-ns", LowerIsBetter}, {"read-p99-ns", LowerIsBetter}, {"write-p95-ns", LowerIsBetter},
		{"read-ns/MiB", LowerIsBetter}, {"e2e-p95-ns", LowerIsBetter},
		{"hit-ratio", HigherIsBetter}, {"served-ratio", HigherIsBetter},
		{"sustained-users", HigherIsBetter}, {"peak-B/s", HigherIsBetter},
		{"cpu-ns/B", LowerIsBetter}, {"peak-RSS-bytes", LowerIsBetter},
		{"device-read-ratio", HigherIsBetter}, {"ceiling-ratio", HigherIsBetter},
		{"copy-B/s", HigherIsBetter}, {"gen-B/s", HigherIsBetter}, {"gen-copy-ratio", HigherIsBetter},
		{"zstd-ratio", HigherIsBetter}, {"duplicate-blocks", LowerIsBetter},
	}
}

package lint

import (
	"cmp"
	"slices"
	"strings"
	"testing"
)

// mayImport is the packages of this module that a package may import: workloads and tracing import
// no other folder, tiers import them, kvbench joins all three, and no other package imports
// benchmarks or tools. Each folder has a package of plain types, which the others of the folder
// import. "x/..." is x and all packages below it.
var mayImport = map[string]string{
	"tracing":           "",
	"tracing/bpf":       "",
	"tracing/host":      "tracing",
	"tracing/nvml":      "tracing/host",
	"tracing/collector": "tracing tracing/host tracing/bpf",
	"tracing/fio":       "tracing",

	"workloads":            "workloads/model",
	"workloads/model":      "",
	"workloads/compute":    "",
	"workloads/checkpoint": "",
	"workloads/users":      "workloads workloads/model",
	"workloads/formats":    "workloads",
	"workloads/traces":     "workloads workloads/users workloads/formats",
	"workloads/iotrace":    "workloads workloads/formats",

	"tiers":               "",
	"tiers/clock":         "",
	"tiers/buffer":        "tiers",
	"tiers/content":       "tiers",
	"tiers/ioengine/ring": "",
	"tiers/ioengine":      "tiers tiers/ioengine/ring",
	"tiers/workdir":       "tiers tracing/host",
	"tiers/filetier":      "tiers tiers/buffer tiers/ioengine tiers/workdir tracing/host",
	"tiers/spread":        "tiers tiers/filetier",
	"tiers/memtier":       "tiers tiers/buffer",
	"tiers/gputier":       "tiers tiers/buffer tiers/memtier tracing/host",
	"tiers/sim":           "tiers tiers/clock",
	"tiers/transfer":      "tiers tiers/clock tiers/buffer",
	"tiers/cache":         "tiers tiers/clock tiers/evict",
	"tiers/evict":         "",
	"tiers/privtest":      "",
	"tiers/faults":        "tiers",
	"tiers/tiertest":      "tiers",

	"tiers/objecttier":        "tiers tiers/buffer tiers/clock tiers/workdir tiers/objecttier/store",
	"tiers/objecttier/store":  "tiers/clock",
	"tiers/objecttier/s3test": "",

	"kvbench/units":   "",
	"kvbench/result":  "kvbench/units tracing tracing/host",
	"kvbench/report":  "kvbench/units kvbench/result/... tracing tracing/fio",
	"kvbench/verdict": "kvbench/units kvbench/result",
	"kvbench/record": "kvbench/units kvbench/result/... kvbench/verdict tiers/... tracing " +
		"workloads workloads/model workloads/compute",
	"kvbench/group": "kvbench/units kvbench/result tracing/host",
	"kvbench/merge": "kvbench/params kvbench/units kvbench/result/... kvbench/verdict tracing",
	"kvbench/params": "kvbench/units kvbench/result kvbench/group " +
		"tiers tiers/evict workloads workloads/model workloads/compute workloads/checkpoint " +
		"workloads/users workloads/formats tracing/host",
	"kvbench": "kvbench/units kvbench/result kvbench/record kvbench/group " +
		"tiers/... tracing/... workloads " +
		"workloads/iotrace",
	"kvbench/requests": "kvbench kvbench/units kvbench/record kvbench/result/... tiers/... " +
		"workloads/...",
	"kvbench/checkpoint": "kvbench kvbench/units kvbench/record kvbench/result tiers/... " +
		"workloads workloads/checkpoint tracing/host",
	"kvbench/plainio": "kvbench kvbench/units kvbench/record kvbench/result tiers/... " +
		"workloads workloads/iotrace workloads/users",

	"benchmarks":     "kvbench/... workloads/... tiers/... tracing/...",
	"benchmarks/e2e": "kvbench/... tools/golden tools/submission",

	"tools/kvreport": "tools/... kvbench/units kvbench/merge kvbench/report " +
		"kvbench/result tracing/...",
	"tools/load":      "kvbench/units kvbench/result/... kvbench/merge kvbench/params tracing",
	"tools/stats":     "tools/load kvbench/units kvbench/result kvbench/report kvbench/merge",
	"tools/gate":      "tools/load tools/stats kvbench/units kvbench/merge kvbench/report",
	"tools/view":      "tools/load tools/stats kvbench/units kvbench/result kvbench/report tracing",
	"tools/view/html": "tools/view tools/load tools/stats kvbench/units",
	"tools/view/xlsx": "tools/view tools/load tools/stats kvbench/units kvbench/report " +
		"kvbench/result kvbench/merge",
	"tools/submission": "tools/discover kvbench/units kvbench/result " +
		"kvbench/params kvbench/merge",
	"tools/discover": "tracing/... kvbench/params kvbench/result " +
		"kvbench/units",
	"tools/sizing": "tools/load tools/stats kvbench/units kvbench/result kvbench/params tiers " +
		"tiers/buffer tiers/workdir tracing/host workloads/users",
	"tools/curve":  "kvbench/params kvbench/units kvbench/report tools/view workloads/...",
	"tools/dedup":  "kvbench/units",
	"tools/golden": "",
	"tools/lint":   "",
}

// onlyTests are packages that help tests; only tests and each other may import them.
var onlyTests = []string{"tiers/privtest", "tiers/faults", "tiers/tiertest", "tools/golden",
	"tiers/objecttier/s3test"}

// level is the height of a folder: tests may import folders at the same level and below.
var level = map[string]int{"workloads": 0, "tracing": 0, "tiers": 1, "kvbench": 2, "benchmarks": 3,
	"tools": 3}

func TestImportsGoOneWay(t *testing.T) {
	found := map[string]bool{}
	for _, f := range goFiles(t) {
		found[f.dir()] = true
		if _, known := mayImport[f.dir()]; !known {
			t.Errorf("%s: no row in mayImport", f.dir())
		}
		for _, imported := range f.imports {
			if to, ours := strings.CutPrefix(imported, "kvbench/"); ours && !f.mayImport(to) {
				t.Errorf("%s imports %s, but %s may import only: %s", f.path, to, f.dir(),
					cmp.Or(mayImport[f.dir()], "nothing of this module"))
			}
		}
	}
	for dir := range mayImport {
		if !found[dir] {
			t.Errorf("%s: has a row in mayImport, but does not exist", dir)
		}
	}
}

func (f goFile) mayImport(to string) bool {
	from := f.dir()
	if matches(mayImport[from], to) {
		return true
	}
	if !f.isTest() && !slices.Contains(onlyTests, from) {
		return false
	}
	return to == from || slices.Contains(onlyTests, to) ||
		level[folder(to)] <= level[folder(from)] && folder(to) != "benchmarks"
}

func folder(dir string) string { first, _, _ := strings.Cut(dir, "/"); return first }

// matches reports whether a list of patterns includes a package.
func matches(list, dir string) bool {
	for pattern := range strings.FieldsSeq(list) {
		parent, tree := strings.CutSuffix(pattern, "/...")
		if dir == parent || tree && strings.HasPrefix(dir, parent+"/") {
			return true
		}
	}
	return false
}

package lint

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// mayImport is which packages of this module a package may import: workloads and tracing know
// nobody, tiers stand on them, kvbench joins them, benchmarks and tools stand at the edge and are
// imported by nobody else. Each folder opens with a package of nouns, which the others of the
// folder import, not the other way round. "x/..." is x and all below it.
var mayImport = map[string]string{
	"tracing":           "",
	"tracing/bpf":       "",
	"tracing/host":      "tracing",
	"tracing/collector": "tracing tracing/host tracing/bpf",
	"tracing/fio":       "tracing",

	"workloads":            "workloads/model",
	"workloads/model":      "",
	"workloads/compute":    "",
	"workloads/checkpoint": "",
	"workloads/profile":    "workloads",
	"workloads/users": "workloads workloads/model workloads/profile workloads/formats " +
		"workloads/sessions",
	"workloads/formats":  "workloads",
	"workloads/sessions": "workloads workloads/profile workloads/formats",
	"workloads/traces":   "workloads workloads/profile workloads/formats workloads/sessions",
	"workloads/iotrace":  "workloads workloads/formats",
	"workloads/reuse":    "workloads/formats workloads/model",

	"tiers":               "",
	"tiers/clock":         "",
	"tiers/buffer":        "tiers",
	"tiers/content":       "tiers",
	"tiers/ioengine/ring": "",
	"tiers/ioengine":      "tiers tiers/ioengine/ring",
	"tiers/workdir":       "tiers tracing/host",
	"tiers/ranks":         "tiers tiers/spread",
	"tiers/filetier":      "tiers tiers/buffer tiers/ioengine tiers/workdir tracing/host",
	"tiers/enginetier":    "tiers tiers/buffer tiers/ioengine tiers/workdir tracing/host",
	"tiers/spread":        "tiers",
	"tiers/memtier":       "tiers tiers/buffer",
	"tiers/sim":           "tiers tiers/clock",
	"tiers/transfer":      "tiers tiers/clock tiers/buffer tiers/content",
	"tiers/cache":         "tiers tiers/clock tiers/transfer tiers/evict",
	"tiers/evict":         "",
	"tiers/objecttier": "tiers tiers/clock tiers/workdir tiers/objecttier/store " +
		"tiers/objecttier/endpoint",
	"tiers/objecttier/store": "tiers/clock tiers/objecttier/endpoint " +
		"tiers/objecttier/credentials",
	"tiers/objecttier/endpoint":    "",
	"tiers/objecttier/credentials": "",
	"tiers/privtest":               "",
	"tiers/faults":                 "tiers",
	"tiers/tiertest":               "tiers",

	"tiers/objecttier/s3double": "tiers/objecttier/s3double/wire " +
		"tiers/objecttier/s3double/testnet",
	"tiers/objecttier/s3double/wire":    "",
	"tiers/objecttier/s3double/testnet": "",
	"tiers/objecttier/s3double/serve":   "tiers/objecttier/s3double",
	"tiers/objecttier/s3gateway":        "tiers/objecttier/s3double/testnet",
	"tiers/objecttier/s3test":           "",

	"kvbench/units":         "",
	"kvbench/version":       "",
	"kvbench/result":        "kvbench/units kvbench/result/python tracing",
	"kvbench/result/python": "",
	"kvbench/report": "kvbench/units kvbench/result/... kvbench/report/... tracing " +
		"tracing/fio",
	"kvbench/report/checkpoints": "kvbench/units kvbench/result",
	"kvbench/report/plain":       "kvbench/units kvbench/result",
	"kvbench/ranking":            "kvbench/units kvbench/result kvbench/contrast kvbench/report",
	"kvbench/verdict":            "kvbench/units kvbench/result",
	"kvbench/contrast":           "kvbench/units",
	"kvbench/record": "kvbench/units kvbench/result/... kvbench/verdict tiers tracing workloads " +
		"workloads/model workloads/compute",
	"kvbench/objects": "kvbench/units kvbench/result tiers/objecttier " +
		"tiers/objecttier/credentials tiers/objecttier/endpoint tiers/objecttier/store workloads",
	"kvbench/group":            "kvbench/result",
	"kvbench/group/launchers":  "",
	"kvbench/group/wire":       "",
	"kvbench/group/agent":      "",
	"kvbench/group/rendezvous": "",
	"kvbench/group/coordinate": "kvbench/group kvbench/group/wire",
	"kvbench/merge":            "kvbench/units kvbench/result/... tracing",
	"kvbench/merge/settings":   "kvbench/params kvbench/result",
	"kvbench/merge/tree":       "kvbench/merge/settings kvbench/result",
	"kvbench/merge/summary":    "kvbench/merge kvbench/merge/tree kvbench/units kvbench/result/...",
	"kvbench/environment":      "kvbench/result tracing/host",
	"kvbench/params": "kvbench/units kvbench/result kvbench/group/launchers " +
		"kvbench/group/rendezvous tiers workloads workloads/model workloads/compute workloads/checkpoint workloads/profile " +
		"workloads/formats tracing/host",
	"kvbench": "kvbench/units kvbench/result kvbench/record kvbench/objects kvbench/group " +
		"kvbench/environment kvbench/version tiers/... tracing/... workloads " +
		"workloads/iotrace",
	"kvbench/requests": "kvbench kvbench/units kvbench/record kvbench/result/... tiers/... " +
		"workloads/...",
	"kvbench/checkpoint": "kvbench kvbench/units kvbench/record kvbench/result tiers/... " +
		"workloads workloads/checkpoint tracing/host",
	"kvbench/plainio": "kvbench kvbench/units kvbench/record kvbench/result tiers/... " +
		"workloads workloads/iotrace workloads/profile",

	"benchmarks": "benchmarks/pattern benchmarks/bucket benchmarks/clients benchmarks/launch " +
		"benchmarks/metrics kvbench/... workloads/... tiers/... tracing/...",
	"benchmarks/pattern": "kvbench/units",
	"benchmarks/launch":  "kvbench/version",
	"benchmarks/metrics": "kvbench kvbench/record kvbench/result tiers",

	"benchmarks/metrics/expfmttest": "",

	"benchmarks/clients": "kvbench kvbench/group/... kvbench/merge/... kvbench/result " +
		"kvbench/params kvbench/version tracing/host",
	"benchmarks/bucket": "kvbench kvbench/params tiers/objecttier " +
		"tiers/objecttier/credentials tiers/objecttier/endpoint tiers/objecttier/store",
	"benchmarks/e2e": "kvbench/... tools/golden tools/submission",
	"benchmarks/e2e/objectloop": "tiers tiers/clock tiers/objecttier " +
		"tiers/objecttier/credentials tiers/objecttier/endpoint tiers/objecttier/store",

	"tools/kvreport":  "tools/... kvbench/units kvbench/version kvbench/merge/... workloads/model",
	"tools/load":      "kvbench/units kvbench/result kvbench/merge/... kvbench/params tracing",
	"tools/stats":     "tools/load kvbench/contrast kvbench/units kvbench/result kvbench/merge/... tracing",
	"tools/gate":      "tools/load tools/stats kvbench/contrast kvbench/units kvbench/merge/...",
	"tools/view":      "tools/load tools/stats kvbench/contrast kvbench/units kvbench/result kvbench/report",
	"tools/view/html": "tools/view tools/load tools/stats kvbench/units",
	"tools/view/xlsx": "tools/view tools/load tools/stats kvbench/units kvbench/report " +
		"kvbench/result kvbench/merge/settings",
	"tools/submission": "kvbench/version tools/load tools/stats tools/view/... tools/discover " +
		"kvbench/units kvbench/result kvbench/params kvbench/merge/...",
	"tools/discover": "tracing/... kvbench/params kvbench/environment kvbench/result " +
		"kvbench/units",
	"tools/sizing": "tools/load tools/stats kvbench/units kvbench/result kvbench/params tiers " +
		"tiers/buffer tiers/workdir tracing/host workloads/profile workloads/users",
	"tools/convert": "kvbench/units workloads/...",
	"tools/curve": "kvbench/units kvbench/report tools/view workloads/formats workloads/model " +
		"workloads/reuse workloads/traces",
	"tools/dedup":  "kvbench/units",
	"tools/trace":  "tools/load kvbench/units kvbench/report kvbench/result tracing/...",
	"tools/golden": "",
	"tools/lint":   "",
}

// onlyTests help tests, and are imported by nothing else.
var onlyTests = []string{"tiers/privtest", "tiers/faults", "tiers/tiertest", "tools/golden",
	"tiers/objecttier/s3double", "tiers/objecttier/s3double/wire",
	"tiers/objecttier/s3double/testnet", "tiers/objecttier/s3gateway"}

// never are imports that a package must not reach by any way: who reads a result links neither an
// engine nor a loader of programs into the kernel, who makes requests knows no storage.
var never = map[string]string{
	"kvbench/result": "tiers/... tracing/bpf tracing/host tracing/collector tracing/fio " +
		"github.com/cilium/ebpf/...",
	"workloads/...": "kvbench/... tiers/... tracing/...",
}

// floor is the height of a folder: tests may import what lies beside and below.
var floor = map[string]int{"workloads": 0, "tracing": 0, "tiers": 1, "kvbench": 2, "benchmarks": 3,
	"tools": 3}

func TestImportsClimbOneWay(t *testing.T) {
	wrong := map[string]string{}
	found := map[string]bool{}
	for _, s := range sources(t) {
		found[s.dir()] = true
		if _, known := mayImport[s.dir()]; !known {
			wrong[s.dir()] = "no row in mayImport of tools/lint/imports_test.go: say what it may " +
				"import, and put it into the package map"
			continue
		}
		for _, imported := range s.imports {
			if to, ours := strings.CutPrefix(imported, module+"/"); ours && !admitted(s, to) {
				arrow := s.dir() + " → " + to
				wrong[arrow] = fmt.Sprintf("in %s: %s may import %s; move what is needed to a "+
					"package that both may know", s.path, s.dir(),
					cmp.Or(mayImport[s.dir()], "nothing of this module"))
			}
		}
	}
	for dir := range mayImport {
		if !found[dir] {
			wrong[dir] = "a row in mayImport, and no such package: take it out"
		}
	}
	judge(t, "import", wrong)
}

// admitted tells whether a file may import a package of this module.
func admitted(s *source, to string) bool {
	from := s.dir()
	switch {
	case matches(mayImport[from], to):
		return true
	case s.isTest() || slices.Contains(onlyTests, from):
		below := floor[top(to)] <= floor[top(from)] && top(to) != "benchmarks"
		return to == from || slices.Contains(onlyTests, to) || below
	}
	return false
}

func top(dir string) string { first, _, _ := strings.Cut(dir, "/"); return first }

// matches tells whether a list of packages names one.
func matches(list, dir string) bool {
	for pattern := range strings.FieldsSeq(list) {
		below, all := strings.CutSuffix(pattern, "/...")
		if pattern == dir || all && (dir == below || strings.HasPrefix(dir, below+"/")) {
			return true
		}
	}
	return false
}

// TestTheTableHasNoCircle: the go command would find one in the code, this finds the permission to
// make one.
func TestTheTableHasNoCircle(t *testing.T) {
	const open, done = 1, 2
	state := map[string]int{}
	var visit func(dir string, way []string)
	visit = func(dir string, way []string) {
		if state[dir] == open {
			t.Errorf("a circle: %s", strings.Join(append(way, dir), " → "))
		}
		if state[dir] != 0 {
			return
		}
		state[dir] = open
		for to := range mayImport {
			if to != dir && matches(mayImport[dir], to) {
				visit(to, append(way, dir))
			}
		}
		state[dir] = done
	}
	for _, dir := range slices.Sorted(maps.Keys(mayImport)) {
		visit(dir, nil)
	}
}

func TestWhoReadsResultsLinksNoEngine(t *testing.T) {
	imports := map[string]map[string]bool{}
	for _, s := range sources(t) {
		if s.isTest() {
			continue
		}
		if imports[s.dir()] == nil {
			imports[s.dir()] = map[string]bool{}
		}
		for _, i := range s.imports {
			imports[s.dir()][strings.TrimPrefix(i, module+"/")] = true
		}
	}
	var reach func(dir string, seen map[string]bool)
	reach = func(dir string, seen map[string]bool) {
		for to := range imports[dir] {
			if !seen[to] {
				seen[to] = true
				reach(to, seen)
			}
		}
	}
	for pattern, banned := range never {
		for dir := range imports {
			if !matches(pattern, dir) {
				continue
			}
			seen := map[string]bool{}
			reach(dir, seen)
			for to := range seen {
				assert.False(t, matches(banned, to), "%s reaches %s: only %s may", dir, to,
					"what it may not know")
			}
		}
	}
}

func TestPatternsOfPackages(t *testing.T) {
	assert.True(t, matches("tiers tracing/...", "tracing"))
	assert.True(t, matches("tiers tracing/...", "tracing/host"))
	assert.False(t, matches("tiers tracing/...", "tiers/cache"))
	assert.False(t, matches("", "tiers"))
	assert.Equal(t, "tools", top(path.Join("tools", "view", "html")))
}

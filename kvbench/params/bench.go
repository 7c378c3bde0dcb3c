package params

import (
	"cmp"
	_ "embed"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"kvbench/kvbench/result"
)

// Division says how much freedom a run has.
type Division string

// The divisions. Quick is small and short, Open lets everything be set, Closed is the MLPerf
// parameters and nothing else.
const (
	Quick  Division = result.DivisionQuick
	Open   Division = result.DivisionOpen
	Closed Division = result.DivisionClosed
)

// divisions is the order of the defaults in the table.
var divisions = [...]Division{Quick, Open, Closed}

// Load says where a benchmark's requests come from.
type Load uint8

// The loads.
const (
	LoadNone   Load = iota // no requests: tiers, data generation, the ceiling
	LoadUsers              // synthetic users
	LoadTrace              // a request trace
	LoadReplay             // an I/O trace: operations rather than requests
)

var loads = []string{"", "users", "trace", "replay"}

// Bench is a benchmark, with the texts of the parameters that it sets in each division.
type Bench struct {
	Name   string // without the word Benchmark
	Option int    // the MLPerf option, 0 = none
	Load   Load   // where requests come from
	Needs  string // a parameter without which it skips
	About  string // what it does, in one sentence
	set    map[Division]map[string]string
}

//go:embed benchmarks.txt
var benchmarksText string

var benchmarks = func() (list []Bench) {
	for line := range strings.Lines(benchmarksText) {
		columns := strings.Split(strings.TrimSpace(line), " |")
		if len(columns) == 1 {
			continue // a comment
		}
		load, option, _ := strings.Cut(strings.TrimSpace(columns[1]), " option ")
		b := Bench{Name: columns[0], Load: Load(slices.Index(loads, load)),
			Needs: strings.TrimSpace(columns[2]), About: strings.TrimSpace(columns[7]),
			set: make(map[Division]map[string]string)}
		for i, d := range divisions {
			b.set[d] = settings(columns[3] + " " + columns[4+i])
		}
		if b.Option, _ = strconv.Atoi(option); b.Option > 0 {
			b.set[Closed] = b.set[Open]
		}
		list = append(list, b)
	}
	return list
}()

// settings reads name=text pairs.
func settings(column string) map[string]string {
	m := make(map[string]string)
	for pair := range strings.FieldsSeq(column) {
		name, text, _ := strings.Cut(pair, "=")
		m[name] = text
	}
	return m
}

// Benchmarks returns all benchmarks that take parameters, in the order in which they run.
func Benchmarks() []Bench { return slices.Clone(benchmarks) }

// Benchmark finds a benchmark by its name without the word Benchmark.
func Benchmark(name string) (Bench, bool) {
	for _, b := range benchmarks {
		if b.Name == name {
			return b, true
		}
	}
	return Bench{}, false
}

// Blocks reports whether the requests are from a block trace.
func (b Bench) Blocks() bool { return b.Needs == "block-trace-path" }

// Checkpoints reports whether the benchmark writes and reads checkpoints of a model, or one stream.
func (b Bench) Checkpoints() bool { return b.Name == "Checkpoint" || b.Name == streamBench }

const streamBench = "CheckpointStream"

// MLPerfProfile are users as MLPerf's program has them, which imitate no service.
const MLPerfProfile = "mlperf"

//go:embed profiles.yaml
var profilesText []byte

// profiles are the settings of each word of -profile.
var profiles = func() (all map[string]map[string]string) {
	if err := yaml.Unmarshal(profilesText, &all); err != nil {
		panic(err)
	}
	return all
}()

// settingsOfProfile are the texts that a profile sets in a division: in quick, whose window is
// shorter than a think time, there is none.
func settingsOfProfile(name string, d Division) map[string]string {
	set := maps.Clone(profiles[name])
	if d == Quick && len(set) > 0 {
		set["trace-speedup"] = "0"
	}
	return set
}

// profilesHelp is what each profile sets.
func profilesHelp() string {
	list := []string{MLPerfProfile + ": MLPerf's users, nothing is set"}
	for _, name := range []string{"chat", "agentic", "rag"} {
		var pairs []string
		for _, key := range slices.Sorted(maps.Keys(profiles[name])) {
			pairs = append(pairs, key+" "+profiles[name][key])
		}
		list = append(list, name+": "+strings.Join(pairs, ", "))
	}
	return strings.Join(list, "; ") + ". In quick the last three set trace-speedup 0, too"
}

// OfSessions reports whether the users are sessions of a profile.
func (v *Values) OfSessions() bool {
	return v.Bench.Name == "Synthetic" && v.ProfileName != MLPerfProfile
}

// SessionBlock is how many tokens the blocks of a profile's sessions have: an engine's objects,
// else LMCache's chunks of 256.
func (v *Values) SessionBlock() int { return cmp.Or(v.CutTokens(), 256) }

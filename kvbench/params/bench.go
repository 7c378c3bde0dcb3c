package params

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"

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

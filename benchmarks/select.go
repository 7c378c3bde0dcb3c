package benchmarks

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kvbench/benchmarks/pattern"
	"kvbench/kvbench/params"
	"kvbench/tiers"
	"kvbench/tracing/host"
)

// patterns are -bench and -skip. An empty -skip skips nothing.
func (s *session) patterns(sweep []string) (bench, skip pattern.Pattern, err error) {
	bench, err = pattern.Read("-bench", pattern.Arrange(s.pattern, sweep))
	if err == nil && s.skip != "" {
		skip, err = pattern.Read("-skip", pattern.Arrange(s.skip, sweep))
	}
	return bench, skip, err
}

// selectBenchmarks lists the benchmarks whose top-level name -bench matches and -skip leaves, in
// the order of the table, which is that of the functions in the package. The error says what there
// is when there is none.
func (s *session) selectBenchmarks() (list []params.Bench, err error) {
	bench, skip, err := s.patterns(nil)
	if err != nil {
		return nil, err
	}
	all := params.Benchmarks()
	// Each alternative for itself: the other ones would hide the slip in one.
	for i, alternative := range bench {
		if !slices.ContainsFunc(all, func(b params.Bench) bool {
			matches, _ := bench.Matches(i, []string{"Benchmark" + b.Name})
			return matches
		}) {
			var names []string
			for _, b := range all {
				names = append(names, b.Name)
			}
			return nil, pattern.None(alternative.Text, "benchmark", names)
		}
	}
	for _, b := range all {
		name := "Benchmark" + b.Name
		for i := range bench {
			if matches, _ := bench.Matches(i, []string{name}); matches && !skip.Skips(name) {
				list = append(list, b)
				break
			}
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("-skip %s leaves nothing of -bench %s", s.skip, s.pattern)
	}
	return list, nil
}

// ownNames are the names of a benchmark's own sub-benchmarks, one empty name without any. They are
// told here too, so that a pattern that selects none of them is answered before anything runs; sub
// holds the benchmarks to it.
func ownNames(v *params.Values) (names []string) {
	switch v.Bench.Name {
	case "StorageCeiling":
		for _, op := range ceilings {
			names = append(names, "op="+op)
		}
		return names
	case "Tier":
		for _, tier := range []tiers.Kind{tiers.GPU, tiers.CPU, tiers.Storage} {
			for _, op := range []tiers.Op{tiers.Write, tiers.Read} {
				for _, size := range tierSizes(v.Division) {
					names = append(names, tierName(tier, op, size))
				}
			}
		}
		return names
	}
	return []string{""}
}

// ceilings are the parts of StorageCeiling. Those that remove come last: what a filesystem discards
// afterwards would slow the others.
var ceilings = []string{"read", "write", "mixed", "churn", "delete"}

func tierName(tier tiers.Kind, op tiers.Op, size int64) string {
	return fmt.Sprintf("tier=%s/op=%s/size=%dMiB", tier, op, size>>20)
}

// tierSizes are the sizes of the entries of Tier.
func tierSizes(d params.Division) []int64 {
	sizes := []int64{1 << 20, 16 << 20, 256 << 20}
	if d == params.Quick {
		return sizes[:2]
	}
	return sizes
}

// leaves are what -bench selects of the names that have no sub-benchmarks.
type leaves struct {
	sweep  []string        // keys of all benchmarks
	served map[string]bool // alternatives that select some
	near   []string        // all that there are
	ran    bool            // -skip leaves some
}

// add takes in those of a benchmark at all points of its sweep, and tells whether any is to run.
// The testing package calls a benchmark also to see whether the rest of a pattern lies below, which
// here would be a trial without a line.
func (l *leaves) add(s *session, base *params.Values) (runs bool) {
	sweep := keys(base.Sweep)
	bench, skip, err := s.patterns(sweep)
	if err != nil {
		return false
	}
	l.sweep = sweep
	for _, v := range base.Points {
		for _, own := range ownNames(v) {
			// The keys of a sweep stand before the benchmark's own, as each and sub make them.
			full := "Benchmark" + v.Bench.Name
			for _, part := range []string{v.Point, own} {
				if part != "" {
					full += "/" + part
				}
			}
			l.near = append(l.near, strings.TrimPrefix(full, "Benchmark"))
			name := strings.Split(full, "/")
			for i, alternative := range bench {
				if matches, below := bench.Matches(i, name); !matches || below {
					continue
				}
				if l.served == nil {
					l.served = map[string]bool{}
				}
				l.served[alternative.Text] = true
				skipped := false // with what lies above it
				for n := range name {
					skipped = skipped || skip.Skips(name[:n+1]...)
				}
				runs = runs || !skipped
			}
		}
	}
	l.ran = l.ran || runs
	return runs
}

// keys are what is swept.
func keys(sweep []params.Axis) (names []string) {
	for _, a := range sweep {
		names = append(names, a.Key)
	}
	return names
}

// check says which alternative selects nothing.
func (l *leaves) check(s *session) error {
	alternatives := pattern.Split(s.pattern, '|')
	for i, arranged := range pattern.Split(pattern.Arrange(s.pattern, l.sweep), '|') {
		// One without a slash has its benchmark, which -skip may have taken out.
		if !l.served[arranged] && len(pattern.Split(arranged, '/')) > 1 {
			return pattern.None(alternatives[i], "sub-benchmark", l.near)
		}
	}
	if !l.ran {
		return fmt.Errorf("-skip %s leaves nothing of -bench %s", s.skip, s.pattern)
	}
	return nil
}

// flagValue is a flag of the testing package, which has them all.
func flagValue(name string) string { return flag.Lookup(name).Value.String() }

// readCPUs reads Go's -cpu. The testing package would refuse what is no list of numbers too, but
// by itself, after the header and with the exit code of a failure.
func readCPUs(list string) (cpus []int, bad params.Violations) {
	for text := range strings.SplitSeq(list, ",") {
		text = strings.TrimSpace(text)
		n, err := strconv.Atoi(text)
		switch {
		case text == "": // which the testing package passes over
		case err != nil || n < 1:
			return nil, params.Violations{fmt.Sprintf("-cpu: must be numbers of at least 1 with "+
				"commas between them, given %s (flag)", list)}
		default:
			cpus = append(cpus, n)
		}
	}
	return cpus, nil
}

// trial counts the calls of a benchmark. The testing package calls it -count times for each of
// -cpu, in that order, so -cpu 1,2 -count 2 are two trials with one processor and two with two:
// benchmarks of their own, with the suffix that their lines have.
//
// It also sets the processors: a call with N=1 serves the testing package to find out what there is
// before it sets those of the first entry, and in this suite that call is a trial.
func (s *session) trial(name string) (number int, suffix string) {
	calls := s.calls[name]
	s.calls[name]++
	if len(s.cpus) == 0 {
		return calls, ""
	}
	count, _ := strconv.Atoi(flagValue("test.count"))
	count = max(1, count)
	n := s.cpus[min(calls/count, len(s.cpus)-1)]
	runtime.GOMAXPROCS(n)
	if len(s.cpus) > 1 && n != 1 {
		suffix = fmt.Sprintf("-%d", n)
	}
	return calls % count, suffix
}

// spareProcs is by how many GOMAXPROCS exceeds the cores while a trial moves bytes. A goroutine in
// a system call keeps its processor until the runtime's monitor takes it away, which may be 10 ms
// later, and others wait for it meanwhile. Measured on two cores with 16 requests of 1 MiB at a
// time: writes 6 % faster than without, and 16 spare ones no better than 4.
const spareProcs = 4

// chosenProcs tells whether the user chose the number of processors, who then keeps it.
func (s *session) chosenProcs() bool { return len(s.cpus) > 0 || os.Getenv("GOMAXPROCS") != "" }

// boundProcs brings GOMAXPROCS below a container's quota, past which threads that run at a time are
// throttled inside the window.
func (s *session) boundProcs() {
	if !s.chosenProcs() {
		n, _ := host.Procs(runtime.NumCPU())
		runtime.GOMAXPROCS(n)
	}
}

// spare adds the spare processors, as far as a container's quota leaves room for them, and returns
// the way back. The quota is asked anew for each trial: it may change while the process runs. The
// runtime would follow it, but not any more once the testing package has set the processors, and it
// rounds it up.
func (s *session) spare(v *params.Values) (restore func()) {
	if s.chosenProcs() || v.Simulated() {
		return func() {}
	}
	n, _ := host.Procs(runtime.NumCPU() + spareProcs)
	runtime.GOMAXPROCS(n)
	return s.boundProcs
}

// sub runs a sub-benchmark, if -bench selects it.
func (s *session) sub(b *testing.B, v *params.Values, name string, f func(*testing.B)) {
	if name != v.Point && !slices.Contains(ownNames(v), name) {
		b.Fatalf("%s is not among the names that -bench is compared with: see ownNames", name)
	}
	b.Run(name, func(b *testing.B) {
		defer s.watch(b)
		f(b)
	})
}

// watch notes at the end of a benchmark that it failed. The testing package would forget it of all
// calls of -count and -cpu but the first: it prints their FAIL, then PASS, and returns 0.
func (s *session) watch(b *testing.B) { s.failed = s.failed || b.Failed() }

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

	"kvbench/kvbench/params"
	"kvbench/kvbench/units"
	"kvbench/tiers"
	"kvbench/tracing/host"
)

// choice is what -bench and -skip select.
type choice struct {
	bench, skip pattern
	served      map[string]bool // alternatives of -bench that select a leaf
	near        []string        // the names of all leaves
}

// readChoice reads both patterns.
func readChoice() (c *choice, err error) {
	c = &choice{served: map[string]bool{}}
	if c.bench, err = readPattern("-bench", flagValue("test.bench")); err == nil {
		c.skip, err = readPattern("-skip", flagValue("test.skip"))
	}
	return c, err
}

// benchmarks lists those whose top-level name -bench matches and -skip leaves, in the order of the
// table, which is that of the functions in the package. The error names all benchmarks.
func (c *choice) benchmarks() (list []params.Bench, err error) {
	matched := map[string]bool{}
	var names []string
	for _, b := range params.Benchmarks() {
		names = append(names, b.Name)
		if c.bench.selects(matched, false, "Benchmark"+b.Name) && !c.skip.skips("Benchmark"+b.Name) {
			list = append(list, b)
		}
	}
	// Each alternative by itself: the other ones would hide the slip in one.
	for _, a := range c.bench {
		if !matched[a.text] {
			return nil, nothingSelected(a.text, "benchmark", names)
		}
	}
	if len(list) == 0 {
		return nil, errNothingLeft()
	}
	return list, nil
}

func errNothingLeft() error {
	return fmt.Errorf("-skip %s leaves nothing of -bench %s", flagValue("test.skip"),
		flagValue("test.bench"))
}

// leaf has a line of its own: a benchmark at a point of its sweep, or a part of it there.
type leaf struct {
	v    *params.Values
	part string // "" of a benchmark without parts
}

// path is its name below the benchmark's: the keys of a sweep stand before the benchmark's own.
func (l leaf) path() string { return strings.Trim(l.v.Point+"/"+l.part, "/") }

// leaves are the chosen ones of a benchmark.
func (c *choice) leaves(base *params.Values) (chosen []leaf) {
	var keys []string
	for _, axis := range base.Sweep {
		keys = append(keys, axis.Key)
	}
	bench, skip := c.bench.swept(keys), c.skip.swept(keys)
	for _, v := range base.Points {
		for _, part := range parts(v) {
			l := leaf{v, part}
			name := strings.TrimSuffix(v.Bench.Name+"/"+l.path(), "/")
			c.near = append(c.near, name)
			elements := strings.Split("Benchmark"+name, "/")
			if bench.selects(c.served, true, elements...) && !skip.skips(elements...) {
				chosen = append(chosen, l)
			}
		}
	}
	return chosen
}

// check returns the alternative that selects no leaf. One that names a benchmark only has it, even
// if -skip takes it out.
func (c *choice) check() error {
	for _, a := range c.bench {
		if a.deep() && !c.served[a.text] {
			return nothingSelected(a.text, "sub-benchmark", c.near)
		}
	}
	return nil
}

// parts are the names of a benchmark's own sub-benchmarks, one empty name without any.
func parts(v *params.Values) (names []string) {
	switch v.Bench.Name {
	case "StorageCeiling":
		return ceilings
	case "BlockIO":
		for _, part := range blockParts(v.Division) {
			names = append(names, part.String())
		}
		return names
	case "Knee":
		// No mix of both: where a drive bends with it lies between them, and engines set the two
		// apart.
		return []string{"op=read", "op=write"}
	case "Checkpoint", "CheckpointStream":
		return checkpointParts(v)
	case "Tier":
		for _, part := range tierParts(v.Division) {
			names = append(names, part.String())
		}
		return names
	}
	return []string{""}
}

// ceilings are the parts of StorageCeiling. Those that remove come last: what a filesystem discards
// afterwards would slow the others.
var ceilings = []string{"op=read", "op=write", "op=mixed", "op=churn", "op=delete"}

// tierPart is a part of Tier: one tier, one direction, entries of so many bytes.
type tierPart struct {
	tier tiers.Kind
	op   tiers.Op
	size int64
}

func (p tierPart) String() string {
	return fmt.Sprintf("tier=%s/op=%s/size=%dMiB", p.tier, p.op, p.size>>20)
}

func tierParts(d params.Division) (list []tierPart) {
	sizes := []int64{1 << 20, 16 << 20, 256 << 20}
	if d == params.Quick {
		sizes = sizes[:2]
	}
	for _, tier := range []tiers.Kind{tiers.GPU, tiers.CPU, tiers.Storage} {
		for _, op := range []tiers.Op{tiers.Write, tiers.Read} {
			for _, size := range sizes {
				list = append(list, tierPart{tier, op, size})
			}
		}
	}
	return list
}

// blockPart is a part of BlockIO: one direction, blocks of so many bytes.
type blockPart struct {
	op   tiers.Op
	size int64
}

func (p blockPart) String() string {
	return fmt.Sprintf("op=%s/size=%s", p.op, units.FormatSize(p.size))
}

// mostBlock is the size of the largest blocks: of an entry of a few dozen tokens.
const mostBlock = 4 << 20

// blockParts are the parts of BlockIO. Sizes are four times each other: between two of them a drive
// does nothing that their line does not tell, and twice as many would take twice as long. Quick has
// three of them, which are those of a page, of a layer and of a chunk.
func blockParts(d params.Division) (list []blockPart) {
	step := int64(4)
	if d == params.Quick {
		step = 16
	}
	for _, op := range []tiers.Op{tiers.Read, tiers.Write} {
		for size := int64(4 << 10); size <= mostBlock; size *= step {
			list = append(list, blockPart{op, size})
		}
	}
	return list
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

// watch notes at the end of a benchmark that it failed. The testing package would forget it of all
// calls of -count and -cpu but the first: it prints their FAIL, then PASS, and returns 0.
func (s *session) watch(b *testing.B) {
	s.failed = s.failed || b.Failed()
	if s.ctx.Err() != nil {
		// It asks before each call how many there are: those that are left would each fail for the
		// same reason, and wait for the collector before.
		_ = flag.Set("test.count", "0")
	}
}

// chosen reports whether a part of a benchmark at a point of its sweep has a line.
func (s *session) chosen(v *params.Values, part string) bool {
	return slices.ContainsFunc(s.leaves[v.Bench.Name],
		func(l leaf) bool { return l.v == v && l.part == part })
}

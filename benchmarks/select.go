package benchmarks

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"regexp"
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

// pattern is a -bench or a -skip as the testing package reads it: alternatives, each of elements
// that match a name between its slashes.
type pattern []struct {
	text     string
	elements []*regexp.Regexp
}

func readPattern(flag, text string) (p pattern, err error) {
	alternatives := splitTop(text, '|')
	p = make(pattern, len(alternatives))
	for i, alternative := range alternatives {
		p[i].text = alternative
		for _, element := range splitTop(alternative, '/') {
			re, err := regexp.Compile(element)
			if err != nil {
				return nil, fmt.Errorf("%s %q: %w", flag, text, err)
			}
			p[i].elements = append(p[i].elements, re)
		}
	}
	return p, nil
}

// matches tells whether an alternative matches the elements of a name, and whether it has more
// than these: what it means then lies below.
func (p pattern) matches(i int, name []string) (matches, below bool) {
	for n, re := range p[i].elements[:min(len(name), len(p[i].elements))] {
		if !re.MatchString(name[n]) {
			return false, false
		}
	}
	return true, len(p[i].elements) > len(name)
}

// skips tells whether the pattern, one of -skip, takes a name out.
func (p pattern) skips(name ...string) bool {
	for i := range p {
		if matches, below := p.matches(i, name); matches && !below {
			return true
		}
	}
	return false
}

// patterns are -bench and -skip. An empty -skip skips nothing.
func (s *session) patterns(sweep []params.Axis) (bench, skip pattern, err error) {
	bench, err = readPattern("-bench", arrange(s.pattern, sweep))
	if err == nil && s.skip != "" {
		skip, err = readPattern("-skip", arrange(s.skip, sweep))
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
			matches, _ := bench.matches(i, []string{"Benchmark" + b.Name})
			return matches
		}) {
			var names []string
			for _, b := range all {
				names = append(names, b.Name)
			}
			return nil, nothing(alternative.text, "benchmark", names)
		}
	}
	for _, b := range all {
		name := "Benchmark" + b.Name
		for i := range bench {
			if matches, _ := bench.matches(i, []string{name}); matches && !skip.skips(name) {
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

// nothing says that an alternative of -bench selects none of a few names, the nearest first.
func nothing(alternative, what string, names []string) error {
	word := strings.Trim(alternative, "^$()")
	word = strings.TrimPrefix(word, "Benchmark")
	distance := func(name string) int {
		_, d := units.Nearest(word, []string{name})
		return d
	}
	names = slices.Clone(names)
	slices.SortStableFunc(names, func(a, b string) int { return distance(a) - distance(b) })
	const most = 20
	more := ""
	if n := len(names) - most; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("-bench %s selects no %s; there are, the nearest first, %s%s", alternative,
		what, strings.Join(names[:min(most, len(names))], ", "), more)
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
	sweep  []params.Axis   // of all benchmarks
	served map[string]bool // alternatives that select some
	near   []string        // all that there are
	ran    bool            // -skip leaves some
}

// add takes in those of a benchmark at all points of its sweep, and tells whether any is to run.
// The testing package calls a benchmark also to see whether the rest of a pattern lies below, which
// here would be a trial without a line.
func (l *leaves) add(s *session, base *params.Values) (runs bool) {
	bench, skip, err := s.patterns(base.Sweep)
	if err != nil {
		return false
	}
	l.sweep = base.Sweep
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
				if matches, below := bench.matches(i, name); !matches || below {
					continue
				}
				if l.served == nil {
					l.served = map[string]bool{}
				}
				l.served[alternative.text] = true
				skipped := false // with what lies above it
				for n := range name {
					skipped = skipped || skip.skips(name[:n+1]...)
				}
				runs = runs || !skipped
			}
		}
	}
	l.ran = l.ran || runs
	return runs
}

// check says which alternative selects nothing.
func (l *leaves) check(s *session) error {
	alternatives := splitTop(s.pattern, '|')
	for i, arranged := range splitTop(arrange(s.pattern, l.sweep), '|') {
		// One without a slash has its benchmark, which -skip may have taken out.
		if !l.served[arranged] && len(splitTop(arranged, '/')) > 1 {
			return nothing(alternatives[i], "sub-benchmark", l.near)
		}
	}
	if !l.ran {
		return fmt.Errorf("-skip %s leaves nothing of -bench %s", s.skip, s.pattern)
	}
	return nil
}

// arrange puts the elements of a -bench pattern where they are in the names of a sweep, whose keys
// stand before the benchmark's own: with -sweep io-depth=1,2 there is
// StorageCeiling/io-depth=1/op=read, which StorageCeiling/op=read means. A pattern with an element
// whose key cannot be told, such as .*, stays as it was typed.
func arrange(pattern string, sweep []params.Axis) string {
	alternatives := splitTop(pattern, '|')
	for n, alternative := range alternatives {
		elements := splitTop(alternative, '/')
		swept, own, told := make([]string, len(sweep)), []string(nil), len(elements) > 1
		for _, e := range elements[1:] {
			key := elementKey.FindStringSubmatch(e)
			i := slices.IndexFunc(sweep,
				func(a params.Axis) bool { return key != nil && a.Key == key[1] })
			switch {
			case key == nil || i >= 0 && swept[i] != "": // or said twice
				told = false
			case i < 0:
				own = append(own, e)
			default:
				swept[i] = e
			}
		}
		if !told {
			continue
		}
		// Elements that were not typed match anything; behind the last typed one none is needed.
		all := append(swept, own...)
		for all[len(all)-1] == "" {
			all = all[:len(all)-1]
		}
		for i, e := range all {
			all[i] = cmp.Or(e, ".")
		}
		alternatives[n] = strings.Join(append(elements[:1:1], all...), "/")
	}
	return strings.Join(alternatives, "|")
}

// elementKey is what an element of a pattern begins with, be it anchored or grouped.
var elementKey = regexp.MustCompile(`^\^?\(?(?:\?:)?([a-z][a-z0-9-]*)=`)

// splitTop cuts s at sep where it stands outside brackets and parentheses, as the testing package
// cuts a pattern: (a/b|c) is one element.
func splitTop(s string, sep byte) []string {
	var parts []string
	depth, square, from := 0, 0, 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case c == '[':
			square++
		case c == ']' && square > 0:
			square--
		case c == '(' && square == 0:
			depth++
		case c == ')' && square == 0 && depth > 0:
			depth--
		case c == sep && depth == 0 && square == 0:
			parts = append(parts, s[from:i])
			from = i + 1
		}
	}
	return append(parts, s[from:])
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

package benchmarks

import (
	"cmp"
	"flag"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kvbench/kvbench/params"
)

// selectBenchmarks lists the benchmarks whose top-level name a -test.bench
// pattern matches, as the testing package does: alternatives at the top level
// are patterns of their own, and only what stands before the first slash
// concerns the function's name.
func selectBenchmarks(pattern string) ([]params.Bench, error) {
	var names []*regexp.Regexp
	for _, alternative := range splitTop(pattern, '|') {
		re, err := regexp.Compile(splitTop(alternative, '/')[0])
		if err != nil {
			return nil, fmt.Errorf("-bench %q: %w", pattern, err)
		}
		names = append(names, re)
	}
	// The order is that of the table, which is the order of the functions in the package.
	return slices.DeleteFunc(params.Benchmarks(), func(b params.Bench) bool {
		return !slices.ContainsFunc(names,
			func(re *regexp.Regexp) bool { return re.MatchString("Benchmark" + b.Name) })
	}), nil
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

// readGoFlags takes the window and the trials from Go's own flags, if typed: flag.Visit passes over
// what only has its default.
func readGoFlags(in *params.Inputs) {
	flag.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "test.benchtime":
			in.BenchTime = f.Value.String()
		case "test.count":
			in.Count, _ = strconv.Atoi(f.Value.String())
		}
	})
}

// readCPUs reads Go's -cpu. What is no list of numbers the testing package refuses itself.
func readCPUs(list string) (cpus []int) {
	for text := range strings.SplitSeq(list, ",") {
		if n, err := strconv.Atoi(strings.TrimSpace(text)); err == nil && n > 0 {
			cpus = append(cpus, n)
		}
	}
	return cpus
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

// spare adds the spare processors and returns the way back, after which the runtime follows the
// machine by itself again. Who chose the number of processors keeps it: the user, or a container's
// quota, past which threads that run at a time are throttled inside the window.
func (s *session) spare(v *params.Values) (restore func()) {
	n := runtime.GOMAXPROCS(0)
	if len(s.cpus) > 0 || n != runtime.NumCPU() || v.Simulated() {
		return func() {}
	}
	runtime.GOMAXPROCS(n + spareProcs)
	return runtime.SetDefaultGOMAXPROCS
}

// sub runs a sub-benchmark, if -bench selects it, and remembers its name: see unmatched. The
// testing package does not tell what a pattern left out, and a typing mistake in one would look
// like success.
func (s *session) sub(b *testing.B, name string, f func(*testing.B)) {
	full := b.Name() + "/" + name
	if !slices.Contains(s.offered, full) {
		s.offered = append(s.offered, full)
	}
	b.Run(name, func(b *testing.B) {
		s.ran[full] = true
		f(b)
	})
}

// unmatched lists the sub-benchmarks of functions of which -bench selects none: those that have no
// sub-benchmark that ran. Only those count of which nothing is known to lie below.
func (s *session) unmatched() []string {
	leaves := slices.DeleteFunc(slices.Clone(s.offered), func(name string) bool {
		return slices.ContainsFunc(s.offered,
			func(other string) bool { return strings.HasPrefix(other, name+"/") })
	})
	served := map[string]bool{} // functions of which something ran
	function := func(name string) string { return strings.SplitN(name, "/", 2)[0] }
	for _, name := range leaves {
		served[function(name)] = served[function(name)] || s.ran[name]
	}
	return slices.DeleteFunc(leaves, func(name string) bool { return served[function(name)] })
}

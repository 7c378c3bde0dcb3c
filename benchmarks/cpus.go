package benchmarks

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
)

// readCPUs reads Go's -cpu. What is no list of numbers the testing package refuses itself.
func readCPUs(list string) (cpus []int) {
	for text := range strings.SplitSeq(list, ",") {
		if n, err := strconv.Atoi(strings.TrimSpace(text)); err == nil && n > 0 {
			cpus = append(cpus, n)
		}
	}
	return cpus
}

// trial counts the calls of a benchmark. The testing package calls it -count times for each of -cpu, in that order, so -cpu 1,2
// -count 2 are two trials with one processor and two with two: benchmarks of their own, with the suffix that their lines have.
//
// It also sets the processors: a call with N=1 serves the testing package to find out what there is before it sets those of the
// first entry, and in this suite that call is a trial.
func (s *session) trial(name string) (number int, suffix string) {
	calls := s.calls[name]
	s.calls[name]++
	if len(s.cpus) == 0 {
		return calls, ""
	}
	count, err := strconv.Atoi(flagValue("test.count"))
	if err != nil || count < 1 {
		count = 1
	}
	n := s.cpus[min(calls/count, len(s.cpus)-1)]
	runtime.GOMAXPROCS(n)
	if len(s.cpus) > 1 && n != 1 {
		suffix = fmt.Sprintf("-%d", n)
	}
	return calls % count, suffix
}

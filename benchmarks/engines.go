package benchmarks

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kvbench/kvbench/params"
	"kvbench/kvbench/result"
)

// engines is the body of Engines: each line is an engine or a layout on the same trace. Trials of
// all lines take turns: package testing asks for all of a line before the next one's, and a drive
// that is slower by the hour would rank them. So what a trial came to waits for its line's turn.
func engines(b *testing.B) {
	each(b, result.BenchmarkEngines, func(b *testing.B, v *params.Values, _ string) {
		number, suffix := current.trial(b.Name())
		name := strings.TrimPrefix(b.Name(), "Benchmark") + suffix
		current.inTurns(b, name, number, suffix).tell(b)
	})
}

// inTurns runs trials in the order of their turns until the one that is asked for has run.
func (s *session) inTurns(b *testing.B, name string, number int, suffix string) outcome {
	leaves := s.leaves[result.BenchmarkEngines]
	for {
		if o, ran := s.waited(name, number); ran {
			return o
		}
		at := s.turns[suffix]
		s.turns[suffix]++
		round := at / len(leaves)
		// Every line has as many trials: what is asked for lies in this round or an earlier one.
		if round > number { // the names that package testing makes are not ours
			return outcome{err: fmt.Errorf("%s is none of the lines that take turns",
				trialName(name, number))}
		}
		l := leaves[turn(uint64(leaves[0].v.Seed), round, len(leaves))[at%len(leaves)]]
		next := result.BenchmarkEngines + "/" + l.path() + suffix
		s.waiting[trialName(next, round)] = s.measure(b, l.v, next, round, requestsBody(l.v))
	}
}

// trialName is the key of session.waiting.
func trialName(name string, number int) string { return fmt.Sprintf("%s trial %d", name, number) }

// waited takes the outcome of a trial that ran before its line's turn.
func (s *session) waited(name string, number int) (o outcome, ran bool) {
	o, ran = s.waiting[trialName(name, number)]
	delete(s.waiting, trialName(name, number))
	return o, ran
}

// turn is the order of a round's lines: drawn anew for every second round, which goes through them
// as drawn, and back in the one after it. What drifts evenly within the two meets all lines alike,
// and who comes after whom is another matter in each.
func turn(seed uint64, round, lines int) []int {
	order := rand.New(rand.NewPCG(seed, uint64(round/2))).Perm(lines)
	if round%2 == 1 {
		slices.Reverse(order)
	}
	return order
}

// rank shows how the engines compare, and keeps it next to their results.
func (s *session) rank() error {
	text := ranking(s.results)
	if text == "" {
		return nil
	}
	fmt.Fprint(os.Stderr, text)
	dir := s.leaves[result.BenchmarkEngines][0].v.ResultsDir
	_, err := soon(func() (struct{}, error) {
		return struct{}{}, os.WriteFile(filepath.Join(dir, "ranking.txt"),
			[]byte(strings.TrimPrefix(text, "\n")), 0o666)
	})
	return err
}

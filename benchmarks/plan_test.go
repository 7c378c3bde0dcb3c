package benchmarks

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/params"
	"kvbench/kvbench/result"
	"kvbench/tracing/host"
)

// TestPatternsOfSweeps: the keys of a sweep stand in the names before the benchmark's own elements, and
// may be left out of a pattern.
func TestPatternsOfSweeps(t *testing.T) {
	const point = "io-depth=1/chunk-size=2MiB"
	const name = "StorageCeiling/" + point + "/op=read"
	for typed, want := range map[string]bool{
		"StorageCeiling":                                    true,
		"StorageCeiling/op=read":                            true,
		"StorageCeiling/op=write":                           false,
		"StorageCeiling/io-depth=1/op=read":                 true,
		"StorageCeiling/io-depth=2/op=read":                 false,
		"StorageCeiling/op=read/io-depth=1":                 false,
		"StorageCeiling/chunk-size=2MiB":                    true,
		"StorageCeiling/io-depth=(1|2)$/chunk-size=2/op=r":  true,
		"^BenchmarkStorageCeiling$/^op=read$":               true,
		"^Tier$/^tier=cpu$/op=read|StorageCeiling/^op=[rw]": true,
		"StorageCeiling/.*/.*/op=read":                      true,
		"StorageCeiling/io-depth=1/io-depth=2":              false,
		"StorageCeiling/op=read/size=1":                     false,
		"(Ceiling|Tier)/op=read":                            true,
		"(a/b|c)/chunk-size=2":                              true,
		"Storage[a-z/C]+/chunk-size=2":                      true,
	} {
		p, err := readPattern("-bench", typed)
		require.NoError(t, err)
		assert.Equal(t, want, p.matches(point, name), typed)
	}
	p, err := readPattern("-bench", "StorageCeiling/op=read")
	require.NoError(t, err)
	assert.False(t, p.matches("", "StorageCeiling"), "what lies below is not all of it")
	assert.True(t, p.matches("", "StorageCeiling/op=read"))
}

// order are the trials of a plan in the order in which they run when the testing package calls for all of
// a line before those of the next one. A line whose first trial fails is not called again.
func order(p *plan, fails ...string) (names []string) {
	for _, l := range p.lines {
		for _, t := range l.trials {
			if t != l.trials[0] && l.trials[0].outcome.err != nil {
				break
			}
			t.run(func(t *trial) (o outcome) {
				names = append(names, fmt.Sprint(t.name, " ", t.number))
				if slices.Contains(fails, t.name) {
					o.err = errors.New("failed")
				}
				return o
			})
		}
	}
	return names
}

// planOf is the plan of one benchmark for a pattern.
func planOf(t *testing.T, v *params.Values, pattern string, parts ...part) *plan {
	t.Helper()
	p := &plan{cpus: []int{1, 2}}
	bench, err := readPattern("-bench", pattern)
	require.NoError(t, err)
	v.Points = []*params.Values{v}
	names := p.add(v, Suite{v.Bench.Name: func(*params.Values) []part { return parts }}, bench, nil)
	assert.Len(t, names, len(parts))
	p.schedule(2)
	return p
}

// TestWhatIsReadIsWrittenBefore, also where that has no line, and is read at once.
func TestWhatIsReadIsWrittenBefore(t *testing.T) {
	v := &params.Values{Bench: params.Bench{Name: "X"}}
	parts := []part{{name: "op=write"}, {name: "op=read", follows: true}}
	both := "write 0, read 0, write 1, read 1, write-2 0, read-2 0, write-2 1, read-2 1"
	for pattern, c := range map[string]struct {
		lines, group int
		want         string
	}{
		"X":          {2, 2, both},
		"X/op=write": {1, 1, "write 0, write 1, write-2 0, write-2 1"},
		"X/op=read":  {1, 2, both},
	} {
		p := planOf(t, v, pattern, parts...)
		require.Len(t, p.lines, c.lines, pattern)
		assert.Len(t, p.lines[0].group, c.group, pattern)
		for _, l := range p.lines {
			require.Len(t, l.trials, 4)
			for i, tr := range l.trials {
				assert.Equal(t, 1+i/2, tr.procs)
				require.Equal(t, l.follows, tr.source != nil)
				if tr.source != nil {
					assert.Equal(t, tr.number, tr.source.number)
				}
			}
		}
		assert.Equal(t, "X/op="+strings.ReplaceAll(c.want, ", ", ", X/op="),
			strings.Join(order(p), ", "), pattern)
	}
}

// A line without a trial that reads has its own trials only, whatever failed before.
func TestLinesOfTheirOwn(t *testing.T) {
	v := &params.Values{Bench: params.Bench{Name: "X"}}
	p := planOf(t, v, "X", part{name: "op=a"}, part{name: "op=b"})
	p.lines[0].trials = p.lines[0].trials[:1] // its first trial failed
	assert.Equal(t, []string{"X/op=a 0", "X/op=b 0", "X/op=b 1", "X/op=b-2 0", "X/op=b-2 1"}, order(p))
}

// TestBuiltInScenarios: each file says what it is about, selects benchmarks, and sets nothing that is wrong or
// has no effect.
func TestBuiltInScenarios(t *testing.T) {
	files, err := scenarios.ReadDir("scenarios")
	require.NoError(t, err)
	for _, file := range files {
		flags := flag.NewFlagSet("", flag.ContinueOnError)
		s := &session{set: params.Register(flags), inputs: params.Inputs{Base: "/", Scenarios: scenarios,
			Machine: &params.Machine{Limits: host.Limits{Cores: 1, MemoryAvailable: 4 << 30},
				Card: func() int64 { return 0 }, Capacity: func(*params.Values) int64 { return 4 << 30 }}}}
		name := strings.TrimSuffix(file.Name(), ".yaml")
		require.NoError(t, flags.Parse([]string{"-scenario", name}))
		jobs, scenario, bad := s.selections()
		require.Empty(t, bad, name)
		assert.NotEmpty(t, scenario.About, name)
		var points []*params.Values
		for _, job := range jobs {
			assert.NotEmpty(t, job.benches, job.Where)
			for _, b := range job.benches {
				in := s.inputs
				in.Job, in.Bench = job.Job, b
				v, err := s.set.Resolve(in)
				require.NoError(t, err, name)
				points = append(points, v.Points...)
			}
		}
		bad, notes := params.Unused(points)
		assert.Empty(t, append(notes, bad...), name)
	}
}

// The testing package calls the lines of a scenario in an order of its own; the trials run in that of the jobs.
func TestScenariosHaveAnOrder(t *testing.T) {
	const together = "B 0, B 1, B 2, write 0, read 0, write 1, read 1, write 2, read 2, A 0, A 1, A 2"
	const inTurn = "B 0, write 0, read 0, A 0, A 1, write 1, read 1, B 1, B 2, write 2, read 2, A 2"
	for want, c := range map[string]struct {
		inTurn bool
		fails  string
	}{
		together: {},
		inTurn:   {inTurn: true},
		"B 0, write 0, read 0, A 0, write 1, read 1, B 1, B 2, write 2, read 2": {true, "A"},
		"B 0, write 0, read 0, write 1, read 1, write 2, read 2, A 0, A 1, A 2": {false, "B"},
	} {
		p := &plan{scenario: &params.Scenario{InTurn: c.inTurn}}
		named := func(name string) *line {
			return &line{v: &params.Values{Bench: params.Bench{Name: name}}}
		}
		b, write, read, a := named("B"), named("write"), named("read"), named("A")
		read.follows = true
		// This one runs by itself when it is called.
		skipped := named("skipped")
		skipped.skip = "it cannot run"
		p.groups = [][]*line{{b}, {skipped}, {write, read}, {a}}
		p.lines = []*line{a, b, read, write}
		p.schedule(3)
		assert.Len(t, skipped.trials, 3)
		assert.Equal(t, want, strings.Join(order(p, c.fails), ", "))
	}
}

// Two rounds go there and back, so that each line has the same mean place in them; which line follows
// which changes from round to round.
func TestRoundsGoThereAndBack(t *testing.T) {
	const lines = 5
	var group []*line
	for range lines {
		group = append(group, &line{v: &params.Values{Seed: 42,
			Bench: params.Bench{Name: result.BenchmarkEngines}}})
	}
	place := func(order []*line, l *line) int {
		for i := range order {
			if order[i] == l {
				return i
			}
		}
		return -1
	}
	orders := map[string]bool{}
	for n := 0; n < 20; n += 2 {
		there, back := round(group, n), round(group, n+1)
		text := ""
		for _, l := range group {
			assert.Equal(t, lines-1, place(there, l)+place(back, l))
			text += string(rune('a' + place(there, l)))
		}
		orders[text] = true
		assert.Equal(t, there, round(group, n), "every rank draws the same")
	}
	assert.Greater(t, len(orders), 5)
}

package gate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"

	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// The gate that is simulated: the defaults of make gate.
const (
	trials = 8 // of each side
	alpha  = 0.05
)

// seeded returns the random numbers of the figures in benchmarks/measurements/gate.md.
func seeded() *rand.Rand { return rand.New(rand.NewPCG(20260908, 4)) }

// machine is the model of a machine.
type machine struct {
	name   string
	spread float64 // of independent trials, a share of their mean
	wander float64 // standard deviation of the step from one trial to the next, a share
	turns  bool    // the sides take turns; else the new one runs after the old one
}

// gauge runs the trials of a benchmark without a difference between the sides.
func (m machine) gauge(r *rand.Rand) (cells [2]stats.Cell) {
	level := 0.0
	for i := range 2 * trials {
		side, turn := i/trials, ""
		if m.turns { // old new new old, new old old new
			side, turn = []int{0, 1, 1, 0, 1, 0, 0, 1}[i%8], fmt.Sprint(i/4)
		}
		level += m.wander * r.NormFloat64()
		v := 1e9 * math.Exp(level) * max(0.01, 1+m.spread*r.NormFloat64())
		cells[side].Values = append(cells[side].Values, v)
		if turn != "" {
			cells[side].Blocks = append(cells[side].Blocks, turn)
		}
	}
	return cells
}

// contrasted is the contrast of cells whose new side loses a share.
func contrasted(cells [2]stats.Cell, loss float64) *stats.Contrast {
	new := stats.Side{Blocks: cells[newSide].Blocks}
	for _, v := range cells[newSide].Values {
		new.Values = append(new.Values, v*(1-loss))
	}
	return stats.NewContrast(cells[oldSide].Side, new)
}

// rates are a simulation's results, as shares of all gates.
type rates struct {
	none, limit float64 // any alarm without a change, and when all lose exactly the limit
	found       float64 // the alarm of a benchmark that loses twice the limit, the others nothing
	power       float64 // the mean of the printed power
	sees        float64 // the mean of the printed loss
}

// simulate runs gates of that many benchmarks with Judge's functions;
// TestSimulatedGatesAreThoseOfJudge compares them with Judge.
//
// The power is the mean of the first gates alone: to compute it takes as long as fifty tests.
func (m machine) simulate(r *rand.Rand, gates, sighted, benchmarks int) (x rates) {
	for gate := range gates {
		var all [2][]float64 // p values
		first := 0.0
		for i := range benchmarks {
			cells := m.gauge(r)
			for k, loss := range []float64{0, DefaultLimit} {
				c := contrasted(cells, loss)
				all[k] = append(all[k], c.P(1, DefaultLimit))
			}
			if i == 0 {
				c := contrasted(cells, 1-(1-DefaultLimit)*(1-DefaultLimit))
				first = c.P(1, DefaultLimit)
				if gate < sighted {
					s := c.Sight(1, DefaultLimit, alpha/float64(benchmarks))
					x.power += s.Power / float64(sighted)
					x.sees += s.Sees / float64(sighted)
				}
			}
		}
		share := 1 / float64(gates)
		for k, rate := range []*float64{&x.none, &x.limit} {
			if slices.Min(stats.Holm(all[k])) < alpha {
				*rate += share
			}
		}
		all[0][0] = first
		if stats.Holm(all[0])[0] < alpha {
			x.found += share
		}
	}
	return x
}

// machines are the machines of the figures: of a spread without drift, with random steps of the
// same size from trial to trial, and the same without turns.
func machines(spread float64) []machine {
	return []machine{{"still", spread, 0, true}, {"drifting", spread, spread, true},
		{"drifting, no turns", spread, spread, false}}
}

func TestFalseAlarmsStayWithinTheLevel(t *testing.T) {
	r := seeded()
	const gates = 400
	for _, m := range machines(0.05)[:2] {
		for _, benchmarks := range []int{1, 4} {
			x := m.simulate(r, gates, gates/4, benchmarks)
			t.Logf("%s, %d benchmarks, %d gates: %.3f alarm at the limit, %.3f without a change",
				m.name, benchmarks, gates, x.limit, x.none)
			assert.LessOrEqual(t, x.limit, alpha+2.6*math.Sqrt(alpha*(1-alpha)/gates))
			assert.Less(t, x.none, alpha)
			assert.InDelta(t, x.found, x.power, 0.1, "what is printed is what is found")
		}
	}
	x := machines(0.05)[2].simulate(r, gates, 0, 1)
	assert.Greater(t, x.none, 2*alpha, "what drifts between two sides looks like a loss")
}

// BenchmarkFigures prints the table of benchmarks/measurements/gate.md: go test ./tools/gate -run '^$' -bench Figures
// -benchtime 1x, within a quarter of a minute.
func BenchmarkFigures(b *testing.B) {
	r := seeded()
	for _, benchmarks := range []int{1, 19} {
		gates := 4000
		if benchmarks > 1 {
			gates = 400
		}
		for k := range machines(0) {
			for _, spread := range []float64{0.03, 0.05, 0.10} {
				m := machines(spread)[k]
				if !m.turns && spread != 0.05 {
					continue
				}
				x := m.simulate(r, gates, 300, benchmarks)
				b.Logf("| %d | %s | %.0f %% | %.1f %% | %.1f %% | %.0f %% | %.0f %% | %.0f %% |",
					benchmarks, m.name, 100*spread, 100*x.none, 100*x.limit, 100*x.found,
					100*x.power, 100*x.sees)
			}
		}
	}
}

// TestForecastIsWhatComes: of gates that decide with a probability by the forecast of half of their
// trials, that share decides.
func TestForecastIsWhatComes(t *testing.T) {
	r := seeded()
	type gates struct{ all, decided, forecast float64 }
	var byForecast [3]gates // up to hopeless, up to 50 %, above
	for gate := range 300 {
		var benchmarks, early [][2]stats.Cell
		for range 3 {
			all := machine{"", 0.01 * math.Exp(2*r.Float64()), 0.02, true}.gauge(r)
			var first [2]stats.Cell
			for side, cell := range all {
				first[side].Side = stats.Side{Values: cell.Values[:trials/2], Blocks: cell.Blocks[:trials/2]}
			}
			benchmarks, early = append(benchmarks, all), append(early, first)
		}
		loss := 0.2 * float64(gate%2)
		f := judged(t, early, loss).forecast(trials)
		at := &byForecast[0]
		if f.Decides > 0.5 {
			at = &byForecast[2]
		} else if f.Decides > hopeless {
			at = &byForecast[1]
		}
		at.all++
		at.forecast += f.Decides
		if judged(t, benchmarks, loss).Outcome() != Undecided {
			at.decided++
		}
	}
	for _, g := range byForecast {
		t.Logf("%.0f gates: %.0f decided, %.1f by the forecast", g.all, g.decided, g.forecast)
		assert.Greater(t, g.all, 30.0)
		assert.InDelta(t, g.forecast/g.all, g.decided/g.all, 0.15)
	}
}

// judged is a gate of benchmarks that each have one metric.
func judged(t *testing.T, benchmarks [][2]stats.Cell, loss float64) *Report {
	t.Helper()
	var records []*load.Record
	units := benchfmt.UnitMetadataMap{}
	key := benchfmt.UnitMetadataKey{Unit: "read-B/s", Key: "better"}
	units[key] = &benchfmt.UnitMetadata{UnitMetadataKey: key, Value: "higher"}
	for i, cells := range benchmarks {
		for side, cell := range cells {
			for k, v := range cell.Values {
				rec := &load.Record{Source: Sides[side], Name: fmt.Sprintf("B%d", i),
					Config: []load.Setting{{Key: "turn", Value: cell.Blocks[k]}},
					Values: []benchfmt.Value{{Value: v * (1 - loss*float64(side)),
						Unit: "read-B/s"}}}
				records = append(records, rec)
			}
		}
	}
	r, err := Judge(stats.Gather(records, units), Options{Alpha: alpha, Limits: Limits{Default: DefaultLimit}})
	require.NoError(t, err)
	return r
}

func TestSimulatedGatesAreThoseOfJudge(t *testing.T) {
	r := seeded()
	worse := 0
	for range 40 {
		var benchmarks [][2]stats.Cell
		var all []float64
		for range 3 {
			cells := machine{"", 0.03, 0.03, true}.gauge(r)
			benchmarks = append(benchmarks, cells)
			c := contrasted(cells, 0.1)
			all = append(all, c.P(1, DefaultLimit))
		}
		adjusted := stats.Holm(all)
		report := judged(t, benchmarks, 0.1)
		require.True(t, report.InBlocks)
		for i, row := range report.Rows {
			assert.InDelta(t, adjusted[i], row.Adjusted, 1e-12)
			assert.Equal(t, adjusted[i] < alpha, row.Verdict == Worse)
			if row.Verdict == Worse {
				worse++
				assert.GreaterOrEqual(t, row.AtLeast, row.Limit)
			} else if row.Verdict == Blind {
				assert.Less(t, row.Power, 0.8)
			}
		}
	}
	assert.Positive(t, worse)
	assert.Less(t, worse, 120)
}

package benchmarks

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/kvbench/params"
	"kvbench/kvbench/plainio"
	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
)

// Rules 6.3.2.1 want 90 s between two options; trials of one option have their own rests.
func TestClosedRestsBetweenOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &session{ctx: t.Context()}
		for _, c := range []struct {
			division params.Division
			option   int
			rest     time.Duration
		}{
			{params.Closed, 1, 0}, {params.Closed, 1, 0}, {params.Closed, 2, 90 * time.Second},
			{params.Closed, 3, 90 * time.Second}, {params.Open, 1, 0},
		} {
			began := time.Now()
			s.pauseBetweenOptions(&params.Values{Division: c.division,
				Bench: params.Bench{Option: c.option}}, func(kvbench.Snapshot) {})
			assert.Equal(t, c.rest, time.Since(began), c)
		}
		began := time.Now()
		for option := range 3 {
			s.pauseBetweenOptions(&params.Values{Division: params.Closed, Rehearse: true,
				Bench: params.Bench{Option: option}}, func(kvbench.Snapshot) {})
		}
		assert.Zero(t, time.Since(began), "a rehearsal")
	})
}

// A point of a sweep, or another list of directories, is compared with plain I/O of its own
// parameters, in a window that shows something, or with none.
func TestCeilingIsOfTheSameParameters(t *testing.T) {
	values := func(name string, args ...string) []*params.Values {
		v, err := resolved(t, name, append(args, "-division=open")...)
		require.NoError(t, err)
		return v.Points
	}
	const sweep = "-sweep=io=direct,buffered"
	s := &session{ceiling: map[string]plainio.Reached{}}
	for i, v := range values("StorageCeiling", "-cache-dir=/d1", sweep) {
		r := &result.Result{Status: result.StatusComplete, CompletionUnit: result.UnitOperation,
			PlainIO: &result.PlainIO{}, WindowNS: int64(plainio.CeilingWindow),
			Tiers: []result.Tier{
				{Level: "storage", Read: result.TierTraffic{Bytes: int64(i+1) << 30}}}}
		s.ceiling[v.IOKey()] = s.ceiling[v.IOKey()].Note(1, r)
		r.WindowNS, r.Tiers[0].Read.Bytes = 5e8, 1<<40
		s.ceiling[v.IOKey()].Note(1, r) // too short to tell
		r.WindowNS, r.Harness.Verdict.Kind = int64(plainio.CeilingWindow), result.Shared
		s.ceiling[v.IOKey()].Note(1, r) // another process had a part of the device
	}
	for i, v := range values("MaxStorageStress", "-cache-dir=/d1", sweep, "-sweep=seed=1,2") {
		info := record.Info{}
		s.attachCeiling(v, &info)
		require.NotNil(t, info.Ceiling, v.Point)
		assert.InDelta(t, float64(i/2+1)*(1<<29), info.Ceiling.Read, 1, v.Point)
	}
	info := record.Info{}
	s.attachCeiling(values("MaxStorageStress", "-cache-dir=/d1,/d2")[0], &info)
	assert.Nil(t, info.Ceiling)
	assert.Contains(t, info.Warnings[0], "ceiling-ratio is missing: ")
}

package result

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReadResultJudgesTheSchema(t *testing.T) {
	read := func(text string) (*Result, error) { return Parse([]byte(text)) }
	for _, bad := range []string{`{"schema_version":"4.0"}`, `{"schema_version":"10.1"}`,
		`{"requests_completed":3}`} {
		_, err := read(bad)
		require.ErrorIs(t, err, ErrSchema, bad)
	}
	_, err := read(`{"schema_version":"1.9"}`)
	require.ErrorIs(t, err, ErrSchema)
	require.ErrorContains(t, err, "schema 1 is of an older kvbench; read it with the release that "+
		"wrote it")
	r, err := read(`{"schema_version":"3.7","requests":{"completed":3},` +
		`"a_key_of_the_future":{"x":1}}`)
	require.NoError(t, err)
	assert.EqualValues(t, 3, r.Requests.Completed)
}

func TestWriteJSONLeavesNothingPartial(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "result.json")
	// A directory in the place of the file makes the last step fail.
	require.NoError(t, os.MkdirAll(filepath.Join(path, "occupied"), 0o755))
	err := (&Result{}).WriteJSON(path)
	require.ErrorContains(t, err, path)
	names, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, names, 1, "the temporary file is gone")
	require.Error(t, (&Result{}).WriteJSON(filepath.Join(dir, "no", "such", "directory.json")))
}

// The line has no place for a mark: a length that was not measured is not on it.
func TestAnExtrapolatedBreakEvenIsNotOnTheLine(t *testing.T) {
	r := &Result{FirstToken: &FirstToken{BreakEven: BreakEvens{
		P50: &BreakEven{Answer: LoadFrom, Tokens: new(int64(90))}}}}
	assert.Contains(t, r.Metrics(), Metric{"break-even-tokens", 90})
	r.FirstToken.BreakEven.P50.Extrapolated = true
	assert.NotContains(t, r.Metrics(), Metric{"break-even-tokens", 90})
}

// TestOpened: one number with one unit, and an uncertainty only where there is one.
func TestOpened(t *testing.T) {
	c := &Clients{StartSkewNS: new(int64(3_496_000)), StartSkewUncertaintyNS: new(int64(0))}
	assert.Equal(t, "opened within 3.50 ms", c.Opened())
	c.StartSkewUncertaintyNS = new(int64(20_000))
	assert.Equal(t, "opened within 3.50 ms (± 20 µs)", c.Opened())
}

// More in flight at the knee is no loss, and less no gain: a drive that became faster needs more.
// Device reads compared with those of the application say whose they were. A gate judges neither.
// Clients that meet for a checkpoint have the values of all clients that meet.
func TestClientsOfACheckpointAreOnTheLine(t *testing.T) {
	clients := &Clients{StartSkewNS: new(int64(5)), PerRank: []ClientRank{{ReadP95NS: new(int64(7)),
		WriteP95NS: new(int64(8))}, {ReadP95NS: new(int64(9)), WriteP95NS: new(int64(6))}}}
	for _, r := range []*Result{{Clients: clients}, {Clients: clients, Checkpoint: &Checkpoint{}}} {
		values := map[string]float64{}
		for _, m := range r.Metrics() {
			values[m.Unit] = m.Value
		}
		assert.InDelta(t, 5, values["start-skew-ns"], 0)
		assert.InDelta(t, 9, values["slowest-rank-read-p95-ns"], 0)
		assert.InDelta(t, 8, values["slowest-rank-write-p95-ns"], 0)
	}
}

func TestWhatHasNoBetter(t *testing.T) {
	for _, u := range Directed() {
		assert.NotContains(t, []string{"knee-bytes", "device-read-ratio"}, u.Name)
	}
}

// The fields that the tags of quotients name exist: else Derive would panic.
func TestQuotientsNameTheirFields(t *testing.T) {
	r := &Result{Prompt: &Prompt{ByKind: map[string]PromptTokens{"new": {}}}, Tiers: make([]Tier, 1),
		Load: map[string]ClassOutcome{"batch": {InFlight: 1, Completed: 3}}, FirstToken: &FirstToken{},
		BlockCache: &BlockCache{Hits: 3, Blocks: 4, IdealHits: new(int64(4))},
		Lookups:    Lookups{Hits: 1, ByKind: map[string]LookupCount{"rag": {Misses: 2}}},
		IO:         IO{Roots: []Root{{Read: RootTraffic{Bytes: 6, InFlightNS: 1e9}}}}}
	r.Derive()
	assert.Equal(t, []*float64{new(0.75), new(1.0), nil, new(1.0), new(0.0), new(0.75), new(0.25)},
		[]*float64{r.BlockCache.HitRatio, r.BlockCache.IdealHitRatio, r.BlockCache.TokenHitRatio,
			r.Lookups.HitRate, r.Lookups.ByKind["rag"].HitRate, r.Load["batch"].ServedRatio,
			r.Load["batch"].CensoredRatio})
	assert.Nil(t, r.IO.Roots[0].Read.BytesPerSecond, "derived from the window, by the recorder")
	r.WindowNS = 2e9
	r.Rates()
	assert.Equal(t, []*float64{new(3.0), new(0.5)}, []*float64{r.IO.Roots[0].Read.BytesPerSecond,
		r.IO.Roots[0].Read.MeanInFlight})
}

// Every unit of the line is described, those of tags, too.
func TestEveryUnitOfTheLineIsDescribed(t *testing.T) {
	known := map[string]bool{}
	for _, u := range Lines {
		assert.False(t, known[u.Name], "%s is described twice", u.Name)
		known[u.Name] = true
		assert.NotEmpty(t, u.Title, u.Name)
	}
	r := reflect.ValueOf(&Result{}).Elem()
	fill(r)
	tagged(r, func(unit string, v reflect.Value) {
		assert.True(t, known[unit], unit)
		assert.True(t, v.CanInt() || v.CanFloat(), "%s is no number", unit)
	})
}

// fill makes all sections of a structure.
func fill(of reflect.Value) {
	for _, v := range of.Fields() {
		if v.Kind() == reflect.Pointer {
			v.Set(reflect.New(v.Type().Elem()))
			v = v.Elem()
		}
		if v.Kind() == reflect.Struct && v.Type().PkgPath() == of.Type().PkgPath() {
			fill(v)
		}
	}
}

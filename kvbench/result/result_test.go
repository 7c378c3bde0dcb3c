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
	_, err := read(`{"schema_version":"2.9"}`)
	require.ErrorIs(t, err, ErrSchema)
	require.ErrorContains(t, err, "schema 2 is of an older kvbench; read it with the release that "+
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
func TestWhatHasNoBetter(t *testing.T) {
	for _, u := range Directed() {
		assert.NotContains(t, []string{"knee-bytes", "device-read-ratio"}, u.Name)
	}
}

// Every unit of the line is described, those of tags by lines.txt or by their own tags.
func TestEveryUnitOfTheLineIsDescribed(t *testing.T) {
	known := map[string]bool{}
	for _, u := range Lines {
		assert.False(t, known[u.Name], "%s is described twice", u.Name)
		known[u.Name] = true
		assert.NotEmpty(t, u.Title, u.Name)
	}
	tagged(reflect.ValueOf(Result{}), true, func(tags reflect.StructTag, v reflect.Value) {
		assert.True(t, known[tags.Get("line")], tags.Get("line"))
		assert.True(t, v.CanInt() || v.CanFloat(), "%s is no number", tags.Get("line"))
	})
}

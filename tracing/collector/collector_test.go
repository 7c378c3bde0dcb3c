package collector

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tracing"
	"kvbench/tracing/host"
)

// fakePrograms return prepared counts.
type fakePrograms struct {
	fill     func(*tracing.Trace)
	edges    []edge
	opened   int
	shutDone int
	lost     lostInFlight
	closed   int
	openErr  error
}

func (f *fakePrograms) open() error { f.opened++; return f.openErr }
func (f *fakePrograms) shut() error { f.shutDone++; return nil }
func (f *fakePrograms) read(t *tracing.Trace) error {
	f.fill(t)
	return nil
}
func (f *fakePrograms) family() (int, int) { return 0, 0 }
func (f *fakePrograms) close() error       { f.closed++; return nil }
func (f *fakePrograms) lostInFlight(uint64) (lostInFlight, error) {
	return f.lost, nil
}

func (f *fakePrograms) edge() (edge, error) {
	if len(f.edges) == 0 {
		return edge{}, nil
	}
	e := f.edges[0]
	f.edges = f.edges[1:]
	return e, nil
}

func TestWindows(t *testing.T) {
	f := &fakePrograms{}
	c := &Collector{programs: f}
	tr, err := c.Snapshot()
	require.NoError(t, err)
	assert.Nil(t, tr, "no window yet")
	require.NoError(t, c.CloseWindow(), "nothing to close")
	assert.Zero(t, f.shutDone)

	f.edges = []edge{{now: 1000, inFlight: [2]int64{2, 0}},
		{now: 9000, inFlight: [2]int64{3, 0}, first: 1500}}
	f.lost = lostInFlight{counted: [2]int64{1, 0}, miscounted: [2]int64{1, 1}}
	require.NoError(t, c.OpenWindow())
	f.fill = func(t *tracing.Trace) {
		t.Capture.Read = tracing.Direction{Issued: 20, Requeued: 4, Requests: 13, Stale: 2}
		t.DepthRead = tracing.NewHistogram("requests", 13, []tracing.Bucket{{Count: 13}})
		t.DepthWrite = tracing.NewHistogram("requests", 50, []tracing.Bucket{{Count: 25}})
	}
	require.NoError(t, c.CloseWindow())
	require.NoError(t, c.CloseWindow(), "twice is no mistake")
	assert.Equal(t, 1, f.shutDone)
	tr, err = c.Snapshot()
	require.NoError(t, err)
	d := tr.Capture.Read
	assert.EqualValues(t, 3, d.Stale, "one was found at the end")
	assert.EqualValues(t, 2, d.InFlightAfter)
	assert.Zero(t, d.Imbalance(), "2 + 20 - 4 = 13 + 3 + 2")
	assert.Zero(t, tr.DepthRead, "too many dispatches with a lost completion")
	assert.EqualValues(t, 25, tr.DepthWrite.Count)
	assert.Contains(t, tr.Capture.Warnings[0], "no completion of 3 of 16")
	assert.Equal(t, []string{
		"the queue depth of reads is left out: lost completions make its mean up to 7.7 % too high",
		"the queue depth of writes is corrected for lost completions: its mean is at most 2 % too high",
	}, tr.Capture.Warnings[1:3])

	require.NoError(t, c.Close())
	require.NoError(t, c.Close())
	assert.Equal(t, 1, f.closed)
}

func TestWindowErrorsStay(t *testing.T) {
	boom := errors.New("boom")
	c := &Collector{programs: &fakePrograms{openErr: boom}}
	require.ErrorIs(t, c.OpenWindow(), boom)
	_, err := c.Snapshot()
	require.ErrorIs(t, err, boom)
}

func TestMargins(t *testing.T) {
	for _, c := range []struct {
		name          string
		before, after edge
		lead, tail    int64
	}{
		{"nothing at all", edge{now: 10}, edge{now: 110}, 100, 0},
		{"late and early", edge{now: 10}, edge{now: 110, first: 30, idle: 90}, 20, 20},
		{"busy at both ends", edge{now: 10, inFlight: [2]int64{1, 0}},
			edge{now: 110, first: 30, idle: 50, inFlight: [2]int64{0, 1}}, 0, 0},
		{"idle since before", edge{now: 10, inFlight: [2]int64{0, 1}},
			edge{now: 110, first: 30, idle: 5}, 0, 100},
	} {
		w := window{before: c.before, after: c.after}
		lead, tail := w.margins()
		assert.Equal(t, [2]int64{c.lead, c.tail}, [2]int64{lead, tail}, c.name)
	}
}

func TestOptionsName(t *testing.T) {
	err := Options{Level: "all", Filter: "none", PID: -3,
		Comm: "a name that is too long for the kernel"}.Validate()
	require.Error(t, err)
	for _, says := range []string{`unknown level "all": must be block or file`, `filter "none"`,
		"process id -3", "longer than the 15 characters"} {
		assert.ErrorContains(t, err, says)
	}
	_, err = Start(context.Background(), Options{Level: "all"})
	require.ErrorContains(t, err, `level "all"`)
}

func TestUnavailableSaysWhatIsNeeded(t *testing.T) {
	u := &UnavailableError{Reason: "no type information",
		Need: "a kernel with BTF", Err: errors.ErrUnsupported}
	assert.EqualError(t, u, "no tracing: no type information; needed: a kernel with BTF")
	require.ErrorIs(t, u, errors.ErrUnsupported)
	c := &Collector{unavailable: u, programs: none{}}
	require.NoError(t, c.OpenWindow())
	require.NoError(t, c.CloseWindow())
	tr, err := c.Snapshot()
	require.NoError(t, err)
	assert.Equal(t, tracing.StatusNone, tr.Capture.Status)
	assert.Equal(t, []string{u.Need}, tr.Capture.Needs)
	require.NoError(t, c.Close())
}

// The devices of several directories are all traced. A warning names a directory without a device,
// because its requests are missing in the numbers.
func TestDirectoriesWithoutADeviceAreSaidSo(t *testing.T) {
	queues, err := filepath.Glob("/sys/block/*/mq")
	require.NoError(t, err)
	if len(queues) == 0 {
		t.Skip("no block device of this machine has a queue")
	}
	disk := filepath.Base(filepath.Dir(queues[0]))
	for reason, want := range map[string][]string{"": nil,
		"nfs4 is a network filesystem": {"not all directories are traced, only those on " + disk +
			": nfs4 is a network filesystem"}} {
		c := &Collector{device: host.Device{Members: []string{disk}, Reason: reason}}
		c.chooseTargets()
		require.Len(t, c.targets, 1)
		assert.Equal(t, []string{disk}, c.common.Members)
		assert.Equal(t, want, c.common.Warnings)
	}
}

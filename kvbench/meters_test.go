package kvbench

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/tracing/host"
)

// A result has its own types for the host, which must say all that the host's do.
func TestAResultSaysAllOfTheHost(t *testing.T) {
	in := host.ReadEnvironment(t.TempDir())
	in.Filesystem.ReadSizeBytes, in.DeviceReason = new(int64(1<<20)), "none"
	in.Device = &host.DeviceEnvironment{Name: "dm-0", Rotational: new(true),
		Queue: host.QueueEnvironment{Scheduler: "none"},
		Members: []host.DeviceEnvironment{{Name: "sda", Partition: "sda1",
			SizeBytes: new(int64(4 << 40)), Note: "x"}}}
	var out result.Environment
	same(&out, in)
	want, err := json.Marshal(in)
	require.NoError(t, err)
	got, err := json.Marshal(out)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got))
}

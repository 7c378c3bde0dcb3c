package kvbench

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbench/tracing/host"
)

// A mount has one set of counters, however many of the directories lie on it.
func TestAMountIsReadOnce(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has /proc/self/mountstats")
	}
	nfs := host.Device{Mount: host.Mount{Type: "nfs4", Point: "/nowhere", Source: "nas:/kv"}}
	tr := &trial{roots: []root{{device: nfs}, {device: nfs},
		{device: host.Device{Mount: host.Mount{Type: "ext4", Point: "/mnt"}}}}}
	n, err := tr.rootNFS(0)
	assert.Nil(t, n)
	assert.ErrorContains(t, err, "no counters of what is mounted on /nowhere", "it was looked for")
	for i := 1; i < 3; i++ {
		n, err = tr.rootNFS(i)
		assert.Nil(t, n)
		assert.NoError(t, err)
	}
}

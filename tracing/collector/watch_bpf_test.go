//go:build linux && (amd64 || arm64)

package collector

import (
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestParseProcess(t *testing.T) {
	p, ok := parseProcess("4242 (a (b) c) S 17 1 1 0 -1")
	assert.True(t, ok)
	assert.Equal(t, process{pid: 4242, parent: 17, comm: "a (b) c"}, p)
	for _, bad := range []string{"", "12 (x", "x (y) S 1", "12 (y) S", "12 (y) S z"} {
		_, ok := parseProcess(bad)
		assert.False(t, ok, "%q", bad)
	}
}

func TestProcessesAndChildren(t *testing.T) {
	all := []process{{1, 0, "init"}, {5, 1, "vllm"}, {9, 7, "worker"}, {7, 5, "sh"},
		{8, 1, "other"}}
	ids := withChildren(all, func(p process) bool { return p.comm == "vllm" })
	slices.Sort(ids)
	assert.Equal(t, []uint32{5, 7, 9}, ids)
	own := withChildren(processes(), func(p process) bool { return p.pid == os.Getpid() })
	assert.Contains(t, own, uint32(os.Getpid()))
}

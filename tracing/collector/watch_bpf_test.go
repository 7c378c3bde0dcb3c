//go:build linux && (amd64 || arm64)

package collector

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestProcessesAndChildren(t *testing.T) {
	all := []process{{1, 0, "init"}, {5, 1, "vllm"}, {9, 7, "worker"}, {7, 5, "sh"},
		{8, 1, "other"}}
	ids := withChildren(all, func(p process) bool { return p.comm == "vllm" })
	assert.Equal(t, []int{5, 7, 9}, ids)
	here := processes()
	own := withChildren(here, func(p process) bool { return p.pid == os.Getpid() })
	assert.Contains(t, own, os.Getpid())
	comm, err := os.ReadFile("/proc/self/comm")
	require.NoError(t, err)
	assert.Contains(t, here, process{os.Getpid(), os.Getppid(), strings.TrimSpace(string(comm))})
}

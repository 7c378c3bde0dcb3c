package buffer

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The memory has the requested policy, and a node that does not exist is no error.
func TestTheKernelKnowsTheNode(t *testing.T) {
	if RaceEnabled {
		t.Skip("under the race detector arenas lie on the heap")
	}
	p, err := NewPool(3, HugePage, 0)
	require.NoError(t, err)
	defer p.Close()
	if strings.Contains(p.Placed(), unix.ENOSYS.Error()) {
		t.Skip("this kernel knows no NUMA: " + p.Placed())
	}
	if strings.Contains(p.Placed(), unix.EPERM.Error()) {
		t.Skip("mbind is not allowed here: " + p.Placed())
	}
	require.Equal(t, "node 0", p.Placed())
	maps, err := os.ReadFile("/proc/self/numa_maps")
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("this kernel has no /proc/self/numa_maps")
	}
	require.NoError(t, err)
	policy := ""
	for line := range strings.Lines(string(maps)) {
		if at := fmt.Sprintf("%x ", address(p.arena.mapped)); strings.HasPrefix(line, at) {
			policy = strings.Fields(line)[1]
		}
	}
	assert.Contains(t, []string{"prefer:0", "prefer (many):0"}, policy)

	a, err := NewArena(HugePage, 0, 5000) // more than any kernel can have
	require.NoError(t, err)
	assert.Contains(t, a.Placed(), "anywhere: mbind to node 0 5000: invalid argument")
	Touch(a.Bytes())
	require.NoError(t, a.Close())
}

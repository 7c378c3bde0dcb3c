package buffer

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSmapsCountsOnlyTheRange(t *testing.T) {
	const text = `7f0000000000-7f0000800000 rw-p 00000000 00:00 0 
Size:               8192 kB
AnonHugePages:      6144 kB
VmFlags: rd wr
7f0000800000-7f0000a00000 rw-p 00000000 00:00 0                          [anon: x-y]
AnonHugePages:      2048 kB
55e000000000-55e000001000 r-xp 00000000 fe:00 12 /usr/bin/some-thing
AnonHugePages:         0 kB
`
	got, err := parseSmaps(strings.NewReader(text), 0x7f0000600000, 4<<20)
	require.NoError(t, err)
	assert.EqualValues(t, 4<<20, got)
	got, err = parseSmaps(strings.NewReader(text), 0x7f0000000000, 8<<20)
	require.NoError(t, err)
	assert.EqualValues(t, 6<<20, got)
	_, err = parseSmaps(strings.NewReader("AnonHugePages: many kB\n"), 0, 1)
	assert.Error(t, err)
}

// An arena consists of whole huge pages that were requested, whether or not the kernel grants any.
func TestArenasAreMadeForHugePages(t *testing.T) {
	if RaceEnabled {
		t.Skip("under the race detector arenas lie on the heap")
	}
	const size = 3*HugePage + PageSize
	a, err := NewArena(size)
	require.NoError(t, err)
	mem := a.Bytes()
	require.Len(t, mem, size)
	assert.Zero(t, address(mem)%HugePage)
	Touch(mem)
	mem[size-1] = 1
	if a.reason != "" { // the machine may have them switched off
		assert.Equal(t, a.reason, a.HugePages())
		assert.NoError(t, a.Close())
		t.Skip("no huge pages here: " + a.reason)
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	require.NoError(t, err)
	var asked bool // of the mapping that is being read
	for line := range strings.Lines(string(smaps)) {
		var lo, hi uintptr
		if n, _ := fmt.Sscanf(line, "%x-%x ", &lo, &hi); n == 2 {
			asked = lo <= address(mem) && address(mem) < hi
		}
		if strings.HasPrefix(line, "VmFlags:") && asked {
			assert.Contains(t, strings.Fields(line), "hg", "madvise(MADV_HUGEPAGE)")
		}
	}
	assert.Regexp(t, `^\d+ of 6 MiB in huge pages$`, a.HugePages())
	huge, err := hugeBytes(mem)
	require.NoError(t, err)
	assert.LessOrEqual(t, huge, int64(size))
	require.NoError(t, a.Close())
	require.NoError(t, a.Close())
	assert.Nil(t, a.Bytes())
}

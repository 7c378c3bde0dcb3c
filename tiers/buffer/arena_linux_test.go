package buffer

import (
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

package ioengine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestAutoTakesTheEngineThatWasMeasuredToBeBetter(t *testing.T) {
	const work = "between requests there is other work, which would hold up a ring"
	for use, reason := range map[Use]string{
		{Direct: true, Chained: true}:               "",
		{Direct: true, Chained: false}:              work,
		{Direct: false, Chained: true}:              "buffered I/O",
		{Direct: true, Chained: true, Inline: true}: "FUSE makes a ring wait for its server",
		{Direct: false, Chained: false}:             "buffered I/O",
		{Direct: true, Chained: true, Memory: true}: "requests to a filesystem in memory only copy",
	} {
		assert.Equal(t, reason, use.better())
		if reason != "" {
			e, c, err := Open(Auto, use, func() time.Duration { return 0 }, nil)
			require.NoError(t, err)
			assert.Equal(t, Choice{Psync, "a system call in a thread for each request", reason, 0}, c)
			require.NoError(t, e.Close(t.Context()))
		}
	}
	plain := Use{Direct: true, Chained: true}
	none := func() (Engine, string, error) { return nil, "", unix.EMFILE }
	e, c, err := choose(Auto, plain, func() time.Duration { return 0 }, none)
	require.NoError(t, err, "auto falls back to psync")
	assert.Equal(t, Choice{Psync, "a system call in a thread for each request",
		"too many open files", 0}, c)
	require.NoError(t, e.Close(t.Context()))
	_, _, err = choose(URing, plain, func() time.Duration { return 0 }, none)
	require.ErrorIs(t, err, unix.EMFILE)
	assert.ErrorContains(t, err, "-io-engine uring: ")
	assert.ErrorContains(t, err, "-io-engine psync does without")
	_, c, err = Open(Psync, Use{Direct: true, Chained: true}, func() time.Duration { return 0 }, nil)
	require.NoError(t, err)
	assert.Equal(t, Psync, c.Name)
	assert.Empty(t, c.Reason, "psync was requested")
}

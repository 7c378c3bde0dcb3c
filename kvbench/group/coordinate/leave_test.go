package coordinate

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// held is the connection of a process that gets no processor for a while.
type held struct {
	net.Conn
	hold *atomic.Bool
}

func (h held) Write(p []byte) (int, error) {
	if h.hold.Load() {
		wait(context.Background(), 2*time.Second)
	}
	return h.Conn.Write(p)
}

// TestALastWordThatIsLate: a rank that has come to its end is not lost because it took its time to
// say so.
func TestALastWordThatIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hold atomic.Bool
		g := meet(t, LeaderConfig{}, same(2), func(rank int) (net.Conn, net.Conn) {
			ours, theirs := pipe(rank)
			if rank == 1 {
				return ours, held{theirs, &hold}
			}
			return ours, theirs
		})
		hold.Store(true)
		g.members[1].Leave("")
		require.NoError(t, g.conns[1].Close()) // its process has ended
		synctest.Wait()
		assert.Empty(t, g.leader.Stopped())
		g.leave()
	})
}

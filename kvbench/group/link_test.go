package group

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestResultsThatComeLate: an interrupted run waits for what a rank has measured as long as it is
// it sends heartbeats, and not for one that never entered the trial.
func TestResultsThatComeLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := meet(t, LeaderConfig{}, same(3), pipe)
		ctx, interrupt := context.WithCancel(t.Context())
		began := time.Now()
		g.each(func(m *Member) {
			if m.Rank() == 2 {
				return // it waits for something else, and sends heartbeats
			}
			go m.Enter(t.Context(), Terms{Name: "X"})
		})
		synctest.Wait() // until the coordinator has the messages
		done := make(chan Trial, 1)
		go func() { done <- g.leader.Collect(ctx) }()
		interrupt()
		for i, m := range []*Member{g.members[1], g.members[0]} {
			time.Sleep(time.Minute) // of virtual time
			require.NoError(t, m.Publish([]byte("{}")))
			if i == 1 {
				m.Done("")
			}
		}
		<-done
		assert.Equal(t, 2*time.Minute, time.Since(began))
		assert.Len(t, g.docs, 2)
		g.leave()
	})
}

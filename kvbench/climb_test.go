package kvbench

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/tiers"
)

// placed is a load whose storage tier seems to lie in a directory.
type placed struct{ *ticking }

func (p placed) Prepare(ctx context.Context, e *Env) error {
	e.trial.dirs = []*directory{{path: "/kv"}}
	return p.ticking.Prepare(ctx, e)
}

// readSlowly reads a chunk a second.
func readSlowly(ctx context.Context, e *Env) error {
	for e.Clock.Sleep(ctx, time.Second) == nil {
		now := e.Clock.Now()
		e.Rec.Chunk(0, tiers.Storage, tiers.Decode, tiers.Chunk{Op: tiers.Read,
			Bytes: 4096, Begun: now - time.Second, Ended: now, Done: now})
		e.Rec.Request(record.RequestSample{At: now})
	}
	return nil
}

// A device that stops answering right after the window costs the sweep only. The window's result is
// published: at once on a signal, and as a failed trial with -io-timeout.
func TestALadderThatIsNotAnswered(t *testing.T) {
	for name, c := range map[string]struct {
		end    func(e *Env, interrupt context.CancelCauseFunc)
		status string
	}{
		"a signal": {func(_ *Env, interrupt context.CancelCauseFunc) {
			interrupt(Interrupted{Why: assert.AnError})
		}, result.StatusComplete},
		"-io-timeout": {func(e *Env, _ context.CancelCauseFunc) {
			e.Fail(ErrUnanswered, result.EndedByError)
			e.trial.hurry(ErrUnanswered)
		}, result.StatusFailed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, interrupt := context.WithCancelCause(t.Context())
				published := make(chan struct{})
				w := &ticking{phase: Phase{Window: 10500 * time.Millisecond}}
				w.run = readSlowly
				var shown []string
				cfg := onNull()
				cfg.Climb = func(ctx context.Context, e *Env, _ Ladder) ([]result.Rung, error) {
					time.AfterFunc(5*time.Second, func() { c.end(e, interrupt) })
					<-ctx.Done()
					<-published // whatever ctx says
					return nil, context.Cause(ctx)
				}
				cfg.Progress = func(s Snapshot) { shown = append(shown, s.Stage) }
				cfg.Publish = func(*result.Result) error {
					close(published)
					return nil
				}
				res, err := Run(ctx, cfg, placed{w})
				assert.Equal(t, c.status, res.Status)
				assert.Equal(t, c.status == result.StatusFailed, err != nil, err)
				assert.EqualValues(t, 10, res.Completions())
				require.NotNil(t, res.Harness.Ladder)
				assert.Equal(t, "the storage does not answer", res.Harness.Ladder.Reason)
				assert.Contains(t, shown, "plain I/O after the window")
			})
		})
	}
}

// climbing is a load with a sweep of its own.
type climbing struct {
	placed
	climb Climber
}

func (c climbing) Sweep() ([]tiers.Object, Climber) { return nil, c.climb }

// A workload's own sweep is called, without capacity for files that it does not write.
func TestALadderOfTheWorkloadsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &ticking{phase: Phase{Window: 10500 * time.Millisecond}}
		w.run = readSlowly
		rungs := []result.Rung{{InFlight: 1, NS: 1, Read: 2}}
		var asked Ladder
		own := climbing{placed{w}, func(_ context.Context, _ *Env, l Ladder) (
			[]result.Rung, error) {
			asked = l
			return rungs, nil
		}}
		cfg := onNull()
		cfg.Climb = func(context.Context, *Env, Ladder) ([]result.Rung, error) {
			return nil, assert.AnError
		}
		res, err := Run(t.Context(), cfg, own)
		require.NoError(t, err)
		assert.Equal(t, rungs, res.Harness.Ladder.Rungs)
		assert.Empty(t, res.Harness.Ladder.Reason)
		assert.EqualValues(t, 1, asked.ReadShare)
		assert.Empty(t, asked.Spare)
		assert.Zero(t, asked.Room)
	})
}

package kvbench

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"kvbench/kvbench/result"
)

// How a trial ends: by a signal, in a run with or without a user at the terminal, or by a call that
// takes longer than -io-timeout. byItself is neither.
const (
	byItself = iota
	bySignal
	byUser // a signal in an attended run
	byTimeout
)

// endingTrial is a trial in which something hangs, or takes long. It prepares for a minute and loads for a
// minute, after which it ends.
type endingTrial struct {
	ends     int
	inWindow bool          // it ends in the window, else during what hangs
	prepare  time.Duration // that preparing takes longer
	workers  time.Duration // until the workers end, after the window
	publish  time.Duration
	cleaning time.Duration
	timeout  time.Duration // of I/O
	settle   time.Duration

	stages []string
	took   time.Duration // from the end of the load to the end of Run
	made   time.Duration // from the end of the load to Publish
	err    error
	res    *result.Result
}

const forEver = 1000 * time.Hour

func (e endingTrial) run(t *testing.T) endingTrial {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		w := &ticking{phase: Phase{Window: time.Minute}}
		w.closing = func() { <-time.After(e.cleaning) }
		w.preparing = func() { <-time.After(e.prepare) }
		if e.workers > 0 {
			w.run = func(ctx context.Context, _ *Env) error {
				<-ctx.Done()
				<-time.After(e.workers) // whatever ctx says
				return context.Cause(ctx)
			}
		}
		at := 2*time.Minute + 30*time.Second
		if e.inWindow {
			at = 2 * time.Minute
			w.phase.Window = time.Hour
		}
		begun := time.Now()
		since := func() time.Duration { return time.Since(begun) - 2*time.Minute }
		cfg := onNull()
		cfg.PublishTo, cfg.Storage.IOTimeout, cfg.Settle = "/res", e.timeout, e.settle
		cfg.Progress = func(s Snapshot) {
			if n := len(e.stages); n == 0 || e.stages[n-1] != s.Stage {
				e.stages = append(e.stages, s.Stage)
			}
		}
		cfg.Publish = func(*result.Result) error {
			e.made = since()
			<-time.After(e.publish)
			return nil
		}
		time.AfterFunc(at, func() {
			switch e.ends {
			case bySignal, byUser:
				cancel(Interrupted{assert.AnError, e.ends == byUser})
			case byTimeout:
				w.env.Fail(ErrUnanswered, result.EndedByError)
				w.env.trial.hurry(ErrUnanswered)
			}
		})
		e.res, e.err = Run(ctx, cfg, w)
		e.took = since()
		cancel(nil)
		<-time.After(2 * forEver)
	})
	return e
}

const writing = "writing the result to /res"

// The end of a trial in all stages that can hang: the result comes first, an attended run removes its
// files however long that takes, and another is abandoned.
func TestATrialEndsWhereverItHangs(t *testing.T) {
	const late = 30 * time.Second // of an end that comes when the load has ended by itself
	for name, c := range map[string]struct {
		endingTrial
		made, took time.Duration
		status     string
		stage      string // that is shown, if not empty
	}{
		"workers, signal": {endingTrial{ends: bySignal, inWindow: true, workers: forEver},
			0, unattended.abandon, result.StatusIncomplete, waiting},
		"workers, user": {endingTrial{ends: byUser, inWindow: true, workers: time.Hour},
			0, time.Hour, result.StatusIncomplete, waiting},
		"workers, timeout": {endingTrial{ends: byTimeout, inWindow: true, workers: forEver},
			0, unattended.abandon, result.StatusFailed, waiting},
		"workers after the window, signal": {endingTrial{ends: bySignal, workers: forEver},
			late + unattended.drain, late + unattended.abandon, result.StatusFailed, waiting},
		"preparing, signal": {endingTrial{ends: bySignal, inWindow: true, prepare: forEver},
			unattended.drain, unattended.abandon, result.StatusIncomplete, ""},
		"preparing, user": {endingTrial{ends: byUser, inWindow: true, prepare: time.Hour},
			attended.drain, time.Hour - time.Minute, result.StatusIncomplete, waiting},
		"preparing, timeout": {endingTrial{ends: byTimeout, inWindow: true, prepare: forEver},
			unattended.drain, unattended.abandon, result.StatusFailed, ""},
		"pausing, signal": {endingTrial{ends: bySignal, settle: time.Hour},
			0, late, result.StatusComplete, "pausing"},
		"removal, signal": {endingTrial{ends: bySignal, cleaning: forEver},
			0, late + unattended.abandon, result.StatusComplete, waiting},
		"removal, user": {endingTrial{ends: byUser, cleaning: time.Hour},
			0, time.Hour, result.StatusComplete, waiting},
		"removal, timeout": {endingTrial{ends: byTimeout, cleaning: forEver},
			0, late + unattended.abandon, result.StatusComplete, waiting},
		"result, by itself": {endingTrial{publish: time.Hour},
			0, time.Hour, result.StatusComplete, writing},
		"short result, by itself": {endingTrial{publish: 400 * time.Millisecond},
			0, 400 * time.Millisecond, result.StatusComplete, ""},
		"result, signal": {endingTrial{ends: bySignal, inWindow: true, publish: forEver,
			cleaning: 100 * time.Millisecond},
			0, unattended.publish + 100*time.Millisecond, result.StatusIncomplete, ""},
		"result, user": {endingTrial{ends: byUser, inWindow: true, publish: forEver,
			cleaning: time.Second}, 0, attended.publish + time.Second, result.StatusIncomplete, writing},
		"result, short timeout": {endingTrial{publish: forEver, timeout: time.Second},
			0, attended.publish, result.StatusComplete, writing},
		"result, long timeout": {endingTrial{publish: forEver, timeout: time.Minute},
			0, time.Minute, result.StatusComplete, writing},
		"result and workers, signal": {endingTrial{ends: bySignal, inWindow: true, publish: forEver,
			workers: forEver}, 0, unattended.abandon, result.StatusIncomplete, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := c.endingTrial.run(t)
			assert.Equal(t, c.made, e.made)
			assert.Equal(t, c.took, e.took)
			assert.Equal(t, c.status, e.res.Status)
			if c.stage != "" {
				assert.Contains(t, e.stages, c.stage)
			} else if c.publish < time.Second {
				assert.NotContains(t, e.stages, writing)
			}
			switch {
			case c.ends == bySignal && c.inWindow, c.ends == byUser && c.inWindow:
				assert.ErrorIs(t, e.err, assert.AnError)
			case c.ends == byTimeout && !c.inWindow:
				assert.ErrorContains(t, e.err, "after the result was written: ")
			}
			if c.workers == forEver && !c.inWindow {
				assert.EqualValues(t, c.made, e.res.DrainNS)
			}
			if c.publish == forEver {
				assert.ErrorContains(t, e.err,
					"writing the result: the storage does not answer: /res, for ")
			}
			assert.Equal(t, c.ends == byTimeout || c.publish == forEver,
				errors.Is(e.err, ErrUnanswered), "no other trial is begun")
		})
	}
}

// A result that is written after the run stopped waiting is safe, which is what counts.
func TestAResultThatComesLateIsNoFailure(t *testing.T) {
	e := endingTrial{publish: attended.publish + time.Second, timeout: time.Second,
		cleaning: time.Minute}.run(t)
	assert.NoError(t, e.err)
	assert.Equal(t, attended.publish+time.Minute, e.took)
}

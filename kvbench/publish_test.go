package kvbench

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"kvbench/kvbench/result"
)

// publishing is a trial whose results directory takes so long for the result.
type publishing struct {
	takes    time.Duration
	signal   bool // comes when the load has run for a minute, or it ends by itself then
	attended bool
	timeout  time.Duration // of I/O
	cleaning time.Duration

	stages   []string
	given    error         // the argument of Unpublished
	gaveUp   time.Duration // after the load's end
	took     time.Duration // the same of the whole trial
	err      error
	finished *result.Result
}

func (p publishing) run(t *testing.T) publishing {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		w := &ticking{phase: Phase{Window: time.Minute}}
		w.closing = func() { <-time.After(p.cleaning) }
		if p.signal {
			w.phase.Window = time.Hour
			why := Interrupted{assert.AnError, p.attended}
			time.AfterFunc(2*time.Minute, func() { cancel(why) }) // preparing takes one
		}
		begun := time.Now()
		since := func() time.Duration { return time.Since(begun) - 2*time.Minute }
		cfg := onNull()
		cfg.PublishTo, cfg.Storage.IOTimeout = "/res", p.timeout
		cfg.Progress = func(s Snapshot) {
			if n := len(p.stages); n == 0 || p.stages[n-1] != s.Stage {
				p.stages = append(p.stages, s.Stage)
			}
		}
		cfg.Publish = func(*result.Result) error { <-time.After(p.takes); return nil }
		cfg.Unpublished = func(_ *result.Result, why error) { p.given, p.gaveUp = why, since() }
		p.finished, p.err = Run(ctx, cfg, w)
		p.took = since()
		cancel(nil)
		<-time.After(p.takes)
	})
	return p
}

const writing = "writing the result to /res"

func TestAResultThatIsSoonWrittenIsNoStage(t *testing.T) {
	p := publishing{takes: 400 * time.Millisecond}.run(t)
	assert.NoError(t, p.err)
	assert.NoError(t, p.given)
	assert.NotContains(t, p.stages, writing)
}

func TestAResultIsWaitedForAndSeen(t *testing.T) {
	p := publishing{takes: time.Hour}.run(t)
	assert.NoError(t, p.err)
	assert.NoError(t, p.given)
	assert.Equal(t, time.Hour, p.took)
	assert.Equal(t, []string{"running", writing}, p.stages)
}

// TestASignalGivesUpAResult whose directory hangs: the files are removed all the same.
func TestASignalGivesUpAResult(t *testing.T) {
	for attended, after := range map[bool]time.Duration{true: publishAttended,
		false: publishOnSignal} {
		p := publishing{takes: time.Hour, signal: true, attended: attended,
			cleaning: time.Second}.run(t)
		assert.ErrorIs(t, p.err, assert.AnError)
		assert.ErrorIs(t, p.err, ErrUnanswered)
		assert.ErrorContains(t, p.err, "writing the result: the storage does not answer: /res, for ")
		assert.ErrorIs(t, p.given, ErrUnanswered)
		assert.Equal(t, after, p.gaveUp)
		assert.Equal(t, after+time.Second, p.took)
		assert.Equal(t, result.StatusIncomplete, p.finished.Status)
		if attended {
			assert.Equal(t, []string{"running", writing}, p.stages[:2])
		}
	}
}

func TestIOTimeoutGivesUpAResult(t *testing.T) {
	for timeout, after := range map[time.Duration]time.Duration{
		time.Second: publishAttended, time.Minute: time.Minute} {
		p := publishing{takes: time.Hour, timeout: timeout}.run(t)
		assert.ErrorIs(t, p.err, ErrUnanswered, "no other trial is begun")
		assert.Equal(t, after, p.gaveUp)
		assert.Equal(t, after, p.took)
		assert.Equal(t, result.StatusComplete, p.finished.Status)
	}
}

// TestAResultThatComesLateIsNoFailure: it is safe, which is what counts.
func TestAResultThatComesLateIsNoFailure(t *testing.T) {
	p := publishing{takes: publishAttended + time.Second, timeout: time.Second,
		cleaning: time.Minute}.run(t)
	assert.NoError(t, p.err)
	assert.ErrorIs(t, p.given, ErrUnanswered)
}

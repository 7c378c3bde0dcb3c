package benchmarks

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"kvbench/kvbench"
	"kvbench/kvbench/params"
)

// asked is a question to a filesystem, and what became of it.
type asked struct {
	limit   time.Duration // of the silence
	answers time.Duration // after so long
	busy    time.Duration // for so long the thread that asks runs
	ends    time.Duration // when a signal comes, 0 = never

	told   []string
	answer string
	took   time.Duration
	err    error
}

// errSignal ends a question.
var errSignal = errors.New("Ctrl-C")

// ask asks, in virtual time.
func (a asked) ask(t *testing.T) asked {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		if a.ends > 0 {
			time.AfterFunc(a.ends, func() { cancel(errSignal) })
		}
		began := time.Now()
		q := question{ctx: ctx, about: func() string { return "a disk" },
			limit: func() time.Duration { return a.limit },
			ran:   func(string) string { return fmt.Sprint(min(time.Since(began), a.busy)) },
			tell: func(about string, silent time.Duration) {
				a.told = append(a.told, about+" "+short(silent))
			}}
		a.answer, a.err = ask(q, func() (string, error) {
			<-time.After(a.answers)
			return "room", nil
		})
		a.took = time.Since(began)
		<-time.After(a.answers) // to somebody who has gone
		cancel(nil)
	})
	return a
}

func TestAQuestionIsWaitedFor(t *testing.T) {
	a := asked{answers: time.Second}.ask(t)
	assert.NoError(t, a.err)
	assert.Equal(t, "room", a.answer)
	assert.Equal(t, time.Second, a.took)
	assert.Empty(t, a.told)
}

func TestASilentFilesystemIsToldOf(t *testing.T) {
	a := asked{answers: 4500 * time.Millisecond}.ask(t)
	assert.NoError(t, a.err)
	assert.Equal(t, "room", a.answer)
	assert.Equal(t, []string{"a disk 2s", "a disk 3s", "a disk 4s"}, a.told)
}

// TestABusyQuestionIsNoSilence: to count a million files takes long, and all of them answer.
func TestABusyQuestionIsNoSilence(t *testing.T) {
	a := asked{answers: time.Minute, busy: 59 * time.Second, limit: 3 * time.Second}.ask(t)
	assert.NoError(t, a.err)
	assert.Equal(t, "room", a.answer)
	assert.Empty(t, a.told)
}

func TestASignalEndsAQuestion(t *testing.T) {
	a := asked{answers: time.Hour, ends: time.Second}.ask(t)
	assert.ErrorIs(t, a.err, errSignal)
	assert.Empty(t, a.answer)
	assert.Equal(t, time.Second, a.took)
}

func TestIOTimeoutEndsAQuestion(t *testing.T) {
	a := asked{answers: time.Hour, limit: 3 * time.Second}.ask(t)
	assert.ErrorIs(t, a.err, kvbench.ErrUnanswered)
	assert.ErrorContains(t, a.err, ": a disk, for 3.1s, longer than -io-timeout 3s: ")
	assert.Empty(t, a.answer)
	assert.Equal(t, 3*time.Second+look, a.took)
}

// TestTheLiveLineTellsOfAQuestion, and of which directory.
func TestTheLiveLineTellsOfAQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, stages := &params.Values{CacheDirs: []string{"/mnt/a", "/mnt/b"}}, make(chan string)
		stage, err := askFor(t.Context(), v, func(s kvbench.Snapshot) { stages <- s.Stage },
			func() (string, error) { return <-stages, nil })
		assert.NoError(t, err)
		assert.Equal(t, "waiting for an answer of the cache directory /mnt/a or the cache "+
			"directory /mnt/b", stage)
	})
}

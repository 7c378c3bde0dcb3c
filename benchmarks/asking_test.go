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

// errSignal ends a question.
var errSignal = errors.New("Ctrl-C")

// TestQuestions asks a filesystem in virtual time. To count a million files takes long, and is no
// silence: the thread runs.
func TestQuestions(t *testing.T) {
	for name, c := range map[string]struct {
		limit, answers, busy, ends time.Duration // ends: when a signal comes, 0 = never

		told []string
		took time.Duration
		err  error
	}{
		"soon": {answers: time.Second, took: time.Second},
		"silent": {answers: 4500 * time.Millisecond, took: 4500 * time.Millisecond,
			told: []string{"a disk 2s", "a disk 3s", "a disk 4s"}},
		"busy": {answers: time.Minute, busy: 59 * time.Second, limit: 3 * time.Second,
			took: time.Minute},
		"signal": {answers: time.Hour, ends: time.Second, took: time.Second, err: errSignal},
		"io-timeout": {answers: time.Hour, limit: 3 * time.Second, took: 3*time.Second + look,
			told: []string{"a disk 2s", "a disk 3s"}, err: kvbench.ErrUnanswered},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				if c.ends > 0 {
					time.AfterFunc(c.ends, func() { cancel(errSignal) })
				}
				began := time.Now()
				var told []string
				q := question{ctx: ctx, about: func() string { return "a disk" },
					limit: func() time.Duration { return c.limit },
					ran:   func(string) string { return fmt.Sprint(min(time.Since(began), c.busy)) },
					tell: func(about string, silent time.Duration) {
						told = append(told, about+" "+short(silent))
					}}
				answer, err := ask(q, func() (string, error) {
					<-time.After(c.answers)
					return "room", nil
				})
				assert.ErrorIs(t, err, c.err)
				assert.Equal(t, map[bool]string{true: "room"}[c.err == nil], answer)
				assert.Equal(t, c.took, time.Since(began))
				assert.Equal(t, c.told, told)
				if name == "io-timeout" {
					assert.ErrorContains(t, err, ": a disk, for 3.1s, longer than -io-timeout 3s: ")
				}
				<-time.After(c.answers) // the goroutine that asks ends
				cancel(nil)
			})
		})
	}
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

package benchmarks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/kvbench/result"
)

// errSignal ends a wait.
var errSignal = errors.New("Ctrl-C")

// TestWaitingForAFilesystem in virtual time. To count a million files takes long, and is no silence: the
// thread runs.
func TestWaitingForAFilesystem(t *testing.T) {
	for name, c := range map[string]struct {
		limit, answers, busy, ends time.Duration // ends: when a signal comes, 0 = never

		shown []string
		took  time.Duration
		err   error
	}{
		"soon": {answers: time.Second, took: time.Second},
		"silent": {answers: 4500 * time.Millisecond, took: 4500 * time.Millisecond,
			shown: []string{"a disk 2 s", "a disk 3 s", "a disk 4 s"}},
		"busy": {answers: time.Minute, busy: 59 * time.Second, limit: 3 * time.Second,
			took: time.Minute},
		"signal": {answers: time.Hour, ends: time.Second, took: time.Second, err: errSignal},
		"io-timeout": {answers: time.Hour, limit: 3 * time.Second, took: 3*time.Second + 2*lookEvery,
			shown: []string{"a disk 2 s", "a disk 3 s"}, err: kvbench.ErrUnanswered},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				if c.ends > 0 {
					time.AfterFunc(c.ends, func() { cancel(errSignal) })
				}
				began := time.Now()
				var shown []string
				a := &access{ran: func(string) string { return fmt.Sprint(min(time.Since(began), c.busy)) }}
				a.what.Store("a disk")
				a.limit.Store(int64(c.limit))
				answer, err := await(ctx, a, func(what string, silent time.Duration) {
					shown = append(shown, what+" "+short(silent))
				}, func() (string, error) {
					<-time.After(c.answers)
					return "room", nil
				})
				assert.ErrorIs(t, err, c.err)
				assert.Equal(t, map[bool]string{true: "room"}[c.err == nil], answer)
				assert.Equal(t, c.took, time.Since(began))
				assert.Equal(t, c.shown, shown)
				if name == "io-timeout" {
					assert.ErrorContains(t, err, ": a disk, for 3.1s, longer than -io-timeout 3s: ")
				}
				<-time.After(c.answers) // the goroutine that waits for it ends
				cancel(nil)
			})
		})
	}
}

// saying returns what f says on standard error.
func saying(t *testing.T, f func()) string {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	old := os.Stderr
	os.Stderr = file
	defer func() { os.Stderr = old }()
	f()
	_, err = file.Seek(0, io.SeekStart)
	require.NoError(t, err)
	text, err := io.ReadAll(file)
	require.NoError(t, err)
	return string(text)
}

// TestNoResult: a second signal in the window leaves none. A result that is written nowhere is printed once.
func TestNoResult(t *testing.T) {
	s := &session{}
	assert.Empty(t, saying(t, s.lastWords), "no trial was begun")
	s.running.Store(true)
	assert.Equal(t, "\nno result of this trial was written, because another signal came\n",
		saying(t, s.lastWords))
	s.unsaved.Store(&result.Result{Name: "MaxStorageStress", Benchmark: "MaxStorageStress"})
	assert.Contains(t, saying(t, s.lastWords), "the result of MaxStorageStress may be nowhere else")
	assert.NotContains(t, saying(t, s.lastWords), "MaxStorageStress")
}

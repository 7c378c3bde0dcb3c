package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/tiers/privtest"
)

// TestADirectoryThatHangsEndsTheStart: while a directory of the parameters does not answer, standard
// error names it. A signal or -io-timeout ends the process.
func TestADirectoryThatHangsEndsTheStart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dir  string // the directory that hangs
		sig  syscall.Signal
		args []string
		code int
		says string
	}{
		{"results", syscall.SIGTERM, nil, 143,
			"nothing was run or made: the run was ended (terminated) while it looked at "},
		{"cache", 0, []string{"-io-timeout=4s"}, exitFailed,
			"nothing was run or made: the storage does not answer: the cache directory "},
	} {
		t.Run(c.dir, func(t *testing.T) {
			t.Parallel()
			dir, server := privtest.FuseDir(t)
			b := newBench(t)
			if c.dir == "cache" {
				b.cache = filepath.Join(dir, "kv")
			} else {
				b.results = filepath.Join(dir, "res")
			}
			server.Hang(t)
			p := b.start(append(append(b.places(), "-test.bench=MaxStorageStress"), c.args...)...)
			silent := regexp.MustCompile(`kvbench: no answer for \d+s from the ` + c.dir +
				` directory ` + regexp.QuoteMeta(dir))
			eventually(t, "the name of the directory",
				func() bool { return silent.MatchString(p.errout.String()) })
			if c.sig != 0 {
				require.NoError(t, p.Process.Signal(c.sig))
			}
			o := p.end() // the directory still hangs
			assert.Equal(t, c.code, o.code)
			assert.Contains(t, o.stderr, c.says)
			assert.Empty(t, o.stdout)
			server.Answer(t)
			assert.NoDirExists(t, b.cache)
			assert.NoDirExists(t, b.results)
		})
	}
}

// TestADirectoryThatHangsBetweenTrials: the live line names it, and a signal ends the run. The trials
// before it keep their results.
func TestADirectoryThatHangsBetweenTrials(t *testing.T) {
	t.Parallel()
	dir, server := privtest.FuseDir(t)
	b := newBench(t)
	b.cache = filepath.Join(dir, "kv")
	s := b.terminal(200)
	p := b.start(append(append(b.places(), b.micro()...), "-test.bench=MultiTurn",
		"-test.count=1000", "-settle=1s", "-test.benchtime=1x")...)
	// The directory of the rank exists during a trial only. On a busy machine the next trial may have
	// begun before the directory hangs: then it continues and hangs once more, after another trial.
	for waits := false; !waits; {
		eventually(t, "the end of a trial", func() bool {
			return len(resultFiles(t, b.results)) > 0 && !exists(filepath.Join(b.cache, "rank_0"))
		})
		begun, before := time.Now(), len(s.String())
		server.Hang(t)
		eventually(t, "the wait on the live line, or the wrong moment", func() bool {
			shown := s.String()[before:]
			waits = strings.Contains(shown, ": waiting for an answer of the cache directory "+b.cache)
			return waits || strings.Contains(shown, "UNANSWERED for ") ||
				time.Since(begun) > 20*time.Second
		})
		if waits {
			require.NoError(t, p.Process.Signal(os.Interrupt))
			assert.Equal(t, 130, p.end().code) // the directory still hangs
		}
		server.Answer(t)
	}
	for _, path := range resultFiles(t, b.results) {
		assert.Equal(t, result.StatusComplete, readResult(t, path).Status)
	}
}

// TestAResultsDirectoryThatHangsLosesNoResult: the run prints the result on standard error when it
// stops waiting for the directory.
func TestAResultsDirectoryThatHangsLosesNoResult(t *testing.T) {
	t.Parallel()
	dir, server := privtest.FuseDir(t)
	b := newBench(t)
	b.results = filepath.Join(dir, "res")
	s := b.terminal(200)
	p := b.start(append(append(b.places(), b.micro()...), "-test.bench=MaxStorageStress",
		"-test.benchtime=10m")...)
	s.shows(t, ": running ")
	server.Hang(t)
	require.NoError(t, p.Process.Signal(os.Interrupt))
	s.shows(t, "writing the result to "+b.results)
	eventually(t, "the end of the files", func() bool { return !exists(b.cache) })
	server.Answer(t)
	o := p.end()
	assert.Equal(t, 130, o.code)
	assert.Contains(t, o.stderr, "the result of MaxStorageStress may be nowhere else than here, "+
		"because of this: the storage does not answer: "+b.results)
	assert.Equal(t, 1, strings.Count(o.stderr, "incomplete (ended by signal)"), "it is printed once")
}

// TestATraceThatHangsFreezesNothing: the live line shows it, and after a signal the result is written.
func TestATraceThatHangsFreezesNothing(t *testing.T) {
	t.Parallel()
	dir, server := privtest.FuseDir(t)
	text, err := os.ReadFile(data(t, "azure-small.csv"))
	require.NoError(t, err)
	trace := filepath.Join(dir, "azure.csv")
	require.NoError(t, os.WriteFile(trace, text, 0o644))
	b := newBench(t)
	s := b.terminal(200)
	p := b.start(append(append(b.places(), b.micro()...), "-test.bench=AzureTrace",
		"-test.benchtime=10m", "-replay-cycles=0", "-trace-speedup=100", "-azure-trace-path",
		trace)...)
	s.shows(t, ": running ")
	server.Hang(t)
	s.goesOn(t)
	require.NoError(t, p.Process.Signal(os.Interrupt))
	eventually(t, "the result", func() bool { return len(resultFiles(t, b.results)) > 0 })
	server.Answer(t)
	o := p.end()
	assert.Equal(t, 130, o.code, o.stderr)
	r := interrupted(t, b)
	assert.Contains(t, strings.Join(r.Warnings, "\n"), trace+" did not answer when the window ended")
	total := r.Load["total"]
	assert.Equal(t, total.Offered, total.Completed+total.Failed+total.InFlight+total.Queued)
}

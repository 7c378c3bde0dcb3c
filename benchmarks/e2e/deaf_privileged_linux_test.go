package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/tiers/privtest"
)

// TestTheStartIsNotDeaf: while a directory that the parameters name does not answer, standard error
// says which, a signal ends the process at once, and -io-timeout does.
func TestTheStartIsNotDeaf(t *testing.T) {
	for _, c := range []struct {
		name string
		of   string // the directory that hangs
		sig  syscall.Signal
		more []string
		code int
		says string
	}{
		{"an interruption", "cache", syscall.SIGINT, nil, 130,
			"nothing was run or made: the run was ended (interrupt) while it looked at the cache "},
		{"a termination", "results", syscall.SIGTERM, nil, 143,
			"nothing was run or made: the run was ended (terminated) while it looked at "},
		{"help", "cache", syscall.SIGINT, []string{"-help-parameters"}, 130,
			"while it looked at the cache directory "},
		{"a bound", "cache", 0, []string{"-io-timeout=4s"}, exitFailed,
			"nothing was run or made: the storage does not answer: the cache directory "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, server := privtest.FuseDir(t)
			b := newBench(t)
			if c.of == "cache" {
				b.cache = filepath.Join(dir, "kv")
			} else {
				b.results = filepath.Join(dir, "res")
			}
			server.Hang(t)
			p := b.start(append(append(b.places(), "-test.bench=MaxStorageStress"), c.more...)...)
			eventually(t, "who does not answer", func() bool {
				return strings.Contains(p.errout.String(), "kvbench: no answer for 2s from the "+
					c.of+" directory "+dir)
			})
			if c.sig != 0 {
				require.NoError(t, p.Process.Signal(c.sig))
			}
			o := p.end() // it answers nothing yet
			assert.Equal(t, c.code, o.code)
			assert.Contains(t, o.stderr, c.says)
			assert.Empty(t, o.stdout)
			server.Answer(t)
			assert.NoDirExists(t, b.cache)
			assert.NoDirExists(t, b.results)
		})
	}
}

// TestTheTimeBetweenTrialsIsNotDeaf: a directory that hangs while the drive rests holds up the next
// trial, which is seen, and nothing else.
func TestTheTimeBetweenTrialsIsNotDeaf(t *testing.T) {
	for timeout, code := range map[string]int{"0": 130, "3s": exitFailed} {
		t.Run("io-timeout="+timeout, func(t *testing.T) {
			t.Parallel()
			dir, server := privtest.FuseDir(t)
			b := newBench(t)
			b.cache = filepath.Join(dir, "kv")
			s := b.terminal(200)
			p := b.start(append(append(b.places(), b.micro()...), "-test.bench=MultiTurn",
				"-test.count=2", "-settle=3s", "-test.benchtime=1s", "-io-timeout="+timeout)...)
			eventually(t, "the rest after a trial",
				func() bool { return strings.Count(s.String(), ": resting 0s") > 1 })
			server.Hang(t)
			eventually(t, "who does not answer on the live line", func() bool {
				return strings.Contains(s.String(), ": waiting for an answer of the cache "+
					"directory "+b.cache+" 2s")
			})
			if code == 130 {
				require.NoError(t, p.Process.Signal(os.Interrupt))
			}
			o := p.end() // it answers nothing yet
			assert.Equal(t, code, o.code)
			if code == exitFailed {
				assert.Contains(t, o.stdout, "the storage does not answer: the cache directory "+
					b.cache)
			}
			server.Answer(t)
			assert.Equal(t, result.StatusComplete, theResult(t, b.results).Status)
		})
	}
}

// TestAResultsDirectoryThatHangsLosesNoResult: what would stand there is on standard error, when
// nobody waits for the directory any more.
func TestAResultsDirectoryThatHangsLosesNoResult(t *testing.T) {
	t.Parallel()
	dir, server := privtest.FuseDir(t)
	b := newBench(t)
	b.results = filepath.Join(dir, "res")
	s := b.terminal(200)
	p := b.start(append(append(b.places(), b.micro()...), "-test.bench=MaxStorageStress",
		"-test.benchtime=10m")...)
	shows := func(what string) {
		t.Helper()
		eventually(t, what+" on the live line",
			func() bool { return strings.Contains(s.String(), what) })
	}
	shows(": running 1s")
	server.Hang(t)
	require.NoError(t, p.Process.Signal(os.Interrupt))
	shows("writing the result to " + b.results + " 1s")
	// A person waits no longer than it takes to be given up; its files are removed then.
	eventually(t, "the end of the files", func() bool { return !exists(b.cache) })
	server.Answer(t)
	o := p.end()
	assert.Equal(t, 130, o.code)
	assert.Contains(t, o.stderr, "the result of MaxStorageStress may be nowhere else than here, "+
		"because of this: the storage does not answer: "+b.results)
	assert.Equal(t, 1, strings.Count(o.stderr, "incomplete (ended by signal)"), "it is told once")
}

// TestATraceThatHangsFreezesNothing: the live line tells of it, and a signal makes the result.
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
	eventually(t, "the run on the live line",
		func() bool { return strings.Contains(s.String(), ": running 1s") })
	server.Hang(t)
	for n := range 3 { // it goes on
		eventually(t, "what is unanswered on the live line",
			func() bool { return strings.Count(s.String(), "UNANSWERED for ") > n })
	}
	require.NoError(t, p.Process.Signal(os.Interrupt))
	eventually(t, "the result", func() bool { return len(resultFiles(t, b.results)) > 0 })
	server.Answer(t)
	o := p.end()
	assert.Equal(t, 130, o.code, o.stderr)
	r := interrupted(t, b)
	assert.Contains(t, strings.Join(r.Warnings, "\n"), trace+" did not answer when the window ended")
	all := r.Load["total"]
	assert.Equal(t, all.Offered, all.Completed+all.Failed+all.InFlight+all.Queued)
}

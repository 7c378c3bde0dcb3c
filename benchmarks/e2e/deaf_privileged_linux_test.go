package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
			eventually(t, "the name of the directory", func() bool {
				return strings.Contains(p.errout.String(), "kvbench: no answer for 2s from the "+
					c.dir+" directory "+dir)
			})
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
	s.shows(t, ": running 1s")
	server.Hang(t)
	require.NoError(t, p.Process.Signal(os.Interrupt))
	s.shows(t, "writing the result to "+b.results+" 1s")
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
	s.shows(t, ": running 1s")
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

package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/tiers/privtest"
)

// What -io-timeout says of a directory that stops answering.
const unanswered = "the storage does not answer"

// TestARemovalThatHangsFailsTheTrial: its result is there already and stays, but no other trial
// begins on such storage.
func TestARemovalThatHangsFailsTheTrial(t *testing.T) {
	t.Parallel()
	dir, server := privtest.FuseDir(t)
	b := newBench(t)
	b.cache = filepath.Join(dir, "kv")
	s := b.terminal(200)
	p := b.start(append(append(b.places(), "-test.count=2", "-settle=500ms",
		"-test.benchtime=2s", "-io-timeout=2s"), strings.Fields(reads)...)...)
	s.shows(t, ": running 1s") // nothing is removed in the window
	server.HangOn(t, privtest.Unlink)
	eventually(t, "the end of the trial",
		func() bool { return strings.Contains(p.out.String(), "--- FAIL: ") })
	server.AnswerAll(t)
	o := p.end()
	assert.Equal(t, exitFailed, o.code)
	assert.Regexp(t, unanswered+": remov.* of "+b.cache+".*, longer than -io-timeout 2s: ", o.stdout)
	assert.Equal(t, result.StatusComplete, theResult(t, b.results).Status, "of one trial")
	assert.Equal(t, 1, strings.Count(s.String(), ": running 1s"))
}

// TestALadderThatHangsIsGivenUp: what the window has measured is told.
func TestALadderThatHangsIsGivenUp(t *testing.T) {
	t.Parallel()
	dir, server := privtest.FuseDir(t)
	b := newBench(t)
	b.cache = filepath.Join(dir, "kv")
	s := b.terminal(200)
	const window = 6 * time.Second
	p := b.start(append(b.places(), "-test.bench=MaxStorageStress", "-storage-capacity-gb=0.7",
		"-test.benchtime="+window.String(), "-io-timeout=2s")...)
	s.shows(t, "plain I/O after the window 0s")
	server.HangOn(t, privtest.Create, privtest.Fallocate, privtest.Open)
	eventually(t, "the result", func() bool { return len(resultFiles(t, b.results)) > 0 })
	assert.Regexp(t, `plain I/O after the window \ds, \d+ requests UNANSWERED for 2s`, s.String())
	server.AnswerAll(t)
	o := p.end()
	assert.Equal(t, exitFailed, o.code)
	r := theResult(t, b.results)
	assert.EqualValues(t, window, r.WindowNS)
	assert.Positive(t, r.Completions())
	require.NotNil(t, r.Harness.Ladder)
	assert.Equal(t, unanswered, r.Harness.Ladder.Reason)
	assert.Equal(t, result.StatusFailed, r.Status)
	assert.Regexp(t, "^"+unanswered+": (open|create|preallocate).* of "+b.cache, r.Error)
	require.NotNil(t, r.Stalls)
	assert.False(t, r.Stalls.Longest[0].Answered)
}

package traces

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/workloads"
	"kvbench/workloads/formats"
	"kvbench/workloads/users"
)

// sessionFiles writes n sessions into a directory, and returns how many requests they have. Every third
// session starts an agent, on either clock. The last file has two documents.
func sessionFiles(t *testing.T, n int) (dir string, requests int) {
	t.Helper()
	dir = t.TempDir()
	request := func(at float64, first, blocks int) string {
		var ids []string
		for i := range blocks {
			ids = append(ids, fmt.Sprint(first+i))
		}
		requests++
		return fmt.Sprintf(`{"t":%v,"in":%d,"out":9,"hash_ids":[%s],"api_time":0.5}`, at,
			64*blocks+1, strings.Join(ids, ","))
	}
	for k := range n {
		var list []string
		for i := range 5 + k%7 {
			at := float64(4 * i)
			list = append(list, request(at, 0, 4+i))
			if k%3 == 0 && i == 2 {
				begun, inner := at+1, 0.0 // from the agent's start
				if k%2 == 0 {
					inner = begun // on the session's clock
				}
				list = append(list, fmt.Sprintf(`{"type":"subagent","t":%v,"requests":[%s,%s]}`, begun,
					request(inner, 100, 3), request(inner+1, 100, 4)))
			}
		}
		text := fmt.Sprintf(`{"id":"s%d","block_size":64,"requests":[%s]}`, k,
			strings.Join(list, ","))
		name := filepath.Join(dir, fmt.Sprintf("trace_%04d.json", k-max(0, k-n+2)))
		f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		require.NoError(t, err)
		_, err = fmt.Fprintln(f, text)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	return dir, requests
}

func filesIn(t *testing.T, dir string) []string {
	t.Helper()
	files, err := formats.Blocks.Files(dir)
	require.NoError(t, err)
	return files
}

// Hundreds of sessions with a limited number of live ones: no row is lost.
func TestSessionsRunConcurrently(t *testing.T) {
	dir, want := sessionFiles(t, 120)
	for _, live := range []int{1, 16, 500} {
		cfg := traceConfig(filesIn(t, dir)...)
		cfg.Live, cfg.Speedup = live, 1
		s := openTrace(t, formats.Blocks, cfg)
		rs := all(t, s)
		require.NoError(t, s.Err())
		assert.Len(t, rs, want)
		r := s.Report()
		assert.EqualValues(t, want, r.Rows)
		assert.EqualValues(t, 120, r.Sessions)
		assert.Equal(t, min(live, 120), r.Live)
		assert.Equal(t, 1, r.Cycles)
		assert.Zero(t, r.Malformed)
		// A live session has made a request and will make another one.
		first, last := map[string]int{}, map[string]int{}
		for i, r := range rs {
			scope, _, _ := strings.Cut(strings.TrimPrefix(r.Blocks[0].Key, "blk/"), "/")
			if _, seen := first[scope]; !seen {
				first[scope] = i
			}
			last[scope] = i
		}
		assert.Len(t, first, 120)
		most := 0
		for i := range rs {
			n := 0
			for scope := range first {
				if first[scope] <= i && i <= last[scope] {
					n++
				}
			}
			most = max(most, n)
		}
		assert.LessOrEqual(t, most, live)
		assert.Greater(t, most, min(live, 120)/2)
		// The offered load agrees.
		loads := s.Account(24 * time.Hour)
		assert.EqualValues(t, want, loads[workloads.Responsive].Offered)
	}
}

// The sessions of the second cycle have other blocks. Otherwise they would find the blocks of the first cycle.
func TestSessionsPlayedAgain(t *testing.T) {
	dir, want := sessionFiles(t, 6)
	cfg := traceConfig(filesIn(t, dir)...)
	cfg.Live, cfg.Cycles = 4, 3
	s := openTrace(t, formats.Blocks, cfg)
	rs := all(t, s)
	assert.Len(t, rs, 3*want)
	assert.Equal(t, 3, s.Report().Cycles)
	assert.EqualValues(t, want, s.Report().Rows)
	assert.EqualValues(t, 18, s.Report().Sessions)
	once := countBlocks(all(t, openTrace(t, formats.Blocks, traceConfig(cfg.Paths...))))
	assert.Equal(t, 3*once.ideal, countBlocks(rs).ideal)
	// Ids of a whole data set are the same blocks.
	path := write(t, "g.json", `{"block_size":64,"hash_id_scope":"global","requests":[
		{"t":0,"in":64,"out":1,"hash_ids":[1]}]}`)
	cfg.Paths = []string{path}
	assert.Equal(t, 2, countBlocks(all(t, openTrace(t, formats.Blocks, cfg))).ideal)
}

func TestStartOfSessions(t *testing.T) {
	dir, want := sessionFiles(t, 30)
	cfg := traceConfig(filesIn(t, dir)...)
	cfg.Live, cfg.Speedup, cfg.Start = 4, 1, time.Minute
	s := openTrace(t, formats.Blocks, cfg)
	rs := all(t, s)
	r := s.Report()
	assert.Positive(t, r.Skipped)
	assert.EqualValues(t, want, int64(len(rs))+r.Skipped)
	cfg.Start = 24 * time.Hour
	_, err := New(formats.Blocks, cfg)
	assert.ErrorContains(t, err, "before the start of the replay")
}

// A file without sessions among them: all follow each other, as before.
func TestSessionsAndOthers(t *testing.T) {
	cfg := traceConfig(testdata("session-small.json"), testdata("mooncake-small.jsonl"))
	cfg.Live = 5
	s := openTrace(t, formats.Blocks, cfg)
	all(t, s)
	assert.Zero(t, s.Report().Sessions)
	assert.ErrorContains(t, formats.OnlySessions("-x", cfg.Paths), cfg.Paths[1]+" has none")
	assert.NoError(t, formats.OnlySessions("-x", cfg.Paths[:1]))
}

// Sessions that wait for their answers make all recorded requests, in any order of the answers.
func TestRecordedSessionsWait(t *testing.T) {
	dir, want := sessionFiles(t, 40)
	cfg := Config{Paths: filesIn(t, dir), Cycles: 2, Live: 7, Profile: users.Default(),
		Speedup: 1}
	s, err := NewSessions(formats.Blocks, cfg)
	require.NoError(t, err)
	defer s.Close()
	now, n := time.Duration(0), 0
	var flight []*workloads.Request
	for {
		r, st, wake := s.Take(now)
		if st == workloads.Exhausted {
			break
		}
		if st == workloads.Ready {
			n++
			flight = append(flight, r)
			continue
		}
		// Requests complete one at a time, the latest first.
		if len(flight) == 0 || wake < now+time.Second {
			now = wake
			continue
		}
		now += time.Second
		s.Done(flight[len(flight)-1], now)
		flight = flight[:len(flight)-1]
	}
	require.NoError(t, s.Err())
	assert.Equal(t, 2*want, n)
	r := s.Report()
	assert.EqualValues(t, want, r.Rows)
	assert.EqualValues(t, 80, r.Sessions)
	assert.Equal(t, 7, r.Live)
	assert.Equal(t, 2, r.Cycles)
	rows, err := s.Survey(1<<20, func(*formats.Row, string) {})
	assert.EqualValues(t, want, rows)
	assert.ErrorIs(t, err, io.EOF)
}

// An unusable row does not affect other rows, and a broken file ends the input with an error that names it.
func TestMalformedRowsOfSessions(t *testing.T) {
	good := `{"t":1,"in":64,"out":1,"hash_ids":[1]}`
	path := write(t, "bad.json", `{"block_size":64,"requests":[`+good+`,{"t":2},`+good+`]}`)
	cfg := traceConfig(path)
	cfg.AllowMalformed = true
	s := openTrace(t, formats.Blocks, cfg)
	assert.Len(t, all(t, s), 2)
	r := s.Report()
	assert.EqualValues(t, 3, r.Rows)
	assert.EqualValues(t, 1, r.Malformed)
	assert.Equal(t, path, r.First[0].File)
	cfg.AllowMalformed = false
	_, err := NewSessions(formats.Blocks, cfg)
	assert.ErrorContains(t, err, "malformed")
}

package traces

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/workloads"
	"kvbench/workloads/formats"
)

// TestReplays runs the scripts of testdata: files, and the requests that their replay makes.
// Rewrite them with -rewrite. Everything is taken when it arrives and finished at once; ShareGPT
// has a token per character.
func TestReplays(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, script string) {
		dir := t.TempDir()
		datadriven.RunTest(t, script, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "file" {
				var name string
				d.CmdArgs[0].Vals = []string{d.CmdArgs[0].Key}
				d.CmdArgs[0].Scan(t, 0, &name)
				require.NoError(t,
					os.WriteFile(filepath.Join(dir, name), []byte(d.Input+"\n"), 0o600))
				return ""
			}
			return strings.ReplaceAll(runReplay(t, d, dir), dir+string(filepath.Separator), "")
		})
	})
}

// runReplay executes one command: a format, files, and settings as key=value.
func runReplay(t *testing.T, d *datadriven.TestData, dir string) string {
	known := map[string]formats.Format{"azure": formats.Azure, "burstgpt": formats.BurstGPT,
		"blocks": formats.Blocks, "sharegpt": perCharacter(t)}
	format, ok := known[d.Cmd]
	require.True(t, ok, d.Cmd)
	cfg := traceConfig()
	var start string
	d.MaybeScanArgs(t, "start", &start)
	for _, arg := range d.CmdArgs {
		switch arg.Key {
		case "start":
			var err error
			cfg.Start, err = time.ParseDuration(start)
			require.NoError(t, err)
		case "speedup":
			require.NoError(t, scan(arg, &cfg.Speedup))
		case "cycles":
			require.NoError(t, scan(arg, &cfg.Cycles))
		case "rate":
			cfg.ConstantRate = true
			require.NoError(t, scan(arg, &cfg.Rate))
		case "requests":
			require.NoError(t, scan(arg, &cfg.MaxRequests))
		case "conversations":
			require.NoError(t, scan(arg, &cfg.MaxConversations))
		case "turns":
			require.NoError(t, scan(arg, &cfg.Profile.MaxTurns))
		case "single-turn":
			cfg.MultiTurn = false
		case "allow-malformed":
			cfg.AllowMalformed = true
		default:
			cfg.Paths = append(cfg.Paths, filepath.Join(dir, arg.Key))
		}
	}
	s, err := New(format, cfg)
	if err != nil {
		return fmt.Sprintf("error: %v\n", err)
	}
	defer s.Close()
	var b strings.Builder
	rs := all(t, s)
	for _, r := range rs {
		b.WriteString(line(r))
	}
	report := s.Report()
	fmt.Fprintf(&b, "%d rows, %d failed, %d malformed, %d skipped, %d cycles\n",
		report.Rows, report.Failed, report.Malformed, report.Skipped, report.Cycles)
	if report.Interpreted > 0 {
		fmt.Fprintf(&b, "%d interpreted: %s\n", report.Interpreted, strings.Join(report.Notes, "; "))
	}
	for _, e := range report.First {
		fmt.Fprintln(&b, e)
	}
	if err := s.Err(); err != nil {
		fmt.Fprintf(&b, "error: %v\n", err)
	}
	load := total(s.Account(time.Hour))
	assert.EqualValues(t, len(rs), load.Offered, "what was passed over was never offered")
	assert.Zero(t, load.Queued)
	return b.String()
}

func scan(arg datadriven.CmdArg, v any) error {
	_, err := fmt.Sscan(arg.Vals[0], v)
	return err
}

// perCharacter is ShareGPT with a token for every character.
func perCharacter(t testing.TB) formats.Format {
	counter := formats.NewTokenizer(formats.TokenizerChars, 1)
	return formats.ShareGPT(16384, 2048, counter)
}

// line formats the relevant fields of a request.
func line(r *workloads.Request) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v", r.Arrival)
	if r.Own.Key != "" {
		fmt.Fprintf(&b, " %s", r.Own.Key)
	}
	fmt.Fprintf(&b, " %d+%d", r.ContextTokens, r.GenerateTokens)
	if r.Turn > 1 {
		fmt.Fprintf(&b, " turn %d after", r.Turn)
	}
	for _, e := range r.History {
		fmt.Fprintf(&b, " %s", e.Key)
	}
	if len(r.Blocks) > 0 {
		fmt.Fprintf(&b, " %d cached of", r.IdealBlocks)
	}
	for _, e := range r.Blocks {
		fmt.Fprintf(&b, " %s:%d", e.Key, e.Tokens)
	}
	b.WriteByte('\n')
	return b.String()
}

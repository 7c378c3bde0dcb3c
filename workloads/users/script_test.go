package users

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"kvbench/workloads"
	"kvbench/workloads/model"
)

// TestScripts runs the scripts of testdata: users, their requests, and the operations of each request on
// the cache. Rewrite them with -rewrite. Each command gives the duration of its requests. A token has one
// byte.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			require.Equal(t, "users", d.Cmd)
			return runUsers(t, d)
		})
	})
}

// runUsers executes one command.
func runUsers(t *testing.T, d *datadriven.TestData) string {
	p := Default()
	cfg := Config{Profile: p, Seed: 42, MultiTurn: true, MaxRequests: 8}
	n, documents, service := 2, 0, "0s"
	plans := workloads.Planner{Sizer: model.Sizer{BytesPerToken: 1}, Batched: true}
	d.MaybeScanArgs(t, "n", &n)
	d.MaybeScanArgs(t, "requests", &cfg.MaxRequests)
	d.MaybeScanArgs(t, "rate", &cfg.Rate)
	d.MaybeScanArgs(t, "documents", &documents)
	d.MaybeScanArgs(t, "service", &service)
	cfg.ClosedLoop, cfg.Overtaking = d.HasArg("closed-loop"), d.HasArg("overtaking")
	cfg.PrefillOnly, cfg.DecodeOnly = d.HasArg("prefill-only"), d.HasArg("decode-only")
	cfg.ConstantRate, cfg.PrefixCaching = d.HasArg("constant"), d.HasArg("prefixes")
	cfg.MultiTurn = !d.HasArg("single-turn")
	cfg.Users = Population(p, cfg.Seed, n, d.HasArg("cpython"))
	took, err := time.ParseDuration(service)
	require.NoError(t, err)
	p.RAG.Share = 0.5
	cfg.Corpus = NewCorpus(p.RAG, documents, model.Model{}, plans.Sizer, cfg.Seed)
	var b strings.Builder
	for _, u := range cfg.Users {
		fmt.Fprintf(&b, "user %d: %s, %s, up to %d+%d tokens, thinks %.2f s\n",
			u.ID, u.Template, u.Class, u.Context, u.Generate, u.Think)
	}
	simulate(New(cfg), n, func(*workloads.Request) time.Duration { return took / 2 },
		func(now time.Duration, r *workloads.Request) bool {
			fmt.Fprintf(&b, "%v user %d, conversation %d, turn %d, %s, %d+%d tokens",
				r.Arrival.Round(time.Millisecond), r.User, r.Conversation, r.Turn, r.Kind,
				r.ContextTokens, r.GenerateTokens)
			if late := (now - r.Arrival).Round(time.Millisecond); late > 0 {
				fmt.Fprintf(&b, ", %v late", late)
			}
			b.WriteByte('\n')
			for _, op := range plans.Plan(nil, r) {
				fmt.Fprintf(&b, "  %s %s", op.Kind, op.Key)
				if op.Times > 1 {
					fmt.Fprintf(&b, " %d times", op.Times)
				}
				b.WriteByte('\n')
			}
			return false
		})
	return b.String()
}

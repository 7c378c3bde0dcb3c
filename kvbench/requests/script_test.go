package requests

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/cache"
	"kvbench/tiers/clock"
	"kvbench/tiers/faults"
	"kvbench/tiers/tiertest"
	"kvbench/tiers/transfer"
	"kvbench/tracing/host"
	"kvbench/workloads"
)

// TestScripts runs the scripts of testdata/scripts: loads of a few requests, and what their results
// say. Rewrite them with -rewrite. Sizes are in tokens, each of which is a page and a chunk. The
// storage moves a token a second in each direction, in the time of a bubble; with the word fast it
// takes no time. See scriptConfig for the settings, scriptRequests for the lines of the input, and
// scriptPart for what can be shown.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		switch filepath.Base(path) {
		case "first-token", "lookups", "prompts", "times": // these compare numbers
			tiertest.OneThread(t)
		}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			require.Equal(t, "run", d.Cmd)
			var out strings.Builder
			synctest.Test(t, func(t *testing.T) { scriptRun(t, d, &out) })
			return out.String()
		})
	})
}

func scriptRun(t *testing.T, d *datadriven.TestData, out *strings.Builder) {
	var show, stages []string
	d.ScanArgs(t, "show", &show)
	cfg, src := scriptConfig(t, d)
	if slices.Contains(show, "stages") {
		cfg.Progress = func(s kvbench.Snapshot) {
			stage := s.Stage
			if s.DoneTotal > 0 {
				stage += " " + tokens(s.DoneTotal)
			}
			if len(stages) == 0 || stages[len(stages)-1] != stage {
				stages = append(stages, stage)
			}
		}
	}
	begin, published := time.Now(), time.Duration(0)
	cfg.Publish = func(*result.Result) error { published = time.Since(begin); return nil }
	r, gauges, err := usage(t.Context(), t, cfg)
	for _, g := range gauges {
		assert.Equal(t, g.Used, g.Bytes, "reservations are left in the %s tier", g.Level)
	}
	if err != nil {
		fmt.Fprintf(out, "%s, ended by %s: %v\n", r.Status, r.EndedBy, err)
		return
	}
	require.Equal(t, result.StatusComplete, r.Status)
	checkLoad(t, r)
	if !d.HasArg("dispatch") { // which is in no part of a request's time
		checkSums(t, r)
	}
	for i := range src.next { // also when a request failed, found its entry, or was cut off
		assert.Equal(t, []int{1, 1}, []int{src.written[int64(i)], src.done[int64(i)]}, "request %d", i)
	}
	for _, part := range show {
		switch part {
		case "stages":
			fmt.Fprintln(out, "stages", strings.Join(stages, ", "))
		case "took":
			fmt.Fprintf(out, "the result after %v, the end after %v\n", published, time.Since(begin))
		case "log":
			slices.SortStableFunc(src.log, func(a, b event) int { // some are at one moment
				return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.what, b.what))
			})
			for _, e := range src.log {
				fmt.Fprintln(out, e.at, e.what)
			}
		default:
			text := scriptPart(r, part)
			require.NotEmpty(t, text, part)
			fmt.Fprintln(out, text)
		}
	}
}

// scriptConfig reads the settings of a run. Capacities are in tokens; memory is a tier above the
// storage.
func scriptConfig(t *testing.T, d *datadriven.TestData) (runConfig, *script) {
	src := newScript(scriptRequests(t, d.Input)...)
	src.ordered, src.endless = d.HasArg("ordered"), d.HasArg("endless")
	cfg := testConfig(nil, src, 1).finite()
	capacity, memory, layers, dispatch := int64(1<<38), int64(0), 0, time.Duration(0)
	var policy []string
	for name, to := range map[string]any{
		"workers": &cfg.Workers, "capacity": &capacity, "memory": &memory, "layers": &layers,
		"writers": &cfg.Storage.MaxWriters, "policy": &policy, "dispatch": &dispatch,
		"window": &cfg.Window, "warmup": &cfg.Warmup, "settle": &cfg.Settle, "limit": &cfg.Limit,
		"token-time": &cfg.TokenTime, "object-tokens": &cfg.Planner.ObjectTokens,
		"per-token": &cfg.Cost.PerToken, "per-square": &cfg.Cost.PerSquare, // seconds
	} {
		d.MaybeScanArgs(t, name, to)
	}
	d.MaybeScanArgs(t, "population", &cfg.Population.Entries, &cfg.Population.Tokens)
	if d.HasArg("precondition") {
		p := &cfg.Precondition
		d.ScanArgs(t, "precondition", &p.Bytes, &p.Threads, &p.Tokens)
		p.Bytes *= unit
	}
	cfg.Planner.Batched, cfg.Overtaking = d.HasArg("batched"), d.HasArg("overtaking")
	if policy != nil {
		cfg.Storage.Policy = kvbench.PolicyOf(policy[0], policy[1], policy[2])
	}
	if dispatch > 0 { // as parsing would take, with the dispatcher's lock
		cfg.OnDispatch = func(*workloads.Request, []workloads.Op) { time.Sleep(dispatch) }
	}
	cfg.Clock, cfg.Storage.Workers = clock.NewWall(), cfg.Workers
	cfg.Usage = func() host.Usage { return host.Usage{} } // of no processor
	levels := slow(cfg.Clock, capacity*unit)
	switch {
	case d.HasArg("fast"):
		levels[0].Tier = transfer.New(tiertest.NewNull(), nil)
	case layers > 0:
		levels[0].Tier = transfer.New(inLayers{levels[0].Files(), layers}, nil)
	}
	if memory > 0 {
		levels = append([]cache.Level{{Kind: tiers.CPU, Tier: transfer.New(tiertest.NewNull(), nil),
			Capacity: memory * unit}}, levels...)
	}
	if d.HasArg("fail") {
		for i, l := range levels {
			levels[i].Tier = transfer.New(faults.Wrap(l.Files(), scriptFault(t, d, l.Kind.String())), nil)
		}
	}
	cfg.Storage.Levels = levels
	return cfg, src
}

// scriptFault fails calls of a tier as fail=(TIER,CALL,KEY,ERRNO,FIRST,LAST) has it: the calls of these
// numbers for that object, or for all of them.
func scriptFault(t *testing.T, d *datadriven.TestData, tier string) faults.Hook {
	var level, call, key, errno string
	var first, last int64
	d.ScanArgs(t, "fail", &level, &call, &key, &errno, &first, &last)
	err := map[string]error{"EACCES": syscall.EACCES, "EINTR": syscall.EINTR,
		"ETIMEDOUT": syscall.ETIMEDOUT}[errno]
	require.Error(t, err, "unknown %s", errno)
	var calls atomic.Int64
	return func(_ context.Context, e faults.Event) error {
		if tier != level || string(e.Call) != call || key != "all" && e.Object.Key != key {
			return nil
		}
		if n := calls.Add(1); n < first || n > last {
			return nil
		}
		return err
	}
}

// inLayers is a tier that keeps objects layer by layer.
type inLayers struct {
	tiers.Files
	layers int
}

func (t inLayers) Traits() tiers.Traits {
	traits := t.Files.Traits()
	traits.Layers = t.layers
	return traits
}

var scriptKinds = map[string]workloads.Kind{"prefill": workloads.PrefillOnly,
	"decode": workloads.DecodeOnly, "both": workloads.PrefillDecode}

// scriptRequests reads requests, a line for some of them:
//
//	turns USER N TOKENS KIND    a conversation of N turns; a kind is prefill, decode or both
//	singles N TOKENS KIND       the first turns of N users
//	stored FIRST N TOKENS       reads of N entries of the population, one each
//	query ENTRY:TOKENS…         a query that reads entries of the population as documents
//	blocks ID…                  a prompt of blocks of ten tokens each, and five tokens more
//
// Behind them may stand generate=N,…, prefix=ID:TOKENS,… and at=TIME,…, each for the requests of the
// line in their order; the last value is that of all others.
func scriptRequests(t *testing.T, text string) (all []*workloads.Request) {
	for line := range strings.Lines(text) {
		var words []string
		options := map[string][]string{}
		for _, word := range strings.Fields(line) {
			if key, values, option := strings.Cut(word, "="); option {
				options[key] = strings.Split(values, ",")
			} else {
				words = append(words, word)
			}
		}
		number := func(text string) int {
			n, err := strconv.Atoi(text)
			require.NoError(t, err, line)
			return n
		}
		pair := func(text string) (int, int) {
			a, b, _ := strings.Cut(text, ":")
			return number(a), number(b)
		}
		var list []*workloads.Request
		stored := func(n, tokens int) {
			list = append(list, &workloads.Request{Kind: workloads.DecodeOnly, SystemPrompt: -1,
				Own: workloads.Entry{Key: workloads.PopulationKey(n), Tokens: tokens}})
		}
		switch words[0] {
		case "turns":
			list = conversation(number(words[1]), number(words[2]), number(words[3]),
				scriptKinds[words[4]])
		case "singles":
			for user := range number(words[1]) {
				list = append(list, conversation(user, 1, number(words[2]), scriptKinds[words[3]])...)
			}
		case "stored":
			for n := range number(words[2]) {
				stored(number(words[1])+n, number(words[3]))
			}
		case "query":
			r := &workloads.Request{Kind: workloads.DecodeOnly, Query: true, SystemPrompt: -1}
			for _, word := range words[1:] {
				n, tokens := pair(word)
				r.Retrieved = append(r.Retrieved, workloads.Entry{Key: workloads.PopulationKey(n),
					Tokens: tokens})
				r.ContextTokens += tokens
			}
			list = append(list, r)
		case "blocks":
			r := &workloads.Request{SystemPrompt: -1, ContextTokens: 10*len(words[1:]) + 5}
			for _, id := range words[1:] {
				r.Blocks = append(r.Blocks,
					workloads.Entry{Key: workloads.BlockKey("", int64(number(id))), Tokens: 10})
			}
			r.Own.Tokens = 10 * len(r.Blocks)
			list = append(list, r)
		default:
			t.Fatalf("no requests: %s", line)
		}
		for i, r := range list {
			for key, values := range options {
				switch value := values[min(i, len(values)-1)]; key {
				case "generate":
					r.GenerateTokens = number(value)
				case "prefix":
					r.SystemPrompt, r.SystemPromptTokens = pair(value)
				case "at":
					var err error
					r.Arrival, err = time.ParseDuration(value)
					require.NoError(t, err, line)
				}
			}
		}
		all = append(all, list...)
	}
	return all
}

// tokens are bytes in tokens.
func tokens(bytes int64) string { return fmt.Sprint(float64(bytes) / unit) }

// extremes are a distribution's count and ends.
func extremes(d result.Distribution) string {
	if d.Count == 0 {
		return "none"
	}
	return fmt.Sprintf("%d of %v to %v", d.Count, time.Duration(*d.Min), time.Duration(*d.Max))
}

// scriptPart describes a part of a result.
func scriptPart(r *result.Result, name string) string {
	var lines []string
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	ns := func(n int64) time.Duration { return time.Duration(n) }
	ratio := func(x *float64) string {
		if x == nil {
			return "–"
		}
		return fmt.Sprintf("%.4g", *x)
	}
	switch name {
	case "window":
		say("%v, ended by %s, %d requests completed", ns(r.WindowNS), r.EndedBy, r.Requests.Completed)
	case "tokens":
		say("%d tokens of context, %d generated in %v, storage %v", r.Requests.ContextTokens,
			r.Requests.GeneratedTokens, ns(r.Requests.GenerationLatencyNS),
			ns(r.Requests.StorageLatencyNS))
	case "lookups":
		for _, kind := range result.LookupKinds {
			if n := r.Lookups.ByKind[kind]; n.Hits+n.Misses+n.NotYetWritten > 0 {
				say("%s: %d hits, %d of which waited for the writer, %d misses, %d not yet written", kind,
					n.Hits, n.Pending, n.Misses, n.NotYetWritten)
			}
		}
		python := func(key string) int64 {
			return int64(r.Python().Number("summary.cache_stats." + key))
		}
		say("of all requests: %d hits, %d misses; the Python benchmark counts %d hits, %d of system "+
			"prompts, %d of users", r.Lookups.Hits, r.Lookups.Misses, python("cache_hits"),
			python("system_prompt_hits"), python("user_cache_hits"))
	case "tiers":
		for _, l := range r.Tiers {
			say("%s: %d writes of %s, %d reads of %s; %d entries, %s at most; %d evicted, %d deleted",
				l.Level, l.Write.Operations, tokens(l.Write.Bytes), l.Read.Operations,
				tokens(l.Read.Bytes), l.Entries, tokens(l.PeakBytes), l.Evicted.Entries,
				l.Deleted.Entries)
		}
	case "reads":
		say("%d first reads of %s, %d others of %s", r.FirstReads.Operations,
			tokens(r.FirstReads.Bytes), r.ReReads.Operations, tokens(r.ReReads.Bytes))
	case "latencies":
		say("reads of prefixes %s; waits for writers %s; waits for the write limit %s; writes %s; queue %s",
			extremes(r.Latency.PrefixRead), extremes(r.Latency.PendingWait),
			extremes(r.Latency.WriteAdmission), extremes(r.Latency.Levels["storage"].Write.IO),
			extremes(r.Latency.Request.Queue))
	case "load":
		l := r.Load["total"]
		say("offered %d, carried in %d, started %d, completed %d, in flight %d (oldest %s s), "+
			"queued %d (oldest %s s), served %s", l.Offered, l.CarriedIn, l.Started, l.Completed,
			l.InFlight, ratio(l.OldestInFlightAgeS), l.Queued, ratio(l.OldestQueuedAgeS),
			ratio(l.ServedRatio))
	case "cut":
		say("%d operations cut off, the oldest after %v; of the storage %d writes",
			r.Requests.CancelledOperations, ns(r.Requests.OldestCancelledNS), r.Tiers[0].Write.Cancelled)
	case "prompt":
		for _, kind := range slices.Sorted(maps.Keys(r.Prompt.ByKind)) {
			n := r.Prompt.ByKind[kind]
			say("%s: %d of %d tokens found, %d not yet written", kind, n.Found, n.Tokens, n.NotYetWritten)
		}
		say("found ratio %s", ratio(r.Prompt.HitRatio))
		for _, m := range r.Metrics() {
			if strings.HasSuffix(m.Unit, "hit-ratio") {
				say("%s %.4g", m.Unit, m.Value)
			}
		}
	case "policy":
		if r.Policy.Compared == nil {
			say("nothing to compare the policy with")
		} else {
			say("compared with the waterfall: %+v", *r.Policy.Compared)
		}
	case "errors":
		say("%d retried, %d operations and %d requests failed, %d completed", r.Requests.RetriedOperations,
			r.Requests.FailedOperations, r.Requests.Failed, r.Requests.Completed)
		for _, e := range r.Errors {
			say("%s %s %s: %d", e.Tier, e.Operation, e.Errno, e.Count)
		}
		lines = append(lines, r.Warnings...)
	case "precondition":
		p := r.Precondition
		say("%s tokens by %d writers in %v", tokens(p.Bytes), p.Writers, ns(p.DurationNS))
		for _, rate := range p.LastRates {
			say("%.2f tokens/s", rate/unit)
		}
	case "verdict":
		say("%s", strings.TrimSpace(r.Harness.Verdict.Kind+" "+r.Harness.Verdict.Bound))
	case "busy":
		say("%s; idle %v", busy(r), ns(r.Harness.WorkerIdleNS))
	case "first-token":
		scriptFirstToken(r, say, ratio)
	}
	return strings.Join(lines, "\n")
}

// busy is the workers' time by what they did. Two of its parts are parts of others.
func busy(r *result.Result) string {
	b, rest := r.Harness.Busy, r.Harness.WorkerBusyNS
	text := fmt.Sprint("busy ", time.Duration(rest))
	for _, part := range []struct {
		name string
		ns   int64
	}{{"storage", b.StorageNS}, {"other tiers", b.OtherTiersNS}, {"clearing", b.ClearingNS},
		{"capacity", b.RoomNS}, {"write limit", b.WriteLimitNS}, {"writers", b.WriterNS},
		{"buffers", b.BuffersNS}, {"generation", b.GenerationNS}, {"host", b.HostNS},
		{"dispatch", b.DispatchNS}, {"thinking", b.ThinkingNS}} {
		if rest -= part.ns; part.ns != 0 {
			text += fmt.Sprintf(", %s %v", part.name, time.Duration(part.ns))
		}
	}
	return text + fmt.Sprintf(", nothing of these %v", time.Duration(rest))
}

func scriptFirstToken(r *result.Result, say func(string, ...any), ratio func(*float64) string) {
	f := r.FirstToken
	if f == nil {
		say("no first tokens")
		return
	}
	ns := func(n int64) time.Duration { return time.Duration(n) }
	s, found, all := f.Sums, f.Found, r.Requests.Time
	say("first tokens after %v: queue %v, load %v, wait %v, compute %v, overlap %v; computing all "+
		"%v", ns(s.TTFT), ns(s.Queue), ns(s.Load), ns(s.GPUWait), ns(s.Compute), ns(s.Overlap),
		ns(s.ComputeAll))
	say("of the requests' time compute %v, wait %v, unknown %v; GPU busy %s, with all of %d "+
		"prompts for %v, saved %s, of computing %s", ns(all.Compute), ns(all.GPUWait),
		ns(all.Rest), ratio(f.GPUBusyShare), f.Prompts, ns(f.AllNS),
		ratio(f.SavedRatio), ratio(f.ComputeSavedRatio))
	say("found by %d requests %d tokens of %s, loaded in %v, computed in %v; worth it for %d, %d "+
		"tokens; lost %v; by %d in memory %d tokens", found.Requests, found.Tokens,
		tokens(found.Bytes), ns(found.LoadNS), ns(found.SavedNS), found.Worth, found.WorthTokens,
		ns(found.LostNS), f.FoundAbove.Requests, f.FoundAbove.Tokens)
	per := func(x *float64) string { return ratio(new(*cmp.Or(x, new(0.0)) / unit)) }
	say("worth it for %s, %s of tokens; %s tokens/s loaded, %s needed", ratio(found.WorthRatio),
		ratio(found.WorthTokenRatio), per(found.LoadBytesPerS), per(found.NeededBytesPerS))
}

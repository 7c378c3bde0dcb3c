package params

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// plans resolves several benchmarks as one run does.
func plans(t *testing.T, in Inputs, names string, args ...string) (list []*Values) {
	for name := range strings.SplitSeq(names, " ") {
		in.Bench = bench(t, name)
		list = append(list, good(t, in, args...).Points...)
	}
	return list
}

func TestEveryHearerIsKnown(t *testing.T) {
	var known []string
	for _, g := range groups {
		known = append(known, g.name)
	}
	for _, b := range Benchmarks() {
		known = append(known, b.Name)
	}
	for _, p := range slices.Concat(rows, keys(newValues("/"))) {
		for _, h := range p.heard {
			assert.Subset(t, known, h.who, p.name)
			assert.True(t, slices.ContainsFunc(Benchmarks(), h.by), p.name)
			for _, s := range h.switches {
				name, value, valued := strings.Cut(strings.TrimPrefix(s, "!"), "=")
				of := newValues("/").row(name)
				require.NotNil(t, of, "%s of %s", s, p.name)
				if valued {
					value = strings.Replace(value, "*", "bucket", 1)
					assert.NoError(t, of.value.Set(value), s)
				}
			}
		}
	}
}

func TestWhatNobodyHearsIsRefused(t *testing.T) {
	for _, c := range []struct{ benches, args, refused, why string }{
		{"Synthetic", "-precondition-size-gb=1", "-precondition-size-gb", "Synthetic runs without that"},
		{"Synthetic", "-precondition -precondition-size-gb=1", "", ""},
		{"Synthetic", "-latency-trace-level=file", "-latency-trace-level", "-enable-latency-tracing"},
		{"Synthetic", "-rag-num-docs=5", "-rag-num-docs", "with -enable-rag, and Synthetic runs"},
		{"RAG", "-rag-num-docs=5", "", ""}, // its benchmark turns the switch
		{"Synthetic RAG", "-rag-num-docs=5", "", ""},
		{"Synthetic", "-autoscaler-mode=qos", "-autoscaler-mode", "-enable-autoscaling"},
		{"AutoscaleCapacity", "-target-saturation=0.5", "-target-saturation", "-autoscaler-mode=qos"},
		{"AutoscaleQoS", "-target-saturation=0.5", "", ""},
		{"Synthetic", "-request-spacing=constant", "-request-spacing", "-request-rate"},
		{"AzureTrace", "-enable-rag", "-enable-rag", "-bench selects AzureTrace"},
		{"AzureTrace BurstGPT", "-arrival=closed-loop", "-arrival", "AzureTrace, BurstGPT"},
		{"ShareGPT", "-num-users=3", "", ""},
		{"AzureTrace", "-num-users=3", "-num-users", "synthetic users"},
		{"BlockTrace", "-prefill-only", "-prefill-only", "synthetic users"},
		{"AzureTrace", "-prefill-only", "", ""},
		{"AzureTrace", "-decode-only", "-decode-only", "synthetic users"},
		{"AzureTrace DecodeOnly", "-decode-only", "", ""},
		{"StorageCeiling", "-model=mistral-7b", "-model", "all with requests"},
		{"MaxStorageStress", "-sweep rag-num-docs=1,2", "-sweep", "rag-num-docs is for synthetic"},
		{"AutoscaleQoS", "-sweep target-saturation=0.5,0.6", "", ""},
		{"Synthetic", "-sweep enable-rag=false,true -rag-num-docs=3", "", ""}, // at one point
		{"DataGen", "-cache-dir=/x", "-cache-dir", "all with storage"},
		{"Synthetic", "-results-dir=/x -io=buffered -seed=7", "", ""},
		{"Synthetic", "-io-trace-log=x.csv -nonce=1", "-nonce", "all with storage without " +
			"-simulate-device and -io-trace-log; DataGen, and Synthetic runs with that"},
		// The closed division: a script may spell out what is required anyway.
		{"LargeModel", "-division=closed -rag-num-docs=100", "", ""},
		{"Checkpoint", "-division=closed -checkpoint-accelerator-type=b200 -seed=42", "", ""},
		{"Checkpoint", "-division=closed -checkpoint-accelerator-type=b200 -num-users=200",
			"-num-users", "synthetic users"},
		{"MaxStorageStress Checkpoint", "-division=closed -num-users=200", "", ""},
	} {
		bad, notes := Unheard(plans(t, Inputs{}, c.benches, strings.Fields(c.args)...))
		assert.Empty(t, notes, c)
		if c.refused == "" {
			assert.Empty(t, bad, c)
			continue
		}
		require.Len(t, bad, 1, c)
		assert.True(t, strings.HasPrefix(bad[0], c.refused+": must be "), bad[0])
		assert.Contains(t, bad[0], c.why)
	}
}

// What says how to use a disk is nothing to a run in virtual time, which has none.
func TestWhatVirtualTimeDoesNotHear(t *testing.T) {
	const device = "-simulate-device read=1GiB,write=1GiB "
	bad, _ := Unheard(plans(t, Inputs{}, "Synthetic", strings.Fields(device+"-cache-dir /x -nonce 1 "+
		"-keep-files -io buffered -settle 5s -chunk-size 2MiB")...))
	require.Len(t, bad, 5)
	for i, name := range []string{"cache-dir", "io", "settle", "nonce", "keep-files"} {
		assert.Contains(t, bad[i], "-"+name+": must be absent: it is for all with storage without "+
			"-simulate-device and -io-trace-log", name)
		assert.Contains(t, bad[i], "and Synthetic runs with that")
	}
	_, notes := Unheard(plans(t, Inputs{Env: environment("KVBENCH_CACHE_DIR", "/x")}, "Synthetic",
		strings.Fields(device)...))
	require.Len(t, notes, 1, "the environment serves other runs, too")
	assert.Contains(t, notes[0], "cache-dir = /x (environment KVBENCH_CACHE_DIR) is for all with")
}

// A benchmark sweeps what it hears; it would repeat itself at the points of another's sweep.
func TestABenchmarkSweepsWhatItHears(t *testing.T) {
	names := func(list []*Values) (names []string) {
		for _, v := range list {
			names = append(names, v.Bench.Name+" "+v.Point)
		}
		return names
	}
	list := plans(t, Inputs{}, "Synthetic Tier AzureTrace", "-sweep=num-users=2,3",
		"-sweep=workers=1,2")
	assert.Equal(t, []string{
		"Synthetic num-users=2/workers=1", "Synthetic num-users=2/workers=2",
		"Synthetic num-users=3/workers=1", "Synthetic num-users=3/workers=2",
		"Tier num-users=2/workers=1", "Tier num-users=2/workers=2",
		"Tier num-users=3/workers=1", "Tier num-users=3/workers=2",
		"AzureTrace workers=1", "AzureTrace workers=2"}, names(list))
	assert.Equal(t, []Axis{{"workers", []string{"1", "2"}}}, list[9].Sweep)
	bad, notes := Unheard(list)
	assert.Empty(t, bad)
	assert.Equal(t, []string{"the sweep of num-users, by AzureTrace: it is for " +
		"synthetic users, Tier, BlockTrace, Engines, ShareGPT; StorageCeiling with -io-depth"}, notes)

	// No value that can be: what is wrong was told, and there is something to go on with.
	v, err := typed(t, "-sweep=num-users=1-4").Resolve(Inputs{Bench: bench(t, "Synthetic"),
		Base: "/base"})
	require.Error(t, err)
	require.Len(t, v.Points, 1)
	bad, notes = Unheard(v.Points)
	assert.Empty(t, bad)
	assert.Empty(t, notes)

	// A switch that is swept is on at one point.
	list = plans(t, Inputs{}, "Synthetic", "-sweep=enable-rag=false,true", "-sweep=rag-num-docs=1,2")
	assert.Len(t, list, 4)

	// What nobody hears of the environment's serves other runs.
	list = plans(t, Inputs{Env: environment("KVBENCH_SWEEP", "read-share=0.5,0.6")}, "Synthetic")
	assert.Equal(t, []string{"Synthetic "}, names(list))
	bad, notes = Unheard(list)
	assert.Empty(t, bad)
	assert.Equal(t, []string{"sweep = read-share=0.5,0.6 (environment KVBENCH_SWEEP) is for " +
		"StorageCeiling"}, notes)
}

// Environment and file serve several runs: what this one does not hear is noted.
func TestWhatNobodyHearsOfEnvironmentAndFileIsNoted(t *testing.T) {
	file := writeFile(t, "c.yaml", "parameters:\n  tokenizer: chars\n  seed: 3\n")
	in := Inputs{Env: environment("KVBENCH_NUM_USERS", "30", "KVBENCH_IO", "buffered")}
	bad, notes := Unheard(plans(t, in, "BurstGPT AzureTrace", "-config", file))
	assert.Empty(t, bad)
	assert.Equal(t, []string{
		"num-users = 30 (environment KVBENCH_NUM_USERS) is for synthetic users, Tier, " +
			"BlockTrace, Engines, ShareGPT; StorageCeiling with -io-depth",
		"tokenizer = chars (" + file + ":2) is for ShareGPT"}, notes)

	// Keys of the users' profile are told by their sections.
	file = writeFile(t, "p.yaml", "user_templates:\n  chatbot: {context_range: [1, 2], "+
		"generation_range: [1, 2]}\nrag: {top_k_chunks: 3}\ndecode: {batch_size: 8}\n"+
		"qos_distribution: {interactive_probability: 0.2}\neviction: {max_recursion_depth: 3}\n")
	bad, notes = Unheard(plans(t, Inputs{}, "BlockTrace", "-config", file))
	assert.Empty(t, bad)
	assert.Equal(t, []string{"section user_templates (" + file + ":2) is for synthetic users",
		"section rag (" + file + ":3) is for synthetic users with -enable-rag",
		"section decode (" + file + ":4) is for synthetic users, BurstGPT, AzureTrace, ShareGPT " +
			"with -decode-reads=batched"}, notes)
	_, notes = Unheard(plans(t, Inputs{}, "BlockTrace RAG MaxStorageStress", "-config", file))
	assert.Empty(t, notes)
}

func TestUnknownVariablesAreRefused(t *testing.T) {
	assert.Equal(t, Violations{
		`KVBENCH_NUM_USER (environment) is no parameter, did you mean "KVBENCH_NUM_USERS"?`,
		`KVBENCH_CACHEDIR (environment) is no parameter, did you mean "KVBENCH_CACHE_DIR"?`,
		"KVBENCH_DURATION (environment) is no parameter: it is -benchtime here, such as " +
			"-benchtime 60s",
		"KVBENCH_RECYCLE (environment) is no parameter: it was removed: -layout slots overwrites " +
			"in place",
		"KVBENCH_COUNT (environment) is no parameter, but a flag: -count",
		"KVBENCH_XYZZY_FROTZ (environment) is no parameter",
	}, UnknownEnvironment([]string{"PATH=/bin", "KVBENCH_NUM_USERS=3", "KVBENCH_NUM_USER=3",
		"KVBENCH_CACHEDIR=/x", "KVBENCH_DURATION=3", "KVBENCH_RECYCLE=true",
		"KVBENCH_COUNT=2", "KVBENCH_SWEEP=seed=1,2",
		"KVBENCH_OLD=", "KVBENCH_XYZZY_FROTZ=1", "KVTEST_X=1"}))
	assert.Empty(t, UnknownEnvironment(nil))
}

package sizing

import (
	"encoding/json"
	"flag"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tools/golden"
	"kvbench/tracing/host"
	"kvbench/workloads/users"
)

// lab is a machine of 32 GiB with 500 GiB free.
var lab = machine{
	limits: func() host.Limits {
		return host.Limits{GOMAXPROCS: 2, MemoryAvailable: 32 << 30,
			MemoryAvailableSource: "/proc/meminfo MemAvailable"}
	},
	filesystem: func(string) (host.Filesystem, error) {
		return host.Filesystem{Type: "xfs", Free: 500 << 30, Total: 1 << 40}, nil
	},
}

// test returns what the command would exit with.
func (h machine) test(t *testing.T, args ...string) (code int, stdout, stderr string) {
	fs := flag.NewFlagSet("datasize", flag.ContinueOnError)
	q := NewQuestion(fs)
	q.machine = h
	asJSON := fs.Bool("json", false, "")
	if err := fs.Parse(args); err != nil {
		return 2, "", err.Error()
	}
	a, err := q.Answer(fs.Args())
	if err != nil {
		return 2, "", err.Error()
	}
	out := a.Text()
	if *asJSON {
		out = golden.JSON(t, a)
	}
	if !a.Fits() {
		code = 1
	}
	return code, out, ""
}

func TestOutputs(t *testing.T) {
	for file, args := range map[string][]string{
		"large.golden": {"-model", "llama3.1-70b-instruct", "-num-users", "70"},
		"closed.golden": {"-bench", "MaxStorageStress", "-division", "closed", "-cache-dir",
			"/mnt/kv", "-write-gbps", "3"},
		"decode.golden": {"-bench", "DecodeOnly", "-num-users", "16", "-rank", "0", "-ranks",
			"8", "-local-ranks", "8"},
		"trace.golden": {"-bench", "AzureTrace", "-storage-capacity-gb", "10",
			"-precondition"},
		"large.golden.json": {"-model", "llama3.1-70b-instruct", "-num-users", "70", "-json"},
	} {
		code, out, errs := lab.test(t, args...)
		assert.Zero(t, code, errs)
		assert.Empty(t, errs)
		golden.Check(t, file, out)
	}
}

// TestOneUserByHand computes a population of one by hand.
func TestOneUserByHand(t *testing.T) {
	code, out, errs := lab.test(t, "-model", "llama3.1-8b", "-num-users", "1", "-benchtime", "100s",
		"-json")
	require.Zero(t, code, errs)
	var n Need
	require.NoError(t, json.Unmarshal([]byte(out), &n))
	u := users.Population(users.Default(), 42, 1, false)[0]
	mean := float64(u.Context/4+u.Context) / 2
	const perToken = 131072
	assert.EqualValues(t, perToken, n.BytesPerToken)
	assert.EqualValues(t, 25000*perToken, n.LargestEntry.Bytes,
		"the largest request of any user, drawn or not")
	assert.InDelta(t, 1/u.Think, *n.RequestRate, 1e-9)
	assert.InDelta(t, mean*perToken/u.Think, *n.WriteRate, 1)
	assert.InDelta(t, 100*mean*perToken/u.Think, float64(*n.Disk.Everything), 2)
	// A conversation has five turns on average: (1 − 0.8⁵⁰) ÷ 0.2. One user's is less than the
	// largest entry could be.
	assert.InDelta(t, max(25000*perToken, 4.99993*mean*perToken), float64(*n.Disk.WorkingSet), 1e6)
}

func TestBounds(t *testing.T) {
	need := func(args ...string) Need {
		_, out, errs := lab.test(t, append(args, "-json")...)
		var n Need
		require.NoError(t, json.Unmarshal([]byte(out), &n), errs)
		return n
	}
	free, bounded := need("-num-users", "50"), need("-num-users", "50", "-write-gbps", "1")
	assert.Greater(t, *free.Disk.Everything, *bounded.Disk.Everything)
	assert.EqualValues(t, int64(30)<<30, *bounded.Disk.Everything, "30 s at 1 GiB/s")
	assert.InDelta(t, 10*float64(free.MeanEntry.Bytes),
		float64(*need("-num-users", "50", "-max-requests", "10").Disk.Everything), 10)
	assert.InDelta(t, 5, *need("-num-users", "50", "-request-rate", "5").RequestRate, 1e-9)
	assert.EqualValues(t, int64(4)<<30+free.MemoryBytes,
		need("-num-users", "50", "-cpu-mem-gb", "4").MemoryBytes)
	decode := need("-bench", "DecodeOnly", "-num-users", "16", "-model", "llama3.1-8b")
	assert.EqualValues(t, 160*2048*131072, decode.Disk.Minimum)
	// The objects of a block trace: its blocks, or an engine's objects.
	trace := []string{"-bench", "BlockTrace", "-model", "llama3.1-8b"}
	assert.EqualValues(t, 512*131072, need(trace...).Disk.Minimum)
	trace = append(trace, "-block-trace-path", "../../testdata/mooncake-small.jsonl")
	assert.EqualValues(t, 512*131072, need(trace...).Disk.Minimum)
	assert.EqualValues(t, 16*131072, need(append(trace, "-engine", "vllm")...).Disk.Minimum)
}

func TestWhatDoesNotFit(t *testing.T) {
	code, out, _ := lab.test(t, "-num-users", "10", "-cpu-mem-gb", "64", "-cache-dir", "/mnt/kv")
	assert.Equal(t, 1, code)
	assert.Contains(t, out, "does not fit")
	assert.Contains(t, out, "memory: ")
	small := lab
	small.filesystem = func(string) (host.Filesystem,
		error) {
		return host.Filesystem{Type: "xfs", Free: 1 << 30}, nil
	}
	code, out, _ = small.test(t, "-cache-dir", "/mnt/kv", "-model", "llama3.1-70b-instruct")
	assert.Equal(t, 1, code)
	assert.Contains(t, out, "disk: ")
	code, _, _ = small.test(t, "-cpu-mem-gb", "64")
	assert.Zero(t, code, "without a directory this machine's resources are not checked")
}

func TestDatasizeUsage(t *testing.T) {
	for want, args := range map[string][]string{
		"-bench: must be one of": {"-bench", "Nothing"},
		"unexpected":             {"x"},
		"-write-gbps":            {"-write-gbps", "-1"},
		"-storage-capacity-gb: must be at least": {"-storage-capacity-gb", "1", "-model",
			"llama3.1-70b-instruct"},
		"in the closed division": {"-division", "closed", "-num-users", "3",
			"-bench", "MaxStorageStress"},
	} {
		code, out, errs := lab.test(t, args...)
		assert.Equal(t, 2, code, args)
		assert.Empty(t, out)
		assert.Contains(t, errs, want)
		assert.NotContains(t, errs, "\n")
	}
}

package params

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/group"
)

func TestDefaultResultsDirectoryNamesTimeAndProcess(t *testing.T) {
	v := good(t, Inputs{Stamp: "20261120-090507-77"})
	assert.Equal(t, "/base/kvbench-results/20261120-090507-77", v.ResultsDir)
	assert.Equal(t, v.ResultsDir, v.Text("results-dir"))
}

func TestNonceIsRandomOrGiven(t *testing.T) {
	assert.Equal(t, [16]byte{15: 0x1f}, good(t, Inputs{}, "-nonce", "1F").TrialNonce())
	v := good(t, Inputs{})
	assert.NotEqual(t, v.TrialNonce(), v.TrialNonce())
}

func TestTheCacheDirectoryIsCheckedWithoutTouchingAnything(t *testing.T) {
	in := Inputs{Base: "/base",
		CheckCacheDir: func(dir string) error { return errors.New(dir + " lies in /etc") }}
	_, err := typed(t, "-cache-dir=/etc/kv").Resolve(in)
	assert.EqualError(t, err, "-cache-dir: must be a directory that may be worked in (/etc/kv lies "+
		"in /etc), given /etc/kv (flag)")
	good(t, in) // the temporary directory is the suite's own
}

// A rank that a coordinator has started has the place that it was given, whatever its command line says.
func TestAStartedRank(t *testing.T) {
	value := func(text string) group.Value { return group.Value{Text: text, Variable: "X"} }
	v := good(t, Inputs{Agent: &group.Launched{Rank: value("3"), Size: value("4"), Local: value("4")}},
		"-ranks=4", "-rank-failure=continue")
	assert.False(t, v.Starts())
	assert.Equal(t, [3]int{3, 4, 4}, [3]int{v.Rank, v.Ranks, v.LocalRanks})
}

// A default that is given changes nothing: neither the plan nor what is refused, skipped, compared or
// printed as an override. The default is the value that applies to the benchmark, or the word auto.
func TestAGivenDefaultChangesNothing(t *testing.T) {
	contexts := [][]string{nil, {"-engine=vllm", "-cpu-mem-gb=2"}, {"-engine=lmcache", "-layout=lmcache-raw"},
		{"-cache-dir=s3://bucket/prefix", "-storage-capacity-gb=8"}, {"-ranks=2"}, {"-profile=chat"},
		{"-simulate-device=read=1GiB/s,write=1GiB/s"}, {"-precondition", "-enable-latency-tracing"}}
	// plan is all that a run can ask of its values but where they came from.
	plan := func(in Inputs, args ...string) (plan Values, points []*Values, text string, err error) {
		v, err := typed(t, args...).Resolve(in)
		bad, _ := Unused([]*Values{v})
		writes, reads, within := v.CheckpointRuns()
		text = fmt.Sprint(bad, v.Skip(), v.Overrides(), v.Differences(), v.InFlight(), v.WorkerCount(), v.Depth(),
			writes, reads, within, v.CeilingSize(1<<40), v.FieldSize(1<<40), v.Starts(), v.Meets())
		for _, p := range v.Parameters() {
			text += fmt.Sprintf("\n%s %v", p.Name, p.Value)
		}
		plan = *v
		plan.given, plan.changed, plan.Points = nil, nil, nil
		return plan, v.Points, text, err
	}
	compared := 0
	for _, b := range append(Benchmarks(), Bench{}) {
		for _, d := range divisions {
			for i, context := range contexts {
				in := Inputs{Base: "/base", Bench: b, Stamp: "x"}
				args := append([]string{"-division=" + string(d)}, context...)
				left, points, leftText, err := plan(in, args...)
				if err != nil {
					continue // the benchmark or the division refuses the context
				}
				groups := 1 // of the parameters that are given together
				if i == 0 {
					groups = 8
				}
				for group := range groups {
					in, args := in, slices.Clip(args)
					for j, p := range table {
						text := left.Text(p.name)
						if p.def[d] == "auto" && (j/groups%2 == 0 || strings.Contains(p.name, "rank")) {
							text = "auto" // of ranks it is no value of its own
						}
						inContext := slices.ContainsFunc(context, func(arg string) bool {
							return strings.HasPrefix(arg, "-"+p.name+"=") || arg == "-"+p.name
						})
						swept := slices.ContainsFunc(points, func(at *Values) bool { return at.Text(p.name) != left.Text(p.name) })
						switch {
						case p.has(action) || p.name == "results-dir" || inContext || swept || text == "" || j%groups != group:
						case p.name == "benchtime":
							in.BenchTime = text
						case p.name == "count":
							in.Count = text
						default:
							args = append(args, "-"+p.name+"="+text)
						}
					}
					given, _, givenText, err := plan(in, args...)
					require.NoError(t, err, "%s %q", b.Name, args)
					require.Equal(t, leftText, givenText, "%s %q", b.Name, args)
					require.Equal(t, left, given, "%s %q", b.Name, args)
					compared++
				}
			}
		}
	}
	assert.Greater(t, compared, 900)
}

// A parameter that cannot be read leads to no refusal of another one: neither of what applies only with it, or
// only without it, nor of what a rule ties to it.
func TestARefusalIsAlone(t *testing.T) {
	for _, line := range []string{
		"Synthetic -storage-capacity-gb=4 -cache-dir=/x -io=buffered -settle=1s -keep-files",
		"Synthetic -storage-capacity-gb=none -cpu-mem-gb=4 -evict=lfu",
		"Synthetic -engine=vllm -cpu-mem-gb=2 -object-tokens=32 -read-threads=2",
		"Synthetic -layout=lmcache-raw -object-tokens=64 -write-threads=2 -io-depth=8",
		"Synthetic -layout=lmcache-fs -layerwise -model=llama3.1-8b",
		"Synthetic -layout=mooncake-bucket -evict=bucket",
		"Synthetic -gpu-mem-gb=2 -num-gpus=2 -tensor-parallel=2 -gpu-bandwidth-gbps=10 -layout=vllm-fs -tp-io=all",
		"Synthetic -cpu-mem-gb=1 -tier-policy=write-through -write-behind-gb=1 -promote=on-hit",
		"Synthetic -cpu-mem-gb=1 -tier-policy=selective -admit-after=3",
		"Synthetic -enable-rag -rag-num-docs=5 -decode-reads=batched -turns=overtaking",
		"Synthetic -enable-autoscaling -autoscaler-mode=capacity -autoscaler-interval=1s",
		"Synthetic -cache-dir=s3://bucket/p -storage-capacity-gb=8 -s3-keys=lmcache -engine=lmcache -s3-region=x",
		"Synthetic -io-trace-log=x.csv -io-trace-deletes -storage-capacity-gb=4",
		"Synthetic -simulate-device=read=1GiB/s,write=1GiB/s -request-rate=5 -request-spacing=constant",
		"Synthetic -precondition -precondition-size-gb=1 -precondition-threads=2",
		"Synthetic -profile=chat -trace-speedup=2 -arrival=closed-loop",
		"Synthetic -enable-latency-tracing -latency-trace-level=file -latency-trace-filter=process",
		"Synthetic -metrics-listen=0.0.0.0:0 -metrics-remote",
		"Synthetic -ranks=2 -rank-failure=continue",
		"Synthetic -ranks=4 -rank=3 -local-ranks=2 -rendezvous=a:1 -shared-dir=true -rendezvous-timeout=5s",
		"Synthetic -num-gpus=4 -tensor-parallel=4 -tp-rule=mlperf",
		"Synthetic -gpu=h100 -model=llama3.1-8b -division=open",
		"Synthetic -prefill-rate=1000 -kv-dtype=float16",
		"PrefillOnly -prefill-only -max-requests=5",
		"MaxStorageStress -division=closed -rehearse -storage-capacity-gb=100",
		"Checkpoint -checkpoint-writes=4 -checkpoint-reads=3 -checkpoint-keep=3 -stream-chunk=1MiB -stream-range=4MiB",
		"Checkpoint -checkpoint-accelerators=8 -ranks=4 -checkpoint-shift=2 -io=buffered -fadvise=sequential",
		"CheckpointStream -stream-buffers=32 -stream-writers=20 -checkpoint-reads=0 -checkpoint-writes=2",
		"BlockIO -workers=4 -io-depth=8 -ceiling-size-gb=1",
		"StorageCeiling -read-share=0.7 -chunk-size=64KiB -storage-capacity-gb=8 -ceiling-size-gb=5",
		"Checkpoint -stream-readers=2 -stream-buffers=16 -stream-range=16MiB -stream-chunk=4MiB",
		"Checkpoint -checkpoint-model=70b -checkpoint-accelerators=64 -checkpoint-accelerator-type=b200",
		"Synthetic -division=open -decode-only -num-users=5 -storage-capacity-gb=40 -model=llama3.1-8b",
		"Synthetic -division=open -storage-capacity-gb=2 -model=tiny-1b -tensor-parallel=1",
		"Synthetic -storage-capacity-gb=none -gpu-mem-gb=20 -num-gpus=2 -model=llama3.1-8b",
	} {
		words := strings.Fields(line)
		refusals := func(args []string) Violations {
			v, err := typed(t, args...).Resolve(Inputs{Base: "/base", Bench: bench(t, words[0])})
			var bad Violations
			errors.As(err, &bad)
			more, _ := Unused(v.Points)
			return bad.Merge(more)
		}
		require.Empty(t, refusals(words[1:]), line)
		for i, word := range words[1:] {
			name, _, _ := strings.Cut(word, "=")
			p := find(strings.TrimPrefix(name, "-"))
			if _, err := p.kind.parse("?,?="); err == nil || p.name == "division" {
				continue // any text, or what all others depend on
			}
			args := slices.Clone(words[1:])
			args[i] = name + "=?,?="
			bad := refusals(args)
			assert.Len(t, bad, 1, "%q", args)
			assert.True(t, bad.About(p.name), "%q: %s", args, bad)
		}
	}
}

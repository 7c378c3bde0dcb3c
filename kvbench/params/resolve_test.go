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

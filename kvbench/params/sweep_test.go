package params

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbench/kvbench/units"
)

func TestSweepsCombineInOrder(t *testing.T) {
	v := good(t, Inputs{Base: "/base"}, "-sweep=num-users=2,4", "-sweep", "io=direct,buffered")
	var names []string
	for _, p := range v.Points {
		names = append(names, p.Point)
		assert.Contains(t, p.Point, "num-users="+p.Text("num-users")+"/")
		assert.Equal(t, "sweep", p.Origin("io").String())
	}
	assert.Equal(t, []string{"num-users=2/io=direct", "num-users=2/io=buffered",
		"num-users=4/io=direct", "num-users=4/io=buffered"}, names)
	v = good(t, Inputs{})
	assert.Equal(t, []*Values{v}, v.Points)
	assert.Empty(t, v.Point)
	v = good(t, Inputs{}, "-sweep=cache-dir=/mnt/a")
	assert.Equal(t, "cache-dir=_mnt_a", v.Points[0].Point)
}

func TestSweepFromEnvironment(t *testing.T) {
	v := good(t, Inputs{Env: environment("KVBENCH_SWEEP", "seed=1,2;workers=3")})
	assert.Equal(t, []Axis{{"seed", []string{"1", "2"}}, {"workers", []string{"3"}}}, v.Sweep)
	assert.Equal(t, "environment KVBENCH_SWEEP", v.Origin("sweep").String())
}

// A value beside a sweep of the same parameter would be heard at no point.
func TestASweepAndAValueExcludeEachOther(t *testing.T) {
	assert.Equal(t, []string{"-num-users: must be absent where -sweep gives num-users its values, " +
		"given 4 (flag)"}, wrong(t, Inputs{}, "-num-users=4", "-sweep=num-users=1,2"))
	assert.Contains(t, wrong(t, Inputs{Bench: bench(t, "Engines")}, "-engine=vllm",
		"-block-trace-path="+writeFile(t, "x", ""))[0], "-engine: must be absent: Engines runs "+
		"with every engine; choose one with -bench Engines/engine=vllm, given vllm (flag)")
	v := good(t, Inputs{Env: environment("KVBENCH_NUM_USERS", "4")}, "-sweep=num-users=1,2")
	assert.Equal(t, "1", v.Points[0].Text("num-users"), "weaker layers are overridden as ever")
}

func TestBadSweeps(t *testing.T) {
	for text, want := range map[string]string{
		"num-users":           "-sweep: must be key=a,b,c, given num-users (flag)",
		"num-users=":          "must be key=a,b,c",
		"users=1,2":           `"users" is unknown`,
		"num-user=1,2":        `did you mean "num-users"?`,
		"division=open,quick": "division cannot be swept",
		"benchtime=1s,2s":     "benchtime cannot be swept",
		"num-users=1,x":       `"x" must be a whole number in 1…100000`,
		"num-users=0":         `"0" must be a whole number`,
		"num-users=4,04":      "4 is there twice",
		"tensor-parallel=1,2": "-tensor-parallel: must be in 1…1, the number of -num-gpus, " +
			"given 2 (sweep)",
		"model=tiny-1b,tiny-2b": `given tiny-2b (sweep)`,
	} {
		texts := wrong(t, Inputs{}, "-sweep", text)
		assert.Len(t, texts, 1, text)
		assert.Contains(t, texts[0], want)
	}
	assert.Contains(t, wrong(t, Inputs{}, "-sweep=seed=1,2", "-sweep=seed=3")[0],
		"seed is swept twice")
	long := "seed=0"
	for i := range 400 {
		long += "," + units.FormatGiB(int64(i+1)*units.GiB)
	}
	assert.Contains(t, wrong(t, Inputs{}, "-sweep", long, "-sweep=workers=1,2,3")[0],
		"at most 1000 combinations")
}

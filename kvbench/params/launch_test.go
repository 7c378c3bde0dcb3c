package params

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbench/kvbench/group/launchers"
)

// launchedBy is what a process with variables, A=1 B=2, is run with.
func launchedBy(env string) Inputs {
	var list []string
	for v := range strings.FieldsSeq(env) {
		name, value, _ := strings.Cut(v, "=")
		list = append(list, name, value)
	}
	return Inputs{Env: environment(list...)}
}

// TestRanks: rank, number of ranks and ranks on this host by launchers and by the user, and what
// follows. The families of launchers have a test of their own.
func TestRanks(t *testing.T) {
	const (
		pmi   = "PMI_RANK=0 PMI_SIZE=4"
		slurm = "SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=7 SLURM_STEP_TASKS_PER_NODE=2 SLURM_NODEID=1"
	)
	for _, c := range []struct{ env, args, want string }{
		{"", "", "0 of 1, 1 here, alone"},
		{"", "-rank=0 -ranks=1", "0 of 1, 1 here, alone"},
		{"", "-ranks=4", "0 of 4, 4 here, starts"},
		{"KVBENCH_RANKS=4", "", "0 of 4, 4 here, starts"},
		{"", "-rank=2 -ranks=4", "2 of 4, 4 here"},
		{"", "-rank=0 -ranks=4 -rendezvous=a.b-c:1", "0 of 4, 1 here, meets at a.b-c:1"},
		// Of several families the first one counts.
		{"OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_LOCAL_SIZE=8 " +
			"SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1", "", "3 of 8, 8 here, meets at auto, all here"},
		{"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1", "", "0 of 1, 1 here"},
		// An unknown number of ranks here is never all of them.
		{pmi, "", "0 of 4, 1 here, meets at auto"},
		{pmi + " PMI_LOCAL_SIZE=2", "", "0 of 4, 2 here, meets at auto"},
		{pmi + " PMI_LOCAL_SIZE=4", "", "0 of 4, 4 here, meets at auto, all here"},
		{pmi, "-local-ranks=4", "0 of 4, 4 here, meets at auto, all here"},
		{pmi, "-ranks=4", "0 of 4, 1 here, meets at auto"},
		{pmi, "-rendezvous=none", "0 of 4, 4 here"},
		{pmi, "-rendezvous=::1", "0 of 4, 1 here, meets at [::1]:7717"},
		{pmi, "-rendezvous=[::1]:80 -shared-dir=true", "0 of 4, 1 here, meets at [::1]:80"},
		{"PMI_RANK=0 PMI_SIZE=1", "-rendezvous=a", "0 of 1, 1 here"},
		{"PMI_RANK=x PMI_SIZE=2", "-rank=0 -ranks=1", "0 of 1, 1 here"},
		{"PMI_RANK=1 PMI_SIZE=2", "-rank=auto -local-ranks=1", "1 of 2, 1 here, meets at auto"},
		{slurm, "-rank=0", "0 of 7, 1 here, meets at auto"},
		{"SLURM_JOB_ID=7", "", "0 of 1, 1 here, alone"},                // a shell in an allocation
		{"SLURM_PROCID=0 SLURM_NTASKS=4", "", "0 of 1, 1 here, alone"}, // a batch script
		{"PALS_RANKID=1 PALS_LOCAL_SIZE=2", "-ranks=4", "1 of 4, 2 here, meets at auto"},
		{"JOB_COMPLETION_INDEX=3 KVBENCH_RANKS=4", "", "3 of 4, 1 here, meets at auto"},
	} {
		v := good(t, launchedBy(c.env), strings.Fields(c.args)...)
		got := fmt.Sprintf("%d of %d, %d here", v.Rank, v.Ranks, v.LocalRanks)
		if v.Starts() {
			got += ", starts"
		}
		if v.Meets() {
			got += ", meets at " + v.Rendezvous
		}
		if v.Meets() && v.AllHere() {
			got += ", all here"
		}
		if v.Alone() {
			got += ", alone"
		}
		assert.Equal(t, c.want, got, "%s %s", c.env, c.args)
		assert.Empty(t, v.Overrides(), "ranks are no override")
	}
	v := good(t, launchedBy("PMI_RANK=1 PMI_SIZE=2"))
	assert.Equal(t, "environment PMI_RANK", v.Origin("rank").String())
	assert.Equal(t, uint64(43), v.StreamSeed())
	started := &launchers.Place{Rank: launchers.Value{Text: "3", Variable: "X"},
		Size: launchers.Value{Text: "4", Variable: "X"}, Local: launchers.Value{Text: "4",
			Variable: "X"}}
	v = good(t, Inputs{Agent: started}, "-ranks=4", "-rank-failure=continue")
	assert.False(t, v.Starts())
	assert.Equal(t, [3]int{3, 4, 4}, [3]int{v.Rank, v.Ranks, v.LocalRanks})
}

// Ranks that meet learn how many of them are on their host, unless it was given. Those that do not meet
// take it that all are.
func TestRanksThatMeetKnowTheirHost(t *testing.T) {
	env := []string{"PMI_RANK", "1", "PMI_SIZE", "4"}
	v := good(t, benchOf(t, "Checkpoint", env...), "-checkpoint-shift=host")
	assert.Equal(t, 1, v.LocalRanks, "at least")
	news, bad := v.Meet(2)
	assert.True(t, news)
	assert.Empty(t, bad)
	assert.Equal(t, 2, v.LocalRanks)
	news, _ = v.Meet(4)
	assert.False(t, news)
	assert.Equal(t, 2, v.LocalRanks)

	v = good(t, benchOf(t, "Checkpoint", env...), "-checkpoint-shift=host")
	_, bad = v.Meet(4)
	assert.Contains(t, bad.Error(), "-checkpoint-shift: must be a number where all ranks are on "+
		"one host")
	v = good(t, Inputs{Env: environment(env...)}, "-local-ranks=3")
	news, _ = v.Meet(4)
	assert.False(t, news)
	assert.Equal(t, 3, v.LocalRanks)
	v = good(t, Inputs{Env: environment(env...)}, "-rendezvous=none")
	news, _ = v.Meet(0)
	assert.False(t, news)
	assert.Equal(t, 4, v.LocalRanks)
}

func TestBadRanks(t *testing.T) {
	const (
		slurm = "SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_TASKS_PER_NODE="
		where = "-rendezvous: must be auto, none, HOST or HOST:PORT, given "
	)
	for _, c := range []struct{ env, args, want string }{ // "" is any one refusal
		{"", "-rank=3", "-rank: must be below -ranks (1), given 3 (flag)"},
		{"", "-rank=-1", "-rank: must be auto or a whole number in 0…2147483647, given -1 (flag)"},
		{"", "-ranks=0", ""},
		{"", "-ranks=2000", "-ranks: must be at most 1024 where this run starts them, given 2000 (flag)"},
		{"", "-rank=0 -ranks=2 -local-ranks=3", "-local-ranks: must be at most -ranks (2), given 3 (flag)"},
		{"", "-ranks=2 -local-ranks=2", "-local-ranks: must be absent with ranks that this run " +
			"starts: all of them are on this host, given 2 (flag)"},
		{"", "-ranks=2 -rank-failure=x", "-rank-failure: must be one of stop, continue, given x (flag)"},
		{"", "-rank-failure=stop", "-rank-failure: must be absent with -ranks=1: it is for several " +
			"clients, which -ranks starts, given stop (flag)"},
		{"", "-ranks=2 -rendezvous=a", ""},
		{"", "-ranks=2 -shared-dir=true", ""},
		{"", "-rendezvous-timeout=2s", ""},
		{"PMI_RANK=0 PMI_SIZE=4", "-rendezvous-timeout=90m", ""},
		{"PMI_RANK=0 PMI_SIZE=4", "-rendezvous=", "-rendezvous: is empty (flag): give a value, or leave it out"},
		{"PMI_RANK=0 PMI_SIZE=4", "-rendezvous=a:0", where + "a:0 (flag)"},
		{"PMI_RANK=0 PMI_SIZE=4", "-rendezvous=-x:1", where + "-x:1 (flag)"},
		{"PMI_RANK=0 PMI_SIZE=4", "-rendezvous=a/b", where + "a/b (flag)"},
		{"PMI_RANK=0 PMI_SIZE=4", "-rendezvous=:1", where + ":1 (flag)"},
		{"PMI_RANK=x PMI_SIZE=2", "", ""},
		{"PMI_RANK=2 PMI_SIZE=2", "", ""},
		{"PMI_RANK=0 PMI_SIZE=0", "", ""},
		{"PMI_RANK=0", "", ""},
		{"SLURM_STEP_NUM_TASKS=3", "", ""},
		{slurm + "1 SLURM_NODEID=1", "", ""},
		{slurm + "1(x SLURM_NODEID=0", "", ""},
		{"JOB_COMPLETION_INDEX=3 KVBENCH_RANKS=3", "", ""},
		{"JOB_COMPLETION_INDEX=3", "", "-ranks: must be given with Kubernetes, which says that this " +
			"is rank 3 (JOB_COMPLETION_INDEX) and not of how many: give -ranks or KVBENCH_RANKS"},
		{"PALS_RANKID=1", "", "PMI_SIZE: must be set when PALS_RANKID is: give -rank and -ranks, or " +
			"start under PALS"},
	} {
		bad := wrong(t, launchedBy(c.env), strings.Fields(c.args)...)
		if assert.Len(t, bad, 1, "%s %s", c.env, c.args); c.want != "" {
			assert.Equal(t, c.want, bad[0])
		}
	}
}

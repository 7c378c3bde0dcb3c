package params

import (
	"cmp"
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbench/kvbench/group/launchers"
)

func TestRankFromLaunchers(t *testing.T) {
	for name, c := range map[string]struct {
		env  []string
		want [3]int
		from string
	}{
		"Open MPI": {[]string{"OMPI_COMM_WORLD_RANK", "3", "OMPI_COMM_WORLD_SIZE", "8",
			"OMPI_COMM_WORLD_LOCAL_SIZE", "4",
			"SLURM_PROCID", "0", "SLURM_STEP_NUM_TASKS", "1"}, [3]int{3, 8, 4}, "OMPI_COMM_WORLD_RANK"},
		"MPICH": {[]string{"PMI_RANK", "1", "PMI_SIZE", "2", "MPI_LOCALNRANKS", "2"},
			[3]int{1, 2, 2}, "PMI_RANK"},
		"PALS": {[]string{"PALS_RANKID", "1", "PMI_SIZE", "4", "PALS_LOCAL_SIZE", "2"},
			[3]int{1, 4, 2}, "PALS_RANKID"},
		"Kubeflow": {[]string{"RANK", "1", "WORLD_SIZE", "2", "MASTER_ADDR", "a"},
			[3]int{1, 2, 1}, "RANK"},
		"Indexed Job": {[]string{"JOB_COMPLETION_INDEX", "3", "KVBENCH_RANKS", "4"},
			[3]int{3, 4, 1}, "JOB_COMPLETION_INDEX"},
		"PMI without locals": {[]string{"PMI_RANK", "1", "PMI_SIZE", "2"}, [3]int{1, 2, 1},
			"PMI_RANK"},
		"Slurm": {[]string{"SLURM_PROCID", "4", "SLURM_STEP_NUM_TASKS", "5",
			"SLURM_STEP_TASKS_PER_NODE", "2(x2),1", "SLURM_NODEID", "2"}, [3]int{4, 5, 1}, "SLURM_PROCID"},
		"Slurm, first node": {[]string{"SLURM_PROCID", "0", "SLURM_STEP_NUM_TASKS", "3",
			"SLURM_STEP_TASKS_PER_NODE", "3"}, [3]int{0, 3, 3}, "SLURM_PROCID"},
	} {
		v := good(t, Inputs{Env: environment(c.env...)})
		assert.Equal(t, c.want, [3]int{v.Rank, v.Ranks, v.LocalRanks}, name)
		assert.Equal(t, "environment "+c.from, v.Origin("rank").String())
		assert.Empty(t, v.Overrides(), "a launcher is no override")
	}
}

func TestRankGivenByHand(t *testing.T) {
	v := good(t, Inputs{}, "-rank=2", "-ranks=4")
	assert.Equal(t, [3]int{2, 4, 4}, [3]int{v.Rank, v.Ranks, v.LocalRanks})
	mpi := environment("PMI_RANK", "1", "PMI_SIZE", "2")
	v = good(t, Inputs{Env: mpi}, "-rank=0")
	assert.Equal(t, [2]int{0, 2}, [2]int{v.Rank, v.Ranks})
	v = good(t, Inputs{Env: mpi}, "-rank=auto", "-local-ranks=1")
	assert.Equal(t, [3]int{1, 2, 1}, [3]int{v.Rank, v.Ranks, v.LocalRanks})
	assert.Equal(t, uint64(43), v.StreamSeed())
	// The launcher's number of clients holds even where it does not say how many are here.
	v = good(t, Inputs{Env: environment("SLURM_PROCID", "1", "SLURM_STEP_NUM_TASKS", "7",
		"SLURM_STEP_TASKS_PER_NODE", "2", "SLURM_NODEID", "1")}, "-rank=0")
	assert.Equal(t, [2]int{0, 7}, [2]int{v.Rank, v.Ranks})
}

// Ranks that meet learn how many of them are on their host, unless somebody has said so. Those that
// do not meet take it that all are.
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
	assert.Equal(t, []string{"-rank: must be below -ranks (1), given 3 (flag)"},
		wrong(t, Inputs{}, "-rank=3"))
	assert.Equal(t, []string{"-local-ranks: must be at most -ranks (2), given 3 (flag)"},
		wrong(t, Inputs{}, "-rank=0", "-ranks=2", "-local-ranks=3"))
	assert.Equal(t, []string{"-rank-failure: must be one of stop, continue, given x (flag)",
		"-local-ranks: must be absent where this run starts the ranks: all of them are on this " +
			"host, given 2 (flag)"},
		wrong(t, Inputs{}, "-ranks=2", "-local-ranks=2", "-rank-failure=x"))
	assert.Equal(t, []string{"-ranks: must be at most 1024 where this run starts them, given 2000 " +
		"(flag)"}, wrong(t, Inputs{}, "-ranks=2000"))
	assert.Equal(t, []string{"-rank-failure: must be absent with one client: -ranks starts several, " +
		"given stop (flag)"}, wrong(t, Inputs{}, "-rank-failure=stop"))
	assert.Equal(t, []string{"-rank: must be auto or a whole number in 0…2147483647, given -1 " +
		"(flag)"}, wrong(t, Inputs{}, "-rank=-1"))
	assert.Len(t, wrong(t, Inputs{}, "-ranks=0"), 1)
	for _, env := range [][]string{
		{"PMI_RANK", "x", "PMI_SIZE", "2"},
		{"PMI_RANK", "2", "PMI_SIZE", "2"},
		{"PMI_RANK", "0"},
		{"PALS_RANKID", "0", "PALS_LOCAL_SIZE", "1"},
		{"JOB_COMPLETION_INDEX", "3"},
		{"JOB_COMPLETION_INDEX", "3", "KVBENCH_RANKS", "3"},
		{"SLURM_STEP_NUM_TASKS", "3"},
		{"PMI_RANK", "0", "PMI_SIZE", "0"},
		{"SLURM_PROCID", "1", "SLURM_STEP_NUM_TASKS", "2", "SLURM_STEP_TASKS_PER_NODE", "1", "SLURM_NODEID",
			"1"},
		{"SLURM_PROCID", "1", "SLURM_STEP_NUM_TASKS", "2", "SLURM_STEP_TASKS_PER_NODE", "1(x", "SLURM_NODEID",
			"0"},
		{"SLURM_PROCID", "1", "SLURM_STEP_NUM_TASKS", "2", "SLURM_STEP_TASKS_PER_NODE", "1", "SLURM_NODEID",
			"here"},
	} {
		assert.Len(t, wrong(t, Inputs{Env: environment(env...)}), 1, env)
	}
	good(t, Inputs{Env: environment("PMI_RANK", "x", "PMI_SIZE", "2")}, "-rank=0", "-ranks=1")
}

// Whoever waits for the end of a run under a launcher is not the person at the terminal.
func TestALaunchedRunIsNotAlone(t *testing.T) {
	for _, c := range []struct {
		env   []string
		args  []string
		alone bool
	}{
		{nil, nil, true},
		{nil, []string{"-rank=0", "-ranks=1"}, true},
		{nil, []string{"-ranks=2"}, false},
		{nil, []string{"-rank=1", "-ranks=2"}, false},
		{[]string{"OMPI_COMM_WORLD_RANK", "0", "OMPI_COMM_WORLD_SIZE", "1"}, nil, false},
		{[]string{"PMI_RANK", "0", "PMI_SIZE", "1"}, []string{"-rank=0"}, false},
		{[]string{"SLURM_PROCID", "3", "SLURM_STEP_NUM_TASKS", "4"}, nil, false},
		{[]string{"SLURM_JOB_ID", "7"}, nil, true},                      // a shell in an allocation
		{[]string{"SLURM_PROCID", "0", "SLURM_NTASKS", "4"}, nil, true}, // a batch script
	} {
		v := good(t, Inputs{Env: environment(c.env...)}, c.args...)
		assert.Equal(t, c.alone, v.Alone(), "%v %v", c.env, c.args)
	}
}

// TestASizeThatNobodyTells names the variable that is missing, and the flag.
func TestASizeThatNobodyTells(t *testing.T) {
	assert.Equal(t, []string{"PMI_SIZE: must be set when PALS_RANKID is: give -rank and -ranks, or " +
		"start under PALS"}, wrong(t, Inputs{Env: environment("PALS_RANKID", "1")}))
	assert.Equal(t, []string{"-ranks: must be given with Kubernetes, which says that this is rank " +
		"3 (JOB_COMPLETION_INDEX) and not of how many: give -ranks or KVBENCH_RANKS"},
		wrong(t, Inputs{Env: environment("JOB_COMPLETION_INDEX", "3")}))
	v := good(t, Inputs{Env: environment("PALS_RANKID", "1", "PALS_LOCAL_SIZE", "2")}, "-ranks=4")
	assert.Equal(t, [3]int{1, 4, 2}, [3]int{v.Rank, v.Ranks, v.LocalRanks})
}

// TestWhoStartsRanks: -ranks alone, and nobody whom somebody else has started.
func TestWhoStartsRanks(t *testing.T) {
	for _, c := range []struct {
		env    []string
		args   []string
		starts bool
	}{
		{nil, nil, false},
		{nil, []string{"-ranks=1"}, false},
		{nil, []string{"-ranks=4"}, true},
		{[]string{"KVBENCH_RANKS", "4"}, nil, true},
		{nil, []string{"-rank=0", "-ranks=4"}, false},
		{[]string{"PMI_RANK", "0", "PMI_SIZE", "4"}, nil, false},
		{[]string{"PMI_RANK", "0", "PMI_SIZE", "4"}, []string{"-ranks=4"}, false},
	} {
		v := good(t, Inputs{Env: environment(c.env...)}, c.args...)
		assert.Equal(t, c.starts, v.Starts(), "%v %v", c.env, c.args)
	}
	started := &launchers.Place{Rank: launchers.Value{Text: "3", Variable: "X"},
		Size: launchers.Value{Text: "4", Variable: "X"}, Local: launchers.Value{Text: "4",
			Variable: "X"}}
	v := good(t, Inputs{Agent: started}, "-ranks=4", "-rank-failure=continue")
	assert.False(t, v.Starts())
	assert.Equal(t, [3]int{3, 4, 4}, [3]int{v.Rank, v.Ranks, v.LocalRanks})
}

// TestWhereRanksMeet: those of a launcher do unless told otherwise, those that a person has started
// one by one where a person says where.
func TestWhereRanksMeet(t *testing.T) {
	mpi := []string{"PMI_RANK", "0", "PMI_SIZE", "4"}
	for _, c := range []struct {
		env   []string
		args  []string
		meets bool
		where string
	}{
		{nil, nil, false, "auto"},
		{mpi, nil, true, "auto"},
		{mpi, []string{"-rendezvous=none"}, false, "none"},
		{[]string{"PMI_RANK", "0", "PMI_SIZE", "1"}, []string{"-rendezvous=a"}, false, "a:7717"},
		{nil, []string{"-rank=0", "-ranks=4"}, false, "auto"},
		{nil, []string{"-rank=0", "-ranks=4", "-rendezvous=a.b-c:1"}, true, "a.b-c:1"},
		{mpi, []string{"-rendezvous=::1"}, true, "[::1]:7717"},
		{mpi, []string{"-rendezvous=[::1]:80"}, true, "[::1]:80"},
		{nil, []string{"-ranks=4"}, false, "auto"},
	} {
		v := good(t, Inputs{Env: environment(c.env...)}, c.args...)
		assert.Equal(t, c.meets, v.Meets(), "%v %v", c.env, c.args)
		assert.Equal(t, c.where, v.Rendezvous)
	}
	for _, text := range []string{"", "a:0", "a:65536", "a:b", "-x:1", "a b:1", "a/b", ":1"} {
		assert.Equal(t, []string{"-rendezvous: must be auto, none, HOST or HOST:PORT, given " + cmp.Or(text, `""`) + " (flag)"},
			wrong(t, Inputs{Env: environment(mpi...)}, "-rendezvous="+text), text)
	}
	assert.Len(t, wrong(t, Inputs{}, "-rendezvous=a", "-rendezvous-timeout=2s"), 2)
	assert.Len(t, wrong(t, Inputs{}, "-ranks=2", "-rendezvous=a"), 1)
	assert.Equal(t, "true", good(t, Inputs{Env: environment(mpi...)}, "-shared-dir=true").SharedDir)
	assert.Len(t, wrong(t, Inputs{}, "-ranks=2", "-shared-dir=true"), 1)
	assert.Len(t, wrong(t, Inputs{Env: environment(mpi...)}, "-rendezvous-timeout=90m"), 1)
}

// TestAllHere: an unknown number of local ranks never means that all are here.
func TestAllHere(t *testing.T) {
	for _, c := range []struct {
		env  []string
		args []string
		here bool
	}{
		{[]string{"PMI_RANK", "0", "PMI_SIZE", "4"}, nil, false},
		{[]string{"PMI_RANK", "0", "PMI_SIZE", "4", "PMI_LOCAL_SIZE", "4"}, nil, true},
		{[]string{"PMI_RANK", "0", "PMI_SIZE", "4", "PMI_LOCAL_SIZE", "2"}, nil, false},
		{[]string{"PMI_RANK", "0", "PMI_SIZE", "4"}, []string{"-local-ranks=4"}, true},
	} {
		assert.Equal(t, c.here, good(t, Inputs{Env: environment(c.env...)}, c.args...).AllHere())
	}
}

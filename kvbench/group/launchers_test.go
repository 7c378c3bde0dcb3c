package group

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// one is the variables of each launcher for rank 3 of 8, in the order of the table, and the
// expected result.
var one = []struct {
	name                                     string
	env                                      map[string]string
	rank, size, local, first, job, localFrom string
}{
	{"Open MPI", map[string]string{"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "8",
		"OMPI_COMM_WORLD_LOCAL_SIZE": "4", "PMIX_NAMESPACE": "prterun-a-17@1"},
		"3", "8", "4", "", "Open MPI prterun-a-17@1", "OMPI_COMM_WORLD_LOCAL_SIZE"},
	{"MVAPICH2", map[string]string{"MV2_COMM_WORLD_RANK": "3", "MV2_COMM_WORLD_SIZE": "8",
		"MV2_COMM_WORLD_LOCAL_SIZE": "2"}, "3", "8", "2", "", "", "MV2_COMM_WORLD_LOCAL_SIZE"},
	{"PALS", map[string]string{"PALS_RANKID": "3", "PMI_SIZE": "8", "PALS_LOCAL_SIZE": "4",
		"PALS_APID": "ab-1"}, "3", "8", "4", "", "PALS ab-1", "PALS_LOCAL_SIZE"},
	{"PMI", map[string]string{"PMI_RANK": "3", "PMI_SIZE": "8", "MPI_LOCALNRANKS": "8",
		"PMI_JOBID": "kvs_1"}, "3", "8", "8", "", "PMI kvs_1", "MPI_LOCALNRANKS"},
	{"Slurm", map[string]string{"SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "8",
		"SLURM_STEP_TASKS_PER_NODE": "2(x3),1(x2)", "SLURM_NODEID": "3",
		"SLURM_STEP_NODELIST": "n[01-04,7],m2", "SLURM_JOB_ID": "12", "SLURM_STEP_ID": "0"},
		"3", "8", "1", "n01", "Slurm 12.0", "SLURM_STEP_TASKS_PER_NODE"},
	{"Flux", map[string]string{"FLUX_TASK_RANK": "3", "FLUX_JOB_SIZE": "8",
		"FLUX_JOB_NNODES": "2", "FLUX_JOB_ID": "f1"}, "3", "8", "4", "", "Flux f1",
		"FLUX_JOB_NNODES"},
	{"torchrun", map[string]string{"RANK": "3", "WORLD_SIZE": "8", "MASTER_ADDR": "a",
		"MASTER_PORT": "29500", "LOCAL_WORLD_SIZE": "4", "TORCHELASTIC_RUN_ID": "r1"},
		"3", "8", "4", "a", "torchrun r1", "LOCAL_WORLD_SIZE"},
	{"Kubernetes", map[string]string{"JOB_COMPLETION_INDEX": "3"}, "3", "", "1",
		"kv-0.svc.ns.svc.cluster.local", "Kubernetes kv", "JOB_COMPLETION_INDEX"},
}

// inPod makes this process look like one of a pod.
func inPod(t *testing.T, name, hosts string) {
	real := thisPod
	t.Cleanup(func() { thisPod = real })
	thisPod = func() (string, string) { return name, hosts }
}

// hostsOfPod are those of the pod kv-3.
const hostsOfPod = "127.0.0.1 localhost\n# kv-3.comment.example\n" +
	"10.1.0.7\tkv-3.svc.ns.svc.cluster.local\tkv-3\n"

func in(env map[string]string) func(string) string {
	return func(name string) string { return env[name] }
}

func found(t *testing.T, env map[string]string) *Launched {
	t.Helper()
	p := FindLauncher(in(env))
	require.NotNil(t, p, env)
	return p
}

func TestEachLauncher(t *testing.T) {
	inPod(t, "kv-3", hostsOfPod)
	for _, c := range one {
		p := found(t, c.env)
		assert.Equal(t, []string{c.name, c.rank, c.size, c.local, c.localFrom, ""},
			[]string{p.Launcher, p.Rank.Text, p.Size.Text, p.Local.Text, p.Local.Variable,
				p.Problem}, c.name)
		assert.Equal(t, c.first, p.First, c.name)
		assert.Equal(t, c.job, p.Job, c.name)
		assert.Equal(t, launchers[slices.IndexFunc(launchers,
			func(l launcher) bool { return l.name == c.name })].rank, p.Rank.Variable)
	}
	require.Len(t, one, len(launchers))
	assert.Nil(t, FindLauncher(in(nil)))
	for _, job := range []string{"", "Open MPI a", "Open MPI b"} {
		assert.Regexp(t, `^127\.0\.0\.1:[12]\d{4}$`, LocalAddress(job))
	}
	assert.NotEqual(t, LocalAddress("Open MPI a"), LocalAddress("Open MPI b"))
}

// TestAllPairs: of two launchers the first one counts, and nothing but the address of rank 0 comes
// from the other.
func TestAllPairs(t *testing.T) {
	inPod(t, "kv-3", hostsOfPod)
	for i, a := range one {
		for _, b := range one[i+1:] {
			both := maps.Clone(b.env)
			maps.Copy(both, a.env)
			p := found(t, both)
			assert.Equal(t, []string{a.name, a.rank, a.size},
				[]string{p.Launcher, p.Rank.Text, p.Size.Text}, "%s and %s", a.name, b.name)
			switch {
			case a.name == "PMI" && b.name == "Slurm": // srun --mpi=pmi2
				assert.Equal(t, "n01", p.First)
			default:
				assert.Equal(t, a.first, p.First, "%s and %s", a.name, b.name)
			}
		}
	}
}

// TestWithoutOne takes one variable away at a time.
func TestWithoutOne(t *testing.T) {
	for _, c := range []struct{ launcher, without, want string }{
		// launcher, rank, size, local, problem
		{"Open MPI", "OMPI_COMM_WORLD_RANK", "none"},
		{"Open MPI", "OMPI_COMM_WORLD_SIZE", "Open MPI 3 - 4"},
		{"Open MPI", "OMPI_COMM_WORLD_LOCAL_SIZE", "Open MPI 3 8 -"},
		{"PALS", "PMI_SIZE", "PALS 3 - 4"},
		{"Slurm", "SLURM_STEP_NUM_TASKS", "none"}, // a batch script
		{"Slurm", "SLURM_PROCID", "Slurm - 8 1 SLURM_PROCID: must be set when " +
			"SLURM_STEP_NUM_TASKS is: give -rank, or start under Slurm"},
		{"Slurm", "SLURM_STEP_TASKS_PER_NODE", "Slurm 3 8 -"},
		{"Slurm", "SLURM_NODEID", "Slurm 3 8 2"},
		{"Flux", "FLUX_JOB_NNODES", "Flux 3 8 -"},
		{"torchrun", "WORLD_SIZE", "none"},
		{"torchrun", "LOCAL_WORLD_SIZE", "torchrun 3 8 1"},
		{"Kubernetes", "JOB_COMPLETION_INDEX", "none"},
	} {
		i := slices.IndexFunc(launchers, func(l launcher) bool { return l.name == c.launcher })
		env := maps.Clone(one[i].env)
		require.Contains(t, env, c.without)
		delete(env, c.without)
		got := "none"
		if p := FindLauncher(in(env)); p != nil {
			text := func(v Value) string {
				if !v.Given() {
					return "-"
				}
				return v.Text
			}
			got = strings.TrimSpace(strings.Join([]string{p.Launcher, text(p.Rank), text(p.Size),
				text(p.Local), p.Problem}, " "))
		}
		assert.Equal(t, c.want, got, "%s without %s", c.launcher, c.without)
	}
}

func TestFirstOfAStep(t *testing.T) {
	for list, want := range map[string]string{
		"": "", "a": "a", "a,b": "a", "n[01-04,7],m2": "n01", "n[7,01]": "n7", "n[3]-ib": "n3-ib",
		"r[1-2]n[05-06]": "r1n05", "n[": "", "n[]": "", "n[x]": "", "m2,n[1-": "m2",
	} {
		assert.Equal(t, want, slurmFirst(in(map[string]string{"SLURM_STEP_NODELIST": list})), list)
	}
}

func TestTasksOfANode(t *testing.T) {
	for _, c := range []struct{ list, id, want, why string }{
		{"3", "", "3", ""},
		{"3", "0", "3", ""},
		{"2(x3),1", "2", "2", ""},
		{"2(x3),1", "3", "1", ""},
		{"2(x3),1", "4", "", "covers this node"},
		{"1(x", "0", "", "covers this node"},
		{"1(x0)", "0", "", "covers this node"},
		{"1", "here", "", `a whole SLURM_NODEID (it is "here")`},
		{"1", "-1", "", "a whole SLURM_NODEID"},
	} {
		got, err := tasksOf(c.list, c.id)
		assert.Equal(t, c.want, got, "%s at %s", c.list, c.id)
		if c.why != "" {
			assert.ErrorContains(t, err, c.why)
		} else {
			assert.NoError(t, err)
		}
	}
	p := found(t, map[string]string{"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2",
		"SLURM_STEP_TASKS_PER_NODE": "1", "SLURM_NODEID": "1"})
	assert.Equal(t, "SLURM_STEP_TASKS_PER_NODE: must be a list such as 2(x3),1 that covers this "+
		"node, given 1 (environment)", p.Problem)
}

// TestPods: a job's name may itself end in a number, and a pod without a service has no domain.
func TestPods(t *testing.T) {
	for _, c := range []struct{ name, hosts, first, job string }{
		{"kv-3-3", "10.0.0.1 kv-3-3.s.ns.svc kv-3-3", "kv-3-0.s.ns.svc", "Kubernetes kv-3"},
		{"kv-3", "10.0.0.1 kv-3", "", "Kubernetes kv"},
		{"kv-4", "10.0.0.1 kv-4.s.ns.svc", "", ""}, // with a name of the user
		{"kv-3", "10.0.0.1 kv-3.$(x)", "", "Kubernetes kv"},
		{"", "", "", ""},
	} {
		inPod(t, c.name, c.hosts)
		p := found(t, map[string]string{"JOB_COMPLETION_INDEX": "3"})
		assert.Equal(t, c.first, p.First, c)
		assert.Equal(t, c.job, p.Job, c)
	}
}

// TestAStepAroundMPI: mpirun inside an allocation of another size is met elsewhere.
func TestAStepAroundMPI(t *testing.T) {
	p := found(t, map[string]string{"PMI_RANK": "1", "PMI_SIZE": "4", "SLURM_PROCID": "0",
		"SLURM_STEP_NUM_TASKS": "1", "SLURM_STEP_NODELIST": "n[1-2]"})
	assert.Empty(t, p.First)
	assert.Empty(t, p.Job)
}

package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// short is a run of some requests, into one results directory.
func (b *bench) short(more ...string) []string {
	b.results = filepath.Join(b.work, "results")
	return append(append(append(b.micro(), b.places()...), "-test.bench=MaxStorageStress",
		"-test.benchtime=20x"), more...)
}

// together requires one line, printed by the first of these processes alone, and the results of
// all.
func (b *bench) together(ranks []*process, launcher string) {
	b.t.Helper()
	for i, p := range ranks {
		o := p.end()
		require.Equal(b.t, 0, o.code, "%d: %s%s", i, o.stdout, o.stderr)
		lines, _ := parse(b.t, o.stdout)
		if i > 0 {
			assert.Empty(b.t, o.stdout+o.stderr, "the others print into their logs")
			continue
		}
		require.Len(b.t, lines, 1)
		_, ok := value(lines[0], "start-skew-ns")
		assert.True(b.t, ok)
	}
	results, all := b.resultsOf("option_1", 0)
	require.Len(b.t, results, len(ranks))
	require.NotNil(b.t, all)
	assert.Equal(b.t, []string{launcher, "tcp"},
		[]string{all.Clients.Launcher, all.Clients.Transport})
	var requests int64
	for _, r := range results {
		requests += r.Requests.Completed
	}
	assert.Equal(b.t, requests, all.Requests.Completed)
	assert.Len(b.t, resultFiles(b.t, b.results), len(ranks)+1, "one tree")
	left, err := filepath.Glob(filepath.Join(b.cache, "*/*"))
	require.NoError(b.t, err)
	assert.Empty(b.t, left)
}

// TestRanksOfLaunchersMeet: four processes with the variables of a launcher whose ranks are all on
// this host, and of one that names the first host.
func TestRanksOfLaunchersMeet(t *testing.T) {
	endToEnd(t)
	t.Parallel()
	const n = 4
	job := strconv.Itoa(os.Getpid())
	for name, env := range map[string]func(rank string) []string{
		"Open MPI": func(r string) []string {
			return []string{"OMPI_COMM_WORLD_RANK=" + r, "OMPI_COMM_WORLD_SIZE=4",
				"OMPI_COMM_WORLD_LOCAL_SIZE=4", "PMIX_NAMESPACE=" + job}
		},
		"Slurm": func(r string) []string { // two tasks on each of two nodes, the first of which this is
			return []string{"SLURM_STEP_NUM_TASKS=4", "SLURM_PROCID=" + r, "SLURM_NODEID=0",
				"SLURM_STEP_TASKS_PER_NODE=2(x2)", "SLURM_JOB_ID=" + job, "SLURM_STEP_ID=0",
				"SLURM_STEP_NODELIST=localhost,n2"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newClients(t)
			args := b.short()
			var ranks []*process
			for rank := range n {
				c := *b
				c.env = append(append([]string(nil), b.env...), env(strconv.Itoa(rank))...)
				ranks = append(ranks, c.start(args...))
			}
			b.together(ranks, name)
		})
	}
}

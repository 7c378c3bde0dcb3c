package e2e

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/group/launchers"
	"kvbench/kvbench/result"
)

// launched is a place to start ranks from one by one, as a launcher does.
func launched(t testing.TB) *bench {
	b := newClients(t)
	b.results = filepath.Join(b.work, "results")
	return b
}

// short is a run of some requests.
func (b *bench) short(more ...string) []string {
	return append(append(append(b.micro(), b.places()...), "-test.bench=MaxStorageStress",
		"-test.benchtime=20x"), more...)
}

// rank starts one with what its launcher says of it.
func (b *bench) rank(env []string, args ...string) *process {
	c := *b
	c.env = append(append([]string(nil), b.env...), env...)
	return c.start(args...)
}

// together wants one line, printed by the first of these processes alone, and the results of n.
func (b *bench) together(ranks []*process, n int, launcher, transport string) {
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
	require.Len(b.t, results, n)
	require.NotNil(b.t, all)
	assert.Equal(b.t, []string{launcher, transport},
		[]string{all.Clients.Launcher, all.Clients.Transport})
	var requests int64
	for _, r := range results {
		requests += r.Requests.Completed
	}
	assert.Equal(b.t, requests, all.Requests.Completed)
	assert.Len(b.t, resultFiles(b.t, b.results), n+1, "one tree")
	left, err := filepath.Glob(filepath.Join(b.cache, "*"))
	require.NoError(b.t, err)
	hidden, err := filepath.Glob(filepath.Join(b.cache, ".kvbench-*"))
	require.NoError(b.t, err)
	for _, dir := range left {
		inside, err := filepath.Glob(filepath.Join(dir, "*"))
		require.NoError(b.t, err)
		hidden = append(hidden, inside...)
	}
	assert.Empty(b.t, hidden)
}

// freePort is a port of this host that nobody listens at. It is none of those that systems give to
// whoever connects (from 32768 on with Linux, 49152 by IANA): one of the many connections beside
// this test would have it by the time that somebody wants to listen.
func freePort(t testing.TB) string {
	for {
		port := strconv.Itoa(10_000 + rand.IntN(20_000))
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			require.NoError(t, l.Close())
			return port
		}
	}
}

// TestRanksOfLaunchersMeet: three processes with the variables of each family, where all are on one
// host and where that is not known.
func TestRanksOfLaunchersMeet(t *testing.T) {
	endToEnd(t)
	t.Parallel()
	const n = 3
	port := freePort(t)
	job := strconv.Itoa(os.Getpid())
	for _, c := range []struct {
		name, transport string
		env             func(rank string) []string
		args            []string
	}{
		{"Open MPI", "socket", func(r string) []string {
			return []string{"OMPI_COMM_WORLD_RANK=" + r, "OMPI_COMM_WORLD_SIZE=3",
				"OMPI_COMM_WORLD_LOCAL_SIZE=3", "PMIX_NAMESPACE=" + job}
		}, nil},
		{"MVAPICH2", "socket", func(r string) []string { // no job: that of the parent's process
			return []string{"MV2_COMM_WORLD_RANK=" + r, "MV2_COMM_WORLD_SIZE=3",
				"MV2_COMM_WORLD_LOCAL_SIZE=3"}
		}, nil},
		// Of two hosts each, as far as they know: a file in the cache directory, or an address.
		{"PALS", "tcp", func(r string) []string {
			return []string{"PALS_RANKID=" + r, "PALS_LOCAL_SIZE=2", "PALS_APID=a/" + job}
		}, []string{"-ranks=3"}},
		{"PMI", "tcp", func(r string) []string {
			return []string{"PMI_RANK=" + r, "PMI_SIZE=3", "MPI_LOCALNRANKS=2"}
		}, []string{"-rendezvous=127.0.0.1:" + port}},
		{"Slurm", "socket", func(r string) []string {
			return []string{"SLURM_STEP_NUM_TASKS=3", "SLURM_PROCID=" + r, "SLURM_NODEID=0",
				"SLURM_STEP_TASKS_PER_NODE=3", "SLURM_JOB_ID=" + job, "SLURM_STEP_ID=0",
				"SLURM_STEP_NODELIST=localhost"}
		}, nil},
		{"Flux", "tcp", func(r string) []string {
			return []string{"FLUX_TASK_RANK=" + r, "FLUX_JOB_SIZE=3", "FLUX_JOB_NNODES=2",
				"FLUX_JOB_ID=f" + job}
		}, nil},
		{"torchrun", "socket", func(r string) []string {
			return []string{"RANK=" + r, "WORLD_SIZE=3", "LOCAL_WORLD_SIZE=3",
				"MASTER_ADDR=127.0.0.1", "MASTER_PORT=29400", "TORCHELASTIC_RUN_ID=" + job}
		}, nil},
		{"Kubernetes", "tcp", func(r string) []string {
			return []string{"JOB_COMPLETION_INDEX=" + r, "KVBENCH_RANKS=3"}
		}, []string{"-rendezvous=dir:"}},
		{"by hand", "tcp", func(r string) []string {
			return []string{"KVBENCH_RANK=" + r, "KVBENCH_RANKS=3"}
		}, []string{"-rendezvous=dir:"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := launched(t)
			args := b.short(c.args...)
			if len(c.args) > 0 && strings.HasSuffix(c.args[0], ":") {
				args[len(args)-1] += filepath.Join(b.work, "meeting", "place")
			}
			var ranks []*process
			for rank := range n {
				ranks = append(ranks, b.rank(c.env(strconv.Itoa(rank)), args...))
			}
			b.together(ranks, n, c.name, c.transport)
			assert.NoDirExists(t, filepath.Join(b.work, "meeting"), "made to meet, and removed")
		})
	}
}

// TestRanksThatDoNotMeet: whoever is missing, or does not belong there, is named to all that wait,
// and nothing was made.
func TestRanksThatDoNotMeet(t *testing.T) {
	endToEnd(t)
	t.Parallel()
	port := freePort(t)
	hand := func(b *bench, rank int, more ...string) *process {
		if rank == 0 { // once: the others read what it makes
			b.command = append([]string{binary(t), "-test.run=^$"}, b.short("-ranks=4",
				"-rendezvous=localhost:"+port)...)
		}
		return b.start(append(more, fmt.Sprint("-rank=", rank))...)
	}
	nothing := func(b *bench) {
		assert.NoDirExists(t, b.cache)
		assert.NoDirExists(t, b.results)
	}
	t.Run("missing", func(t *testing.T) {
		b := launched(t)
		var all []*process
		for _, rank := range []int{0, 2} {
			all = append(all, hand(b, rank, "-rendezvous-timeout=10s"))
		}
		for _, p := range all {
			o := p.end()
			assert.Equal(t, exitFailed, o.code)
			assert.Regexp(t, `^kvbench: 2 of 4 ranks came within 10(\.\d)?s; missing 1, 3\n$`,
				o.stderr)
			assert.Empty(t, o.stdout)
		}
		nothing(b)
	})
	t.Run("no rank 0", func(t *testing.T) {
		b := launched(t)
		o := b.run(b.short("-rank=1", "-ranks=4", "-rendezvous=localhost:"+port,
			"-rendezvous-timeout=1s")...)
		assert.Equal(t, exitFailed, o.code)
		assert.Regexp(t, `^kvbench: rank 1 found no rank 0 at localhost:\d+ within \S+s: dial tcp `+
			`\S+: connect: connection refused\n$`, o.stderr)
		nothing(b)
	})
	t.Run("other load", func(t *testing.T) {
		b := launched(t)
		zero, one := hand(b, 0), hand(b, 1, "-num-users=7")
		o := zero.end()
		assert.Equal(t, exitFailed, o.code)
		assert.Regexp(t, `rank 1 on \S+ \(pid \d+\) was refused: its parameters are others: `+
			`-num-users: 8 here, 7 there`, o.stderr)
		assert.Contains(t, one.end().stderr, "the coordinator refused this rank: its parameters")
		nothing(b)
	})
	t.Run("bad on its host", func(t *testing.T) {
		b := launched(t)
		zero, one := hand(b, 0), hand(b, 1, "-config=/nowhere.yaml")
		o := zero.end()
		assert.Equal(t, exitFailed, o.code)
		assert.Regexp(t, `rank 1 on \S+ \(pid \d+\) was refused: -config: .*nowhere`, o.stderr)
		assert.Equal(t, exitParameters, one.end().code)
		nothing(b)
	})
	t.Run("twice and strangers", func(t *testing.T) {
		b := launched(t)
		var all []*process
		for _, rank := range []int{0, 1, 2} {
			all = append(all, hand(b, rank))
		}
		t.Cleanup(func() { // without rank 0 nobody ever listens
			for _, p := range all {
				if t.Failed() && p.ProcessState == nil {
					_ = p.Process.Kill()
					t.Log(p.end().stderr)
				}
			}
		})
		address := "localhost:" + port
		for i := range 100 { // who says nothing, rubbish, or too much
			eventually(t, "somebody at "+address, func() bool {
				conn, err := net.Dial("tcp", address)
				if err == nil {
					_, _ = conn.Write([]byte("\xff\xff\xff\xffGET / HTTP/1.1\r\n\r\n")[:i%20])
					t.Cleanup(func() { _ = conn.Close() })
				}
				return err == nil
			})
		}
		twins := []*process{hand(b, 3), hand(b, 3)}
		refused, taken := twins[0].end(), twins[1].end()
		if refused.code == 0 {
			refused, taken = taken, refused
		}
		assert.Equal(t, exitFailed, refused.code)
		assert.Regexp(t, `refused this rank: rank 3 on \S+ \(pid \d+\) has been here`, refused.stderr)
		assert.Equal(t, 0, taken.code, taken.stderr)
		b.together(all, 4, "by hand", "tcp")
	})
	t.Run("nowhere", func(t *testing.T) {
		b := launched(t)
		p := b.rank([]string{"MV2_COMM_WORLD_RANK=0", "MV2_COMM_WORLD_SIZE=2"}, b.short()...)
		o := p.end()
		assert.Equal(t, exitParameters, o.code)
		assert.Contains(t, o.stderr, "-rendezvous: must be given with MVAPICH2")
		nothing(b)
	})
	t.Run("none", func(t *testing.T) {
		b := launched(t)
		o := b.rank([]string{"PMI_RANK=0", "PMI_SIZE=2"}, b.short("-rendezvous=none")...).end()
		assert.Equal(t, 0, o.code, o.stderr)
		assert.Nil(t, theResult(t, b.results).Clients)
	})
}

// TestRealLaunchers: what is installed here starts ranks; one line comes of it, and when a rank is
// killed none, and no process stays.
func TestRealLaunchers(t *testing.T) {
	endToEnd(t)
	t.Parallel()
	for _, c := range []struct {
		name      string
		command   []string
		launcher  string
		transport string
	}{
		{"mpirun", []string{"mpirun.openmpi", "--allow-run-as-root", "--oversubscribe",
			"--bind-to", "none", "-n", "3"}, "Open MPI", "socket"},
		{"mpiexec", []string{"mpiexec.hydra", "-n", "3"}, "PMI", "socket"},
		{"torchrun", []string{"torchrun", "--nproc_per_node", "3", "--no_python"}, "torchrun",
			"socket"},
		{"srun", []string{"srun", "-O", "-n", "3"}, "Slurm", "socket"},
		{"flux", []string{"flux", "start", "flux", "run", "-n", "3"}, "Flux", "socket"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path, err := exec.LookPath(c.command[0])
			if err != nil {
				t.Skipf("not run: %v", err)
			}
			// A launcher that cannot start anything is as good as none: srun without a controller,
			// Debian's torchrun on its Python.
			if err := exec.Command(path, append(c.command[1:], "true")...).Run(); err != nil {
				t.Skipf("not run: %s starts nothing here: %v", c.name, err)
			}
			b := launched(t)
			b.command = append(append([]string{path}, c.command[1:]...), binary(t), "-test.run=^$")
			o := b.run(b.short()...)
			require.Equal(t, 0, o.code, o.stdout+o.stderr)
			lines, _ := parse(t, o.stdout)
			require.Len(t, lines, 1)
			results, all := b.resultsOf("option_1", 0)
			require.Len(t, results, 3)
			assert.Equal(t, []string{c.launcher, c.transport},
				[]string{all.Clients.Launcher, all.Clients.Transport})

			// One of them dies: no line, and no process stays. What launchers do with the others
			// differs: all but srun end them, too, hydra at once.
			b.results += "-killed"
			p := b.start(b.short("-test.benchtime=10m")...)
			b.allWrite(3)
			pids := b.launchedPIDs()
			require.Len(t, pids, 3)
			require.NoError(t, syscall.Kill(pids[2], syscall.SIGKILL))
			o = p.end()
			assert.NotZero(t, o.code)
			assert.NotRegexp(t, `(?m)^BenchmarkMaxStorageStress\S*\s+1\s+\d`, o.stdout)
			b.gone(pids)
			if c.launcher == "Slurm" {
				assert.Regexp(t, fmt.Sprintf(`rank 2 on \S+ \(pid %d\) has gone: its connection `+
					`ended, in the window of`, pids[2]), o.stdout)
				results, all := b.resultsOf("option_1", 0)
				assert.Len(t, results, 2)
				require.NotNil(t, all)
				assert.Equal(t, result.StatusIncomplete, all.Status)
			}
		})
	}
}

// launchedPIDs are the processes that work in the cache directory, by rank.
func (b *bench) launchedPIDs() map[int]int {
	found := map[int]int{}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(b.t, err)
	for _, path := range lines {
		dir := filepath.Dir(path)
		text, _ := os.ReadFile(path)
		exe, _ := os.Readlink(filepath.Join(dir, "exe"))
		if exe != binary(b.t) || !strings.Contains(string(text), b.cache) {
			continue
		}
		environ, err := os.ReadFile(filepath.Join(dir, "environ"))
		require.NoError(b.t, err)
		place, _ := launchers.Find(func(name string) string {
			for line := range strings.SplitSeq(string(environ), "\x00") {
				if value, is := strings.CutPrefix(line, name+"="); is {
					return value
				}
			}
			return ""
		})
		rank, err := strconv.Atoi(place.Rank.Text)
		require.NoError(b.t, err)
		found[rank], err = strconv.Atoi(filepath.Base(dir))
		require.NoError(b.t, err)
	}
	return found
}

package requests

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbench/kvbench"
	"kvbench/kvbench/plainio"
	"kvbench/kvbench/result"
	"kvbench/kvbench/verdict"
	"kvbench/tiers/buffer"
	"kvbench/tiers/privtest"
	"kvbench/workloads"
	"kvbench/workloads/users"
)

// These are runs in which one knows what the limit is, on real devices.

// judged is a run on a device of the test's own that tries, after its window, whether more in
// flight would have moved more.
func judged(dir string, requests []*workloads.Request, workers, depth int) runConfig {
	cfg := testConfig(nil, newScript(requests...), workers).finite()
	cfg.Climb = plainio.Climb
	cfg.Storage = kvbench.StorageConfig{
		StorageBytes: 512 << 20, CacheDir: dir + "/cache", Direct: true,
		Use: buffer.Use{Chunk: 1 << 20, Depth: depth, Workers: workers},
	}
	return cfg
}

// again is the same run with its requests anew.
func (c runConfig) again(requests []*workloads.Request) runConfig {
	src := newScript(requests...)
	c.Source = func() (workloads.Source, error) { return src, nil }
	return c
}

// megabytes are writes of 2 MiB each: handing smaller requests to threads takes as long as the
// memory under these devices does.
func megabytes(n int) []*workloads.Request { return singles(n, 2<<20/unit) }

// undetected skips a test whose subject is where time goes, when the race detector takes most of
// it: a harness that it slows down is the limit, and is rightly called so.
func undetected(t *testing.T) {
	t.Helper()
	if raceEnabled {
		t.Skip("measures where time goes, and runs without the race detector")
	}
}

// tell logs what a run said: the words are for people.
func tell(t *testing.T, r *result.Result) {
	t.Helper()
	v := r.Harness.Verdict
	t.Logf("%s %s: %s", v.Kind, v.Bound, v.Reason)
}

// Writing at 40 MiB/s leaves the processor idle, and 8 requests in flight keep such a device busy.
func TestAThrottledDeviceIsTheLimit(t *testing.T) {
	undetected(t)
	fs := privtest.LoopFS(t, 640, privtest.LoopOptions{DirectIO: true})
	throttle := privtest.ThrottleLoop(t, fs, 40<<20, 40<<20)
	throttle.Add(t, os.Getpid())
	cfg := judged(fs.Dir, megabytes(120), 4, 2)
	cfg.Storage.Chunk = 64 << 10 // the kernel throttles in slices of 100 ms, 4 MiB each
	r := mustRun(t, cfg)
	tell(t, r)
	for n := 0; n < 4 && r.Harness.Verdict.Kind == result.Undecided; n++ {
		r = mustRun(t, cfg.again(megabytes(120)))
		tell(t, r)
	}
	says(t, r, result.StorageLimited, "", "more would not have moved more")
	assert.Greater(t, r.WindowNS, int64(3*time.Second), "240 MiB were written")
}

const verdictEnv = "KVTEST_VERDICT_DIR"

// Memory as storage and one processor: nothing but the harness is left to wait
// for. A process is bound to a processor from its first thread on, so the run
// is in one of its own.
func TestOneProcessorOnMemoryIsTheLimit(t *testing.T) {
	undetected(t)
	if dir := os.Getenv(verdictEnv); dir != "" {
		runForVerdict(t, dir)
		return
	}
	fs := privtest.LoopFS(t, 96, privtest.LoopOptions{})
	dir := filepath.Dir(fs.BackingFile) // the tmpfs under the loop device

	var got verdictSeen
	for range 3 {
		cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.count", "1")
		cmd.Env = append(os.Environ(), verdictEnv+"="+dir)
		startOnOneProcessor(t, cmd)
		text, err := os.ReadFile(filepath.Join(dir, "verdict.json"))
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &got))
		if got.Stolen < 0.1 {
			assert.Equal(t, result.HarnessLimited, got.Verdict.Kind, got.Verdict.Reason)
			assert.Equal(t, 1.0, got.Cores)
			return
		}
	}
	t.Skipf("other programs held the processor for %.0f %% of the window: it cannot show that "+
		"the harness needs all of it", 100*got.Stolen)
}

type verdictSeen struct {
	Verdict result.Verdict
	Cores   float64
	Stolen  float64 // share of the window in which the processor worked for somebody else
}

func startOnOneProcessor(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	runtime.LockOSThread() // children inherit what the thread that makes them may use
	defer runtime.UnlockOSThread()
	var all, first unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &all))
	for cpu := 0; first.Count() == 0; cpu++ {
		if all.IsSet(cpu) {
			first.Set(cpu)
		}
	}
	require.NoError(t, unix.SchedSetaffinity(0, &first))
	defer func() { require.NoError(t, unix.SchedSetaffinity(0, &all)) }()
	// Others may be busy on it, too, and are to be no part of this.
	require.NoError(t, unix.Setpriority(unix.PRIO_PROCESS, 0, -20))
	defer func() { require.NoError(t, unix.Setpriority(unix.PRIO_PROCESS, 0, 0)) }()
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func runForVerdict(t *testing.T, dir string) {
	src := population(16, func(u *users.Config) { u.Rate = 1e6 })
	cfg := testConfig(nil, src, 4).lasting(time.Second)
	cfg.Planner.Sizer.BytesPerToken = 256
	cfg.Storage = kvbench.StorageConfig{
		StorageBytes: 32 << 20, CacheDir: filepath.Join(dir, "cache"), Direct: true,
		Use: buffer.Use{Chunk: 1 << 20, Depth: 1, Workers: 4},
	}
	idle := idleTime(t)
	r := mustRun(t, cfg)
	window := time.Duration(r.WindowNS)
	text, err := json.Marshal(verdictSeen{
		Verdict: r.Harness.Verdict, Cores: r.Limits.Cores,
		Stolen: 1 - time.Duration(r.Harness.CPUNS).Seconds()/window.Seconds() -
			(idleTime(t)-idle).Seconds()/window.Seconds(),
	})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "verdict.json"), text, 0o644))
}

// idleTime is how long the only processor of this process has had nothing to do.
func idleTime(t *testing.T) time.Duration {
	t.Helper()
	var set unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &set))
	text, err := os.ReadFile("/proc/stat")
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		cpu, err := strconv.Atoi(strings.TrimPrefix(f[0], "cpu"))
		if err != nil || !set.IsSet(cpu) {
			continue
		}
		idle, err := strconv.ParseInt(f[4], 10, 64)
		require.NoError(t, err)
		// idle, too, while somebody waits for a device
		iowait, err := strconv.ParseInt(f[5], 10, 64)
		require.NoError(t, err)
		return time.Duration(idle+iowait) * 10 * time.Millisecond // USER_HZ is 100 everywhere
	}
	t.Fatal("/proc/stat does not know this processor")
	return 0
}

// bounded runs a load up to five times until the ladder has shown that more in flight would have
// moved more: a device in memory does not show it while others need the memory's bandwidth or the
// processors. Until then nothing of the harness or the load may be said.
func bounded(t *testing.T, bound, reason string, workers, writers int,
	requests func() []*workloads.Request) {
	t.Helper()
	for n := range 5 {
		fs := privtest.LoopFS(t, 640, privtest.LoopOptions{DirectIO: true})
		cfg := judged(fs.Dir, requests(), workers, 1)
		cfg.Storage.MaxWriters = writers
		r := mustRun(t, cfg)
		tell(t, r)
		switch kind := r.Harness.Verdict.Kind; {
		case kind != result.Undecided && kind != result.StorageLimited:
			says(t, r, result.ConcurrencyLimited, bound, reason)
			return
		case n == 4:
			t.Skip("plain I/O with more in flight never moved more: other programs need what this " +
				"device in memory is made of")
		}
	}
}

// Eight workers want to write, and one may.
func TestATinyWriteLimitIsTheLimit(t *testing.T) {
	undetected(t)
	bounded(t, verdict.WriteLimit, "1 at a time", 8, 1,
		func() []*workloads.Request { return megabytes(800) })
}

func TestOneWorkerIsTheLimit(t *testing.T) {
	undetected(t)
	// Turns read all before them: making data would take as long as such a device does.
	bounded(t, verdict.Workers, "the number of workers (1", 1, 0, func() []*workloads.Request {
		return conversation(1, 40, 2<<20/unit, workloads.PrefillOnly)
	})
}

func TestOneSlowUserOnADevice(t *testing.T) {
	undetected(t)
	fs := privtest.LoopFS(t, 640, privtest.LoopOptions{DirectIO: true})
	requests := megabytes(5) // so far apart that no machine takes as long for one
	for i, r := range requests {
		r.Arrival = time.Duration(i) * 500 * time.Millisecond
	}
	r := mustRun(t, judged(fs.Dir, requests, 4, 1))
	tell(t, r)
	says(t, r, result.LoadLimited, "", "no request")
}

// Whoever takes a request holds the dispatcher's lock for as long as parsing its line may take.
func TestAHeldLockOnADeviceIsTheLimit(t *testing.T) {
	undetected(t)
	fs := privtest.LoopFS(t, 640, privtest.LoopOptions{DirectIO: true})
	cfg := judged(fs.Dir, megabytes(40), 4, 1)
	// far longer than a request takes, also on a busy machine
	cfg.OnDispatch = func(*workloads.Request, []workloads.Op) { time.Sleep(50 * time.Millisecond) }
	r := mustRun(t, cfg)
	tell(t, r)
	says(t, r, result.HarnessLimited, "", "taking requests (lock, input, plan)")
}

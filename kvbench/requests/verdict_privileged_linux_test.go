package requests

import (
	"context"
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
	"kvbench/tiers/tiertest"
	"kvbench/tracing/host"
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

// megabytes are writes of 2 MiB each: handing smaller requests to threads takes as long as the
// memory under these devices does.
func megabytes(n int) []*workloads.Request { return singles(n, 2<<20/unit) }

// timed prepares a test whose subject is where time goes: the process is ahead of other programs,
// and without the race detector. Where one of the two takes most of it, the harness is the limit
// and is rightly called so.
func timed(t *testing.T) {
	t.Helper()
	if tiertest.Race {
		t.Skip("measures where time goes, and runs without the race detector")
	}
	privtest.Ahead(t)
}

// tell logs what a run said: the words are for people.
func tell(t *testing.T, r *result.Result) {
	t.Helper()
	v := r.Harness.Verdict
	t.Logf("%s %s: %s", v.Kind, v.Bound, v.Reason)
}

// Writing at 10 MiB/s leaves the processor idle, and 8 requests in flight keep such a device busy.
// The kernel throttles in slices of 100 ms, of which a rung of 300 ms has three or four: these are
// long enough for one of them not to matter.
func TestAThrottledDeviceIsTheLimit(t *testing.T) {
	tiertest.DevicePace(t)
	timed(t)
	fs := privtest.LoopFS(t, 640, privtest.LoopOptions{DirectIO: true})
	throttle := privtest.ThrottleLoop(t, fs, privtest.Rates{Read: 10 << 20, Write: 10 << 20})
	throttle.Add(t, os.Getpid())
	cfg := judged(fs.Dir, megabytes(15), 4, 2)
	cfg.Storage.Chunk = 64 << 10
	cfg.Climb = func(ctx context.Context, e *kvbench.Env, l kvbench.Ladder) ([]result.Rung, error) {
		l.Time, l.Bytes, l.Room = 2*time.Second, 30<<20, 90<<20
		return plainio.Climb(ctx, e, l)
	}
	r := mustRun(t, cfg)
	tell(t, r)
	says(t, r, result.StorageLimited, "", "more would not have moved more")
	assert.Greater(t, r.WindowNS, int64(2*time.Second), "30 MiB were written")
}

const verdictEnv = "KVTEST_VERDICT_DIR"

// Memory as storage and one processor: nothing but the harness is left to wait
// for. A process is bound to a processor from its first thread on, so the run
// is in one of its own.
func TestOneProcessorOnMemoryIsTheLimit(t *testing.T) {
	timed(t)
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

// slowDisk is a filesystem on a disk that takes so long for each request, with any number of them
// at a time: twice as many in flight move twice as much, on any machine that handles one in less
// than that. With a time for discards it discards what is deleted, and does nothing else meanwhile.
func slowDisk(t *testing.T, request, discard time.Duration) *privtest.Loop {
	t.Helper()
	return privtest.LoopFS(t, 640, privtest.LoopOptions{DirectIO: true, Discard: discard > 0,
		Times: privtest.Times{Read: request, Write: request, Discard: discard}})
}

// onSlowDisk is a run on a slow disk with entries of up to 1 MiB in requests of 64 KiB. After a
// window of two seconds rungs would take 100 ms, of which a machine with other things to do can
// take so much that they show nothing.
func onSlowDisk(disk *privtest.Loop, requests []*workloads.Request, workers int) runConfig {
	cfg := judged(disk.Dir, requests, workers, 1)
	cfg.Storage.Chunk = 64 << 10
	cfg.Climb = longer
	return cfg
}

// longer climbs with rungs of a second, and as much room as they may fill.
func longer(ctx context.Context, e *kvbench.Env, l kvbench.Ladder) ([]result.Rung, error) {
	l.Time, l.Bytes, l.Room, l.FileSize = time.Second, 60<<20, 200<<20, 512<<10
	return plainio.Climb(ctx, e, l)
}

const mebibyte = 1 << 20 / unit // tokens

// Eight workers want to write, and one may.
func TestATinyWriteLimitIsTheLimit(t *testing.T) {
	timed(t)
	cfg := onSlowDisk(slowDisk(t, 5*time.Millisecond, 0), singles(24, mebibyte), 8)
	cfg.Storage.MaxWriters = 1
	r := mustRun(t, cfg)
	tell(t, r)
	says(t, r, result.ConcurrencyLimited, verdict.WriteLimit, "1 at a time")
}

func TestOneWorkerIsTheLimit(t *testing.T) {
	timed(t)
	r := mustRun(t, onSlowDisk(slowDisk(t, 5*time.Millisecond, 0),
		conversation(1, 8, mebibyte/2, workloads.PrefillOnly), 1))
	tell(t, r)
	says(t, r, result.ConcurrencyLimited, verdict.Workers, "the number of workers (1")
}

// The cache holds a quarter of what is written. Each deletion becomes a discard, or a few of them
// one, that takes the disk for longer than it takes to write four entries side by side.
func TestADeletionStormIsTheLimit(t *testing.T) {
	timed(t)
	disk := slowDisk(t, 2*time.Millisecond, 150*time.Millisecond)
	cfg := onSlowDisk(disk, singles(32, mebibyte), 4)
	cfg.Storage.StorageBytes = 8 << 20
	r := mustRun(t, cfg)
	tell(t, r)
	says(t, r, result.DiscardLimited, "", "; without deletions plain I/O moved")
	assert.Less(t, r.Harness.Busy.RemovalNS, r.Harness.WorkerBusyNS/10,
		"the kernel's counters show it: workers do not wait for discards")
}

// More in flight would move more, but while that is tried the disk discards what somebody else has
// deleted: what the ladder showed would be the discards.
func TestWhatSomebodyElseDisturbsIsUndecided(t *testing.T) {
	timed(t)
	disk := slowDisk(t, 5*time.Millisecond, 100*time.Millisecond)
	cfg := onSlowDisk(disk, singles(20, mebibyte), 4)
	remove := otherFiles(t, disk.Dir, 12)
	cfg.Climb = func(ctx context.Context, e *kvbench.Env, l kvbench.Ladder) ([]result.Rung, error) {
		remove()
		return plainio.Climb(ctx, e, l)
	}
	r := mustRun(t, cfg)
	tell(t, r)
	says(t, r, result.Undecided, "", "of the time while plain I/O was tried, which therefore shows")
}

// otherFiles makes files whose removal costs a discard each: between two of them lies one that
// stays. Removal returns when the filesystem knows of it, and the discards follow.
func otherFiles(t *testing.T, dir string, n int) (remove func()) {
	t.Helper()
	name := func(i int) string { return filepath.Join(dir, strconv.Itoa(i)) }
	for i := range 2 * n {
		f, err := os.Create(name(i))
		require.NoError(t, err)
		require.NoError(t, unix.Fallocate(int(f.Fd()), 0, 0, 1<<20))
		require.NoError(t, f.Close())
	}
	require.NoError(t, host.SyncFilesystem(dir))
	return func() {
		for i := range n {
			assert.NoError(t, os.Remove(name(2*i)))
		}
		assert.NoError(t, host.SyncFilesystem(dir))
	}
}

func TestOneSlowUserOnADevice(t *testing.T) {
	timed(t)
	fs := privtest.LoopFS(t, 640, privtest.LoopOptions{DirectIO: true})
	requests := megabytes(5) // so far apart that no machine takes as long for one
	for i, r := range requests {
		r.Arrival = time.Duration(i) * time.Second
	}
	r := mustRun(t, judged(fs.Dir, requests, 4, 1))
	tell(t, r)
	says(t, r, result.LoadLimited, "", "no request")
}

// Whoever takes a request holds the dispatcher's lock for as long as parsing its line may take. The
// sleep is the situation, in real time on a real device, and nothing waits for it: in virtual time
// TestAHeldLockIsTheLimit says the same.
func TestAHeldLockOnADeviceIsTheLimit(t *testing.T) {
	timed(t)
	fs := privtest.LoopFS(t, 640, privtest.LoopOptions{DirectIO: true})
	cfg := judged(fs.Dir, megabytes(40), 4, 1)
	// far longer than a request takes, also on a busy machine
	cfg.OnDispatch = func(*workloads.Request, []workloads.Op) { time.Sleep(50 * time.Millisecond) }
	r := mustRun(t, cfg)
	tell(t, r)
	says(t, r, result.HarnessLimited, "", "taking requests (lock, input, plan)")
}

// generatorEnv makes the test be the one that it starts, whose data is made by the portable code
// for want of the processor's instructions for AES: at a twentieth of the speed, on real files.
const generatorEnv = "KVTEST_SLOW_GENERATOR"

func TestASlowGeneratorOnADeviceIsTheLimit(t *testing.T) {
	timed(t)
	if os.Getenv(generatorEnv) == "" {
		cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), generatorEnv+"=1", "GODEBUG=cpu.aes=off")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		t.Logf("%s", out)
		return
	}
	fs := privtest.LoopFS(t, 640, privtest.LoopOptions{DirectIO: true})
	cfg := judged(fs.Dir, singles(5, 16<<20/unit), 1, 1)
	cfg.Storage.Chunk = 8 << 20 // beside it, being woken up by the device takes no time anywhere
	r := mustRun(t, cfg)
	tell(t, r)
	// On a single core it is the processor that is told.
	assert.Equal(t, result.HarnessLimited, r.Harness.Verdict.Kind, r.Harness.Verdict.Reason)
	assert.Greater(t, r.Harness.Busy.GenerationNS, r.Harness.WorkerBusyNS/2)
}

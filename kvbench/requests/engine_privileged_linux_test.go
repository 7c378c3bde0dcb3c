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
	"kvbench/kvbench/result"
	"kvbench/tiers/buffer"
	"kvbench/tiers/privtest"
	"kvbench/workloads"
	"kvbench/workloads/users"
)

// onDevice is a run on a filesystem of the test's own with entries of two
// megabytes and half as many bytes read as written.
func onDevice(dir string, workers int) runConfig {
	var all []*workloads.Request
	for user := range 40 {
		all = append(all, conversation(user, 2, 512, workloads.PrefillOnly)...)
	}
	cfg := testConfig(nil, newScript(all...), workers).finite()
	cfg.Storage = kvbench.StorageConfig{
		StorageBytes: 48 << 20, CacheDir: dir, Direct: true,
		Use: buffer.Use{Chunk: 1 << 20, Depth: 2, Workers: workers},
	}
	return cfg
}

func TestTheKernelSawTheSameBytes(t *testing.T) {
	fs := privtest.LoopFS(t, 96, privtest.LoopOptions{DirectIO: true, NoJournal: true})
	cfg := onDevice(fs.Dir, 1) // in order: no read finds its entry being written
	r := mustRun(t, cfg)
	w := r.DeviceWitness
	require.Equal(t, fs.Name, w.Device, w.Reason)
	assert.EqualValues(t, 80*2<<20, w.AppWriteBytes)
	assert.EqualValues(t, 40*2<<20, w.AppReadBytes)
	assert.InDelta(t, 1, *w.WriteRatio, 0.01, "%d of %d bytes", *w.WriteBytes, w.AppWriteBytes)
	assert.InDelta(t, 1, *w.ReadRatio, 0.01, "%d of %d bytes", *w.ReadBytes, w.AppReadBytes)
	assert.False(t, *w.ServedFromCache)
	assert.Equal(t, "direct", r.IO.Mode)
}

func TestPreconditioningTellsOfAFullDisk(t *testing.T) {
	fs := privtest.LoopFS(t, 24, privtest.LoopOptions{})
	require.NoError(t, os.WriteFile(fs.Dir+"/mine.npy", []byte("mine"), 0o644))
	cfg := onDevice(fs.Dir+"/cache", 2)
	cfg.Storage.StorageBytes = 1 << 30 // more than there is
	cfg.Precondition = Precondition{Bytes: 2 << 30, Tokens: 512}
	r, err := runLoad(t.Context(), cfg)
	require.ErrorIs(t, err, unix.ENOSPC)
	assert.ErrorContains(t, err, "preconditioning filled the disk after")
	assert.ErrorContains(t, err, strconv.Itoa(2<<30))
	assert.ErrorContains(t, err, "-storage-capacity-gb")
	assert.Contains(t, r.Error, "preconditioning filled the disk after")
	assert.Equal(t, result.StatusFailed, r.Status)
	require.NotNil(t, r.Precondition)
	assert.Positive(t, r.Precondition.Bytes)
	left, err := os.ReadDir(fs.Dir)
	require.NoError(t, err)
	for _, e := range left {
		assert.Contains(t, []string{"mine.npy", "lost+found"}, e.Name())
	}
}

func TestAFullDiskAndAReadOnlyRemountEndTheTrial(t *testing.T) {
	fs := privtest.LoopFS(t, 24, privtest.LoopOptions{})
	cfg := onDevice(fs.Dir+"/cache", 2)
	cfg.Storage.StorageBytes = 1 << 30
	r, err := runLoad(t.Context(), cfg)
	require.ErrorIs(t, err, unix.ENOSPC)
	assert.Equal(t, result.StatusFailed, r.Status)
	assert.Equal(t, "ENOSPC", r.Errors[0].Errno)
	assert.NoDirExists(t, fs.Dir+"/cache")

	cfg = onDevice(fs.Dir+"/cache", 2)
	cfg.Storage.StorageBytes = 8 << 20
	cfg.OnDispatch = func(r *workloads.Request, _ []workloads.Op) {
		if r.Seq == 20 {
			// The kernel refuses while a file is open for writing: this has to fall between two
			// entries.
			for unix.Mount(fs.Path, fs.Dir, "ext4", unix.MS_REMOUNT|unix.MS_RDONLY,
				"") == unix.EBUSY {
				runtime.Gosched()
			}
		}
	}
	cfg.Workers = 1
	published := false
	cfg.Publish = func(*result.Result) error { published = true; return nil }
	r, err = runLoad(t.Context(), cfg)
	fs.Remount(t, false)
	require.ErrorIs(t, err, unix.EROFS)
	assert.True(t, published)
	assert.Equal(t, result.StatusFailed, r.Status)
	assert.Equal(t, "EROFS", r.Errors[0].Errno)

	cfg = onDevice(fs.Dir+"/cache", 1)
	cfg.Storage.StorageBytes = 8 << 20
	r, err = runLoad(t.Context(), cfg)
	require.NoError(t, err)
	assert.Contains(t, strings.Join(r.Warnings, "\n"), "reclaimed")
}

// Writing at 40 MB/s leaves the processor idle.
func TestAThrottledDeviceIsTheLimit(t *testing.T) {
	fs := privtest.LoopFS(t, 96, privtest.LoopOptions{DirectIO: true})
	throttle := privtest.ThrottleLoop(t, fs, 40<<20, 40<<20)
	throttle.Add(t, os.Getpid())
	cfg := onDevice(fs.Dir, 4)
	r := mustRun(t, cfg)
	assert.Equal(t, result.StorageLimited, r.Harness.Verdict.Kind, r.Harness.Verdict.Reason)
	assert.Greater(t, r.WindowNS, int64(3*time.Second), "160 MiB were written")
}

const verdictEnv = "KVTEST_VERDICT_DIR"

// Memory as storage and one processor: nothing but the harness is left to wait
// for. A process is bound to a processor from its first thread on, so the run
// is in one of its own.
func TestOneProcessorOnMemoryIsTheLimit(t *testing.T) {
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

package benchmarks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"kvbench/kvbench"
	"kvbench/kvbench/params"
	"kvbench/kvbench/units"
	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/cache"
	"kvbench/tiers/clock"
	"kvbench/tiers/gputier"
	"kvbench/tiers/ioengine"
	"kvbench/tiers/workdir"
	"kvbench/tracing/host"
	"kvbench/workloads/formats"
)

// feasible stores the storage configuration of a point in the plan and checks what depends on this
// machine: directory, disk and memory. It checks this host only.
func (p *plan) feasible(v *params.Values) params.Violations {
	if v.Bench.Name == "DataGen" || v.Skip() != "" {
		return nil
	}
	c, err := storageConfig(v)
	p.storage[v] = c
	if v.Bench.Checkpoints() {
		return checkpointFeasible(v, c, err)
	}
	bad := sessionsOnly(v).Merge(memoryFits(v)).Merge(cardsFit(v))
	if v.Simulated() {
		return append(bad, simulationFeasible(v)...)
	}
	if err != nil {
		bad = append(bad, strings.Split(err.Error(), "\n")...) // report these with the other violations
	} else if v.StorageBytes != c.StorageBytes || v.Bench.Blocks() { // Resolve has checked others
		bad = bad.Merge(v.CheckFit(c.StorageBytes))
	}
	if err == nil && c.Bucket == nil {
		bad = append(bad, startable(v, nil)...)
	}
	use := c.Use
	buffers := use.Bytes()
	if v.EngineLayout().Buckets {
		// There are four buckets: one is being filled, one written, one is full, one is read. Each
		// worker's operations in flight keep another bucket from being written.
		buffers += 4*tiers.BucketBytes + int64(use.Workers)*int64(use.Chunk)*int64(use.Depth)
	}
	memory := params.EstimateMemory(buffers, c.CPUBytes, kvbench.Shards())
	// Without this check the kernel would kill the run half-way and leave its files behind.
	cure := fmt.Sprintf("fewer -workers (now %d), a smaller -chunk-size or -io-depth, or no cpu tier",
		use.Workers)
	if err := params.CheckMemory(memory, cure, v.LocalRanks, host.ReadLimits()); err != nil {
		bad = append(bad, err.Error())
	}
	return append(append(bad, threadsFit(v, use)...), resultsApart(v)...)
}

// threadsFit returns a violation if the run may need more threads than this process can start: the kernel kills it
// then. Each request in flight is a system call in a thread of its own. The threads of an imitated engine limit its
// requests.
func threadsFit(v *params.Values, use buffer.Use) params.Violations {
	// Of the runtime, rings and processors. Measured with two processors: 20, of which 9 exist before the run.
	harness := 16 + runtime.NumCPU()
	_, n := use.Buffers()
	if v.ReadThreads > 0 && v.WriteThreads > 0 {
		n = min(n, v.ReadThreads+v.WriteThreads)
	}
	if v.IOEngine == ioengine.URing {
		n = 0
	}
	n = max(n, use.Workers) // which open, flush and remove files
	limit, source := host.Threads()
	have := int(limit) / max(1, v.LocalRanks)
	if limit == 0 || n+harness <= have || v.NoStorage() || v.OnObjects() {
		return nil
	}
	return params.Violations{fmt.Sprintf("threads: the run needs %d: %d requests in flight, %d harness; %d for each of "+
		"%s can start according to %s; raise that limit, or give fewer -workers or a smaller -io-depth, for at most "+
		"%d requests in flight", n+harness, n, harness, have, units.Plural(int64(v.LocalRanks), "rank"), source,
		max(0, have-harness))}
}

// startable returns violations for what the first trial would find: a cache directory in which this rank cannot
// work, and an I/O engine that the kernel refuses.
func startable(v *params.Values, folder *workdir.Folder) (bad params.Violations) {
	for _, dir := range cacheDirs(v) {
		if err := workdir.Check(workdir.Options{CacheDir: dir, Rank: v.Rank, Folder: folder}); err != nil {
			bad = append(bad, "-cache-dir: "+err.Error())
		}
	}
	e, _, err := ioengine.Open(cmp.Or(v.IOEngine, ioengine.Auto), ioengine.Use{Threads: 1}, clock.NewWall().Now, nil)
	if err != nil {
		return append(bad, err.Error())
	}
	_ = e.Close(context.Background())
	return bad
}

// memoryFits returns violations for a cpu or gpu tier that can hold no object, if all objects of the
// load have one size: such a run equals a run without the tier. Entries of users have many sizes, and a
// tier may be for the small ones.
func memoryFits(v *params.Values) (bad params.Violations) {
	tokens := v.CutTokens()
	switch {
	case v.Bench.Load != params.LoadUsers && v.Bench.Load != params.LoadTrace:
		return nil
	case tokens == 0 && v.OfSessions():
		tokens = v.SessionBlock()
	case tokens == 0 && v.Bench.Blocks():
		if sizes, err := v.BlockSizes(); err == nil { // otherwise another check reports the error
			tokens = sizes[0]
		}
	}
	size := v.Sizer().Bytes(tokens)
	share := cmp.Or(v.LargestShare, v.KeepShare, cache.KeepRatio)
	last, _, _ := v.LastTier() // see CheckFit
	// -gpu-mem-gb is the memory of each GPU. The memories of several GPUs may hold parts of one object.
	for _, tier := range []struct {
		name  string
		bytes int64 // of one part
		parts int
	}{{"gpu-mem-gb", v.GPUBytes, v.GPUs}, {"cpu-mem-gb", v.CPUBytes, 1}} {
		need := float64(size) / share / float64(tier.parts)
		if tokens > 0 && tier.name != last && tier.bytes > 0 && need > float64(tier.bytes) {
			bad = append(bad, fmt.Sprintf("-%s: must be at least %v, because an object of %d "+
				"tokens takes %s and the tier keeps %.0f %% of its size (or 0: no such tier), "+
				"given %s", tier.name, math.Ceil(need/float64(units.GiB)*1000)/1000, tokens,
				units.Bytes.Text(size), share*100, v.Text(tier.name)))
		}
	}
	return bad
}

// cardsFit returns violations for a gpu tier in the memory of cards that this machine does not have. The
// ranks of a host use the same cards.
func cardsFit(v *params.Values) params.Violations {
	if v.Cards() == 0 || v.Simulated() {
		return nil
	}
	cards, err := gputier.Cards()
	switch {
	case err != nil:
		return params.Violations{fmt.Sprintf("-gpu-backend: must be simulated on this machine, given "+
			"cuda: %v", err)}
	case v.Cards() > len(cards):
		return params.Violations{fmt.Sprintf("-num-gpus: must be at most %d, the cards of this machine, "+
			"given %d", len(cards), v.Cards())}
	}
	for i, c := range cards[:v.Cards()] {
		most := c.Free / int64(v.LocalRanks)
		if v.GPUBytes > most {
			return params.Violations{fmt.Sprintf("-gpu-mem-gb: must be at most %v, because card %d (%s) has "+
				"%s of %s free for %s of this host, given %s; nvidia-smi lists who has the rest",
				math.Floor(float64(most)/float64(units.GiB)*1000)/1000, i, c.Name,
				units.Bytes.Text(c.Free), units.Bytes.Text(c.Bytes),
				units.Plural(int64(v.LocalRanks), "rank"), v.Text("gpu-mem-gb"))}
		}
	}
	return nil
}

// sessionsOnly returns a violation if -num-users or -arrival closed-loop is given with a block trace
// that has requests outside of sessions.
func sessionsOnly(v *params.Values) params.Violations {
	if !v.Bench.Blocks() {
		return nil
	}
	var said []string
	// -num-users from the environment or the YAML file may be meant for other runs.
	if v.Flag("num-users") {
		said = append(said, "-num-users")
	}
	if v.ClosedLoop() {
		said = append(said, "-arrival closed-loop")
	}
	if len(said) == 0 {
		return nil
	}
	files, err := formats.Blocks.Files(v.BlockTracePath)
	if err != nil {
		return nil // another check reports this error
	}
	if err := formats.OnlySessions(strings.Join(said, " and "), files); err != nil {
		return params.Violations{err.Error()}
	}
	return nil
}

// resultsApart returns a violation if, in the closed division, the results directory is on the measured
// filesystem.
func resultsApart(v *params.Values) params.Violations {
	dir := cacheDir(v)
	if v.Division != params.Closed || v.NoStorage() || !host.SameFilesystem(dir, v.ResultsDir) {
		return nil
	}
	return params.Violations{fmt.Sprintf("-results-dir: must be on another filesystem than the "+
		"cache directory in the closed division: %s and %s share one", v.ResultsDir, dir)}
}

// resultRoom is the free space that a result needs, in bytes: histograms and timeline of a long trial
// take a MiB.
const resultRoom = 4 << 20

// writable returns a violation if a result cannot be written to the results directory, before a run of
// hours fails at its end. It writes and removes a file, because quotas, servers and read-only mounts
// show only then.
func writable(dir string) params.Violations {
	// The run creates the directory with the first result: test its nearest existing parent.
	at := dir
	info, err := os.Stat(at)
	for errors.Is(err, os.ErrNotExist) && at != filepath.Dir(at) {
		at = filepath.Dir(at)
		info, err = os.Stat(at)
	}
	switch {
	case err == nil && !info.IsDir():
		err = errors.New(at + " is no directory")
	case err == nil:
		err = tryWriting(at)
	}
	if err == nil {
		return nil
	}
	return params.Violations{fmt.Sprintf("-results-dir: must be a directory in which %d MiB can "+
		"be written, given %s: %v", resultRoom>>20, dir, err)}
}

// tryWriting writes and syncs a file of resultRoom bytes in dir, and removes it.
func tryWriting(dir string) error {
	f, err := os.CreateTemp(dir, ".kvbench-can-write-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if _, err = f.Write(make([]byte, resultRoom)); err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// warnings are sentences for a result.
type warnings []string

func (w *warnings) add(when bool, format string, args ...any) {
	if when {
		*w = append(*w, fmt.Sprintf(format, args...))
	}
}

// warningsOf returns the warnings of a point, known before the run starts.
func warningsOf(v *params.Values) (w warnings) {
	warn := w.add
	warn(v.Division == params.Quick && v.Changed("cache-dir") && !v.Simulated(), "the quick division is "+
		"small and short, and its numbers describe no storage; add -division open")
	// Allowed, because the user's own model may need it, but unusual.
	tp := v.TensorParallel
	warn(tp&(tp-1) != 0, "tensor parallel %d is not a power of two: no engine runs so", tp)
	warn(v.NotCounted() != "", "%s", v.NotCounted())
	long := v.CutTemplates()
	warn(len(long) > 0, "contexts of %s are cut to the context window of %s, %d tokens",
		strings.Join(long, ", "), cmp.Or(v.Model.Name, v.Model.Key), v.ContextWindow())
	warn(v.Bench.Checkpoints() && v.Filesystems > 1, "checkpoints are node-local: the ranks work on "+
		"%d filesystems and do not see each other's files", v.Filesystems)
	policy := v.PolicyWithoutMemory()
	warn(policy != "" && v.Bench.Load != params.LoadNone, "-engine %s keeps entries in memory first (%s), and there is none: each is "+
		"stored at once and loaded at each request; give -cpu-mem-gb", v.Engine, policy)
	l := v.EngineLayout()
	warn(l.Full != "" && !v.NoStorage() && v.Bench.Load != params.LoadNone, "where the tier is full objects are evicted here (-evict %s); "+
		"the engine of %s %s", v.Evict, l.Name, l.Full)
	// Only full buckets are written, and such a bucket is never full.
	warn(l.Buckets && v.Bench.Load != params.LoadNone && v.StorageBytes > 0 && v.StorageBytes < tiers.BucketBytes,
		"-storage-capacity-gb is less than a bucket of %s, which is %s: the storage may never be "+
			"written", l.Name, units.Bytes.Text(int64(tiers.BucketBytes)))
	w.processors(v)
	w.bucket(v)
	var idle []string // sections
	for _, key := range v.IdleKeys() {
		section, _, _ := strings.Cut(key, ".")
		idle = append(idle, section)
	}
	warn(len(idle) > 0, "without effect here: %s of %s (in %s); -help-parameters has the reasons",
		units.Plural(int64(len(idle)), "key"), v.ConfigFile, strings.Join(slices.Compact(idle), ", "))
	return w
}

// processors adds a warning if the CPUs may limit the run: there are more ranks than CPUs that they may use, or
// a launcher has bound each rank to fewer CPUs than its share of the machine.
func (w *warnings) processors(v *params.Values) {
	may, has := runtime.NumCPU(), host.Root("/").OnlineCPUs()
	few, cure := may < min(has, v.LocalRanks), ""
	if v.Launcher != nil {
		cure = map[string]string{
			"Open MPI": "; give mpirun --bind-to none", "MVAPICH2": "; set MV2_ENABLE_AFFINITY=0",
			"PALS": "; give mpiexec --cpu-bind none", "PMI": "; give mpiexec -bind-to none, or set I_MPI_PIN=off",
			"Slurm": "; give srun --cpu-bind=none, or -c with the cores of a task",
		}[v.Launcher.Launcher]
		few = cure != "" && may*v.LocalRanks < has && !v.Simulated()
	}
	w.add(few, "this process is bound to %s of %d, and %s share them: what is measured may be the processors%s",
		units.Plural(int64(may), "processor"), has, units.Plural(int64(v.LocalRanks), "rank"), cure)
}

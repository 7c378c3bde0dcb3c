package benchmarks

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"kvbench/kvbench"
	"kvbench/kvbench/params"
	"kvbench/kvbench/plainio"
	"kvbench/kvbench/record"
	"kvbench/kvbench/requests"
	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tracing"
	"kvbench/tracing/collector"
	"kvbench/tracing/host"
	"kvbench/workloads"
)

// trialConfig turns the values in force into the engine's configuration: what every workload has,
// be it requests or plain I/O. What is wrong with the values was refused before; an error here is
// this machine's.
func trialConfig(v *params.Values, trial int) (kvbench.Config, error) {
	storage, err := storageConfig(v)
	cfg := kvbench.Config{Info: runInfo(v, trial), Settle: v.Settle, Storage: storage,
		AwaitDiscards: v.Division != result.DivisionClosed, // which rests by its rules
		Climb:         plainio.Climb, ClimbAfter: 300 * time.Millisecond}
	if v.LatencyTracing {
		cfg.Trace = &collector.Options{Level: tracing.Level(v.TraceLevel),
			Filter: tracing.Filter(v.TraceFilter)}
	}
	return cfg, err
}

// requestLoad turns the values in force into the load of requests. The source is made per trial, so
// that each trial of a benchmark asks for the same.
func requestLoad(v *params.Values, storage kvbench.StorageConfig) (*requests.Load, error) {
	cfg := requests.Config{
		Source: func() (workloads.Source, error) { return source(v) }, Input: v.Text(v.Bench.Needs),
		Planner: workloads.Planner{Sizer: v.Sizer(), DecodeBatch: v.Profile.DecodeBatch,
			Batched: v.Batched(), ObjectTokens: v.CutTokens()},
		Phase: kvbench.Phase{Name: "requests", Window: v.Window.Length, Warmup: v.Warmup,
			Limit: v.Window.Completions},
		Workers: v.WorkerCount(), TokenTime: v.GenerationTime, Overtaking: v.Overtaking(),
		ValidationTrace: v.ValidationTrace, Corpus: corpus(v),
	}
	cfg.Cost, _ = v.Cost()
	cfg.ContextWindow = v.ContextWindow()
	if v.Bench.Load == params.LoadTrace {
		cfg.EndedBy = result.EndedByInput
	}
	if v.MaxRequests > 0 {
		// All of them finish: the window lasts as long as that takes.
		cfg.EndedBy, cfg.Window = result.EndedByMaxRequests, 0
	}
	if v.Bench.Load == params.LoadUsers {
		cfg.Users = v.Users
	}
	if v.Autoscaling {
		cfg.Autoscale = &requests.Autoscale{Mode: v.AutoscalerMode, Target: v.TargetSaturation,
			Interval: v.AutoscalerInterval}
	}
	if v.DecodeOnly && v.Bench.Load == params.LoadUsers { // others read what they recorded
		cfg.Population.Entries, cfg.Population.Tokens = v.DecodePopulation()
	}
	if v.Precondition {
		cfg.Precondition = requests.Precondition{Threads: v.PreconditionThreads,
			Bytes: cmp.Or(v.PreconditionBytes, 2*storage.StorageBytes)}
		cfg.Precondition.Tokens = v.CutTokens()
		if storage.Layout.Kind == tiers.LayoutSlots { // takes nothing larger
			sizes, err := v.BlockSizes()
			if err != nil {
				return nil, err
			}
			cfg.Precondition.Tokens = sizes[len(sizes)-1]
		}
	}
	return requests.New(cfg)
}

// storageConfig decides what is left open: the directory, the capacity from the
// free space, a fresh nonce.
func storageConfig(v *params.Values) (c kvbench.StorageConfig, err error) {
	if v.Bench.Checkpoints() {
		return checkpointStorage(v)
	}
	c = kvbench.StorageConfig{
		GPUBytes: v.GPUTierBytes(), GPUBandwidth: v.GPUBytesPerSecond(), CPUBytes: v.CPUBytes,
		CacheDir: cacheDir(v), Rank: v.Rank, KeepFiles: v.KeepFiles,
		IOEngine: v.IOEngine, IOTimeout: v.IOTimeout,
		Direct: v.Direct(), FlushOnly: v.Division == params.Closed,
		Use: buffer.Use{Chunk: int(v.ChunkSize), Depth: v.Depth(), Workers: v.WorkerCount(),
			MaxWriters: v.MaxConcurrentAllocs,
			Most:       params.MostBuffers(v.LocalRanks, host.ReadLimits())},
	}
	switch v.Bench.Name { // for whose largest requests there must be memory
	case "BlockIO":
		n := blocksInFlight(v)
		c.Use = buffer.Use{Chunk: mostBlock, Depth: 1, Workers: n, Exactly: n}
	case "Knee":
		c.Use = buffer.Use{Chunk: plainio.KneeSize, Depth: 1, Workers: 1,
			Exactly: plainio.KneeFlight / plainio.KneeSize}
	}
	if v.Autoscaling {
		c.Workers = max(c.Workers, autoscaleBuffers)
	}
	c.Policy = kvbench.PolicyOf(v.TierPolicy, v.Promote, v.Evict)
	c.Policy.After, c.Policy.Behind = v.Admission(), v.WriteBehindBytes
	c.Verify = verification(v)
	// In virtual time nothing is asked of this machine: results must not depend on where it ran.
	if v.Simulated() {
		c.StorageBytes, c.Engine.Tails = v.StorageBytes, v.Tails() // whatever this machine has
		return c, nil
	}
	if c.Bucket, err = bucketConfig(v); c.Bucket != nil { // whose free space nobody knows
		c.StorageBytes, c.Nonce = v.StorageBytes, v.TrialNonce()
		c.Use = pieces(v, c.Use)
		if err == nil {
			_, err = storageLayout(v, c.StorageBytes)
		}
		return c, err
	}
	if err := chooseRoom(v, &c); err != nil {
		return c, err
	}
	if c.Layout, err = storageLayout(v, c.StorageBytes); err != nil {
		return c, err
	}
	if l, is := v.EngineLayout(); is {
		if v.Layerwise {
			c.Layers = v.Model.Layers
		}
		c.Engine = kvbench.EngineFiles{Layout: l.Name, Model: v.Model.Key,
			Bytes: v.Sizer().Bytes(v.ObjectTokens), Layers: v.Model.Layers,
			Latents: v.Model.Latents(), Ranks: v.RankObjects(), Loads: v.ReadThreads,
			Stores: v.WriteThreads, Tokens: v.ObjectTokens, Tails: v.Tails()}
		if err := namesFit(&c); err != nil {
			return c, err
		}
		// A call moves an object as a whole, or a layer of it, as the engine's does.
		// Of a model that there is not an object has no bytes: what else is wrong is told as well.
		n := max(1, int64(c.Layers), int64(len(c.Engine.Tails)))
		c.Use.Chunk = int(tiers.AlignUp(max(1, (c.Engine.Bytes+n-1)/n), buffer.PageSize))
	}
	// A drive that deduplicates must not recognise what an earlier trial wrote.
	c.Nonce = v.TrialNonce()
	return c, nil
}

// blocksInFlight is how many requests BlockIO has in flight: 32, enough for a drive, when nobody
// says how many.
func blocksInFlight(v *params.Values) int { return cmp.Or(v.InFlight(), 32) }

// pieces is how a run on an object store uses its buffers. They are the memory that it takes, and
// no request is smaller for smaller ones: where nobody says how large they are and more are under
// way than 160, they take 40 MiB together. Below 64 KiB reading takes more processor time.
func pieces(v *params.Values, use buffer.Use) buffer.Use {
	const most, least, page = 40 << 20, 64 << 10, 4096
	use.Streamed = true
	if !v.Typed("chunk-size") {
		each := most / (use.Workers * use.Depth) / page * page
		use.Chunk = min(use.Chunk, max(each, least))
	}
	return use
}

// autoscaleBuffers is for how many workers a run has buffers whose workers are
// going to be more than at its start. Beyond it they wait for each other, which
// the result calls admission.
const autoscaleBuffers = 64

// runInfo is what the front door knows of a trial.
func runInfo(v *params.Values, trial int) record.Info {
	in := record.Info{
		Result: result.Result{
			Benchmark: v.Bench.Name, Division: string(v.Division), Notice: v.Notice(),
			Trial: trial, Count: v.Count, Rank: v.Rank, Ranks: v.Ranks, Seed: uint64(v.Seed),
			Model: result.Model{Key: v.Model.Key, Name: v.Model.Name,
				BytesPerToken: v.Model.BytesPerToken(), TensorParallel: v.TensorParallel,
				StoredAs: v.Model.StoredAs},
			Workload: result.Workload{
				Arrival: v.Arrival, Turns: v.Turns, GenerationMode: v.GenerationMode,
				DecodeReads: v.DecodeReads,
			},
			IO:         result.IO{Mode: v.IO},
			Parameters: v.Parameters(), DiffersFromClosed: v.Differences(), Warnings: warnings(v),
		},
		Sizer: v.Sizer(), QoS: v.Profile.QoS,
		Tails: v.Tails(), ObjectTokens: v.ObjectTokens, ContextWindow: v.Model.Window,
	}
	if cost, rate := v.Cost(); !cost.Free() {
		in.FirstToken = &result.FirstToken{Prefill: result.PrefillCost{GPU: rate.GPU,
			Source: strings.TrimPrefix(rate.What+"; "+rate.Source, "; ")}}
		if cost.PerSquare == 0 {
			in.Workload.PrefillRate = 1 / cost.PerToken
		}
	}
	if n := v.StoringRanks(); n > 1 {
		in.Model.StoringRanks, in.Model.RankObjects = n, v.RankObjects()
	}
	if v.Bench.Option != 0 {
		in.Option = new(v.Bench.Option)
	}
	if v.Bench.Load == params.LoadUsers {
		in.Workload.Users = v.Users
	}
	return in
}

// feasible checks what depends on this machine: directory, disk and memory. Other ranks check their
// own host.
func feasible(v *params.Values) params.Violations {
	if v.Bench.Name == "DataGen" || v.Skip() != "" {
		return nil
	}
	if v.Bench.Checkpoints() && !v.Simulated() {
		return checkpointFeasible(v)
	}
	bad := sessionsOnly(v).Merge(memoryFits(v))
	if v.Simulated() {
		return append(bad, simulationFeasible(v)...)
	}
	c, err := storageConfig(v)
	if err != nil {
		bad = append(bad, strings.Split(err.Error(), "\n")...) // what else is wrong is told, too
	} else if v.StorageBytes != c.StorageBytes {
		bad = bad.Merge(v.CheckFit(c.StorageBytes))
	}
	use := c.Use
	buffers := use.Bytes()
	if l, is := v.EngineLayout(); is && l.Buckets {
		// One is filled, one is written, one is full, one is read; and what each worker has begun
		// keeps another one from being written.
		buffers += 4*tiers.BucketBytes + int64(use.Workers)*int64(use.Chunk)*int64(use.Depth)
	}
	memory := params.EstimateMemory(buffers, c.CPUBytes, kvbench.Shards())
	// The run would be killed by the kernel half-way, with its files left behind.
	if err := params.CheckMemory(memory, use.Workers, v.LocalRanks,
		host.ReadLimits()); err != nil {
		bad = append(bad, err.Error())
	}
	return append(bad, resultsApart(v, c.CacheDir)...)
}

// resultRoom is what must be free for a result: histograms and timeline of a long trial take a MiB.
const resultRoom = 4 << 20

// writable refuses a results directory that cannot take what a run of hours has found: nothing
// else notices before the end. A file is really written and removed, because quotas, servers and
// read-only mounts answer to nothing else.
func writable(dir string) params.Violations {
	// The directory itself is made with the first result: until then the nearest one answers.
	at := dir
	info, err := os.Stat(at)
	for errors.Is(err, os.ErrNotExist) && at != filepath.Dir(at) {
		at = filepath.Dir(at)
		info, err = os.Stat(at)
	}
	if err == nil && !info.IsDir() {
		err = errors.New(at + " is no directory")
	}
	if err == nil {
		err = tryWriting(at)
	}
	if err == nil {
		return nil
	}
	return params.Violations{fmt.Sprintf("-results-dir: must be a directory in which %d MiB can "+
		"be written, given %s: %v", resultRoom>>20, dir, err)}
}

// tryWriting leaves nothing behind.
func tryWriting(dir string) error {
	f, err := os.CreateTemp(dir, ".kvbench-can-write-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	block := make([]byte, 1<<20)
	for n := 0; n < resultRoom && err == nil; n += len(block) {
		_, err = f.Write(block)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// describesNoStorage tells whether the quick division was taken for a directory that somebody wants
// to know about, without being asked for.
func describesNoStorage(v *params.Values) bool {
	return v.Division == params.Quick && v.Origin("division").Kind < params.FromFile &&
		v.Origin("cache-dir").Kind >= params.FromFile && !v.Simulated()
}

// bound warns of a rank that its launcher has bound to fewer processors than its share of the
// machine, and of ranks that were started on fewer processors than there are ranks: what is
// measured may be these processors.
func bound(v *params.Values) []string {
	from := v.Launcher
	may, has := runtime.NumCPU(), host.Root("/").OnlineCPUs()
	if from == nil && may < min(has, v.LocalRanks) {
		return []string{fmt.Sprintf("%d ranks share %s of %d, to which this process is bound: "+
			"what is measured may be the processors", v.LocalRanks,
			units.Plural(int64(may), "processor"), has)}
	}
	if from == nil || v.Simulated() {
		return nil
	}
	cure := map[string]string{
		"Open MPI": "mpirun --bind-to none", "MVAPICH2": "MV2_ENABLE_AFFINITY=0",
		"PALS": "mpiexec --cpu-bind none", "PMI": "mpiexec -bind-to none, or I_MPI_PIN=off",
		"Slurm": "srun --cpu-bind=none, or -c with the cores of a task",
	}[from.Family]
	if cure == "" || may*v.LocalRanks >= has {
		return nil
	}
	return []string{fmt.Sprintf("%s has bound this rank to %s of %d, and %s share them: what is "+
		"measured may be the processors; %s", from.Family, units.Plural(int64(may), "processor"),
		has, units.Plural(int64(v.LocalRanks), "rank"), cure)}
}

// warnings are what a run should know of its surroundings before it starts.
func warnings(v *params.Values) []string {
	var list []string
	if describesNoStorage(v) {
		list = append(list, "-cache-dir was given and -division was not: the quick division is "+
			"small and short, and its numbers describe no storage; add -division open")
	}
	// Allowed, because a model of one's own may want it; odd enough to be said.
	if tp := v.TensorParallel; tp&(tp-1) != 0 {
		list = append(list, fmt.Sprintf("tensor parallel %d is not a power of two: no engine "+
			"runs so", tp))
	}
	if text := v.NotCounted(); text != "" {
		list = append(list, text)
	}
	if long := v.CutTemplates(); len(long) > 0 {
		list = append(list, fmt.Sprintf("contexts of %s are cut to the context window of %s, %d "+
			"tokens", strings.Join(long, ", "), cmp.Or(v.Model.Name, v.Model.Key),
			v.ContextWindow()))
	}
	// The rules of the closed division want it. Elsewhere some hundred KiB of JSON, written after
	// the window, disturb nothing.
	if !v.Simulated() && !v.OnObjects() && v.Division == params.Closed {
		for _, dir := range cacheDirs(v) {
			if host.SameFilesystem(dir, v.ResultsDir) {
				list = append(list, fmt.Sprintf("results (%s) and cache (%s) share a filesystem: "+
					"give -results-dir elsewhere", v.ResultsDir, dir))
			}
		}
	}
	if v.Bench.Checkpoints() && v.Filesystems > 1 {
		list = append(list, fmt.Sprintf("checkpoints are node-local: the ranks work on %d "+
			"filesystems and do not see each other's files", v.Filesystems))
	}
	if p := v.PolicyWithoutMemory(); p != "" {
		list = append(list, fmt.Sprintf("-engine %s keeps entries in memory first (%s), and there "+
			"is none: each is stored at once and loaded whenever it is asked for; give "+
			"-cpu-mem-gb", v.Engine, p))
	}
	if l, is := v.EngineLayout(); is && l.Full != "" {
		list = append(list, fmt.Sprintf("where the tier is full objects are evicted here (-evict "+
			"%s); the engine of %s %s", v.Evict, l.Name, l.Full))
	}
	// Such a bucket is never full, and only full ones are written.
	if l, is := v.EngineLayout(); is && l.Buckets && v.StorageBytes > 0 &&
		v.StorageBytes < tiers.BucketBytes {
		list = append(list, fmt.Sprintf("-storage-capacity-gb is less than a bucket of %s, which "+
			"is %s: the storage may never be written", l.Name,
			units.Bytes.Text(int64(tiers.BucketBytes))))
	}
	list = append(list, bound(v)...)
	list = append(list, bucketWarnings(v)...)
	for _, n := range v.Notes() {
		list = append(list, fmt.Sprintf("%s (line %s of %s) has no effect: %s", n.Key, n.Line,
			v.ConfigFile, n.Why))
	}
	return list
}

// resultPath is where a trial's JSON goes: that of a rank, or of all of them. The points of a sweep
// over an option have directories of their own too.
//
// Ranks that are started together have one such directory, in which the coordinator writes. Of two
// runs that end within a second, as simulated ones do, the second has a number behind its time: a
// result that somebody keeps is never written over.
func resultPath(v *params.Values, name string, trial int, whose string) string {
	// The submission's tree calls options by their numbers.
	if o := v.Bench.Option; o > 0 {
		name = fmt.Sprintf("option_%d", o) + strings.TrimPrefix(name, v.Bench.Name)
	}
	base := filepath.Join(v.ResultsDir, strings.ReplaceAll(name, "/", "_"),
		fmt.Sprintf("trial_%d", trial), whose, time.Now().Format("kvcache_results_20060102_150405"))
	path := base + ".json"
	for n := 2; ; n++ {
		if _, err := os.Lstat(path); err != nil {
			return path
		}
		path = fmt.Sprintf("%s_%d.json", base, n)
	}
}

var errInterrupted = errors.New("interrupted")

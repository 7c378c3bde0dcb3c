package merge

import (
	"reflect"
	"strings"
	"sync"

	"kvbench/kvbench/result"
	"kvbench/kvbench/result/python"
)

// rule is what becomes of a field of the ranks' results.
type rule int

// A sum of nothing but unknown numbers is unknown, and so is a sum of which one is: null is no 0.
const (
	sum   rule = iota + 1 // added up; unknown where one of them is
	most                  // the largest, of those that are known
	least                 // the smallest
	same                  // what all of them say, else absent
	fold                  // each of its fields by its own rule
	list                  // one after the other, without what was there before
	each                  // of one rank alone; absent where there are several
	after                 // made of the others, in derive.go
)

// Why a number is added or not: what a client did in its window (operations, bytes, requests, CPU
// time, waits) is the trial's by addition, and so is what it did per second, because the clients
// run side by side; that is how MLPerf Storage's launcher sums bandwidths and token rates
// (mlpstorage_py/benchmarks/kvcache.py). A peak of memory or an age is that of the worst client. A
// share of a window or of a machine's time is neither, and is absent.

// row are the rules of a structure, by the names of its fields. What is embedded is folded.
type row struct {
	of                                              any
	sum, most, least, same, fold, list, each, after string
}

// table is what becomes of each field. A test holds it complete: a new field of a result is folded
// once its rule is decided. What lies below a field with another rule than fold needs
// no row.
var table = []row{
	{of: result.Result{},
		sum: "RequestsCompleted TotalTokensGenerated TotalStorageIOLatency " +
			"TotalGenerationLatency MultiTurnCacheHits MultiTurnCacheMisses UniqueBytesRead",
		most:  "Count Ranks WindowNS ElapsedNS DrainNS WarmupNS SettleNS",
		least: "Seed Rank",
		same: "SchemaVersion Notice EndedBy Benchmark Name Option Division Trial " +
			"Nonce Digest CompletionUnit NominalWindowNS Model TraceFiles",
		fold: "Summary Workload IO Environment Limits Requests Load Lookups Prompt BlockCache " +
			"FirstReads ReReads FirstToken Harness DeviceWitness Precondition Input " +
			"Simulation Replay PlainIO Removal Objects Network Policy",
		list: "DiffersFromClosed",
		each: "Ceiling CeilingRatio Autoscaler Recording Validation DeviceLatencyTracing " +
			"FioWorkload Clients ClockOffsetNS",
		after: "MergedRanks Status Error StartTime Parameters Tiers EntrySizes Latency " +
			"ContextLoad Errors ErrorSamples Warnings Timeline Histograms Endpoints " +
			"Stalls Checkpoint"},
	{of: python.Summary{},
		sum: "TotalRequests TotalTokens AvgThroughput TotalStorageIOTime StorageThroughput " +
			"RequestsPerSecond",
		most:  "ElapsedTime",
		fold:  "CacheStats PrefixCacheStats MultiTurnStats",
		each:  "AutoscalingStats AutoscalingSummary",
		after: "EndToEndLatency StorageIOLatency GenerationLatency QoSMetrics"},
	// Sizes of tiers are added as well: each client has its own cache.
	{of: python.CacheStats{},
		sum: "CacheHits CacheMisses GPUEntries CPUEntries StorageEntries GPUMemoryUsed " +
			"CPUMemoryUsed OffloadsCPU OffloadsStorage PrefillWrites DecodeReads GPUWritten " +
			"CPUWritten StorageWritten GPURead CPURead StorageRead GPUReadBandwidth " +
			"GPUWriteBandwidth CPUReadBandwidth CPUWriteBandwidth StorageReadBandwidth " +
			"StorageWriteBandwidth SystemPromptHits CommonPhraseHits UserCacheHits " +
			"MultiTurnHits TotalReadBytes TotalWriteBytes TotalReadGiB TotalWriteGiB ReadIOPS " +
			"WriteIOPS StorageTokensProcessed",
		after: "CacheHitRate StorageHealth ReadWriteRatio LatencyMS"},
	{of: python.PrefixCacheStats{},
		sum: "PrefixHits PrefixMisses SystemPromptReuse CommonPhraseReuse BytesSaved"},
	{of: python.MultiTurnStats{}, sum: "CacheHits CacheMisses", after: "HitRate"},

	// Users of a trial are those of all clients. Where it ran is reported as far as all ran alike: a
	// directory that differs, rank_0 and rank_1, is no directory of the trial.
	{of: result.Workload{}, sum: "Users Workers",
		same: "Arrival Turns GenerationMode DecodeReads PrefillRate"},
	{of: result.IO{}, same: "CacheDir Mode Engine EngineAbout EngineReason WriteDevice " +
		"ChunkBytes Depth MaxConcurrentAllocs Pool", after: "Roots"},
	// A device that ranks share has counted the bytes of all of them, for each.
	{of: result.Root{}, sum: "RoomBytes Entries UsedBytes Elsewhere",
		same: "Directory Filesystem Device DeviceReason BlockDevice", fold: "Read Write Mount",
		each: "DeviceReadBytes DeviceWriteBytes DeviceBusyShare"},
	{of: result.RootTraffic{},
		sum:   "Bytes BytesPerSecond Requests RequestNS InFlightNS MeanInFlight",
		after: "MeanRequestNS"},
	{of: result.Environment{},
		same: "Hostname BootID OS Kernel Arch CPUModel Cores CPUGovernor MemoryBytes GoVersion " +
			"Version GOMAXPROCS HugePages HugePagePool Device DeviceReason UTCOffsetS",
		fold: "Filesystem"},
	// What was free is the same for no two of them: the least is what the tightest could count on.
	{of: result.Limits{},
		same: "Cores CoresSource GOMAXPROCS MemoryLimit MemoryLimitSource " +
			"MemoryAvailableSource",
		least: "MemoryAvailable"},
	{of: result.Filesystem{},
		same: "Type MountPoint Source Options SuperOptions InMemory ReadSizeBytes WriteSizeBytes"},

	// Of requests and lookups there are counts, and ratios of them.
	{of: result.RequestTotals{},
		sum: "Completed Failed ContextTokens GeneratedTokens StorageLatencyNS " +
			"GenerationLatencyNS Operations FailedOperations FailedInWindow RetriedOperations " +
			"CancelledOperations",
		most: "OldestCancelledNS", fold: "Time"},
	{of: result.RequestTime{},
		sum: "EndToEnd Queue Context Prefill Decode Room WriteLimit Buffers Pending Data GPUWait " +
			"Compute Generation Lookup Release Rest"},
	{of: result.ClassOutcome{},
		sum:  "Offered OfferedBytes CarriedIn Started Completed Failed InFlight Late Queued",
		most: "OldestQueuedAgeS OldestInFlightAgeS", after: "ServedRatio CensoredRatio Censored"},
	// What a kind of lookups, or of prompts, is of one rank alone is all of that kind.
	{of: result.Lookups{}, sum: "Hits Misses NotYetWritten", fold: "ByKind", after: "HitRate"},
	{of: result.LookupCount{}, sum: "Hits Pending Misses Gone NotYetWritten", after: "HitRate"},
	{of: result.Prompt{}, sum: "Requests RequestsHit", fold: "ByKind", after: "RequestHitRatio"},
	{of: result.PromptTokens{}, sum: "Tokens Found NotYetWritten", after: "HitRatio"},
	// Of how many requests the first block was found is nowhere but in its ratio.
	{of: result.BlockCache{},
		sum: "Requests Blocks Hits Pending Unreachable Written IdealHits Tokens " +
			"HitTokens " +
			"BytesSaved",
		fold: "Reads Writes", each: "PrefixHitRatio",
		after: "HitRatio IdealHitRatio TokenHitRatio"},
	{of: result.BlockMoves{}, sum: "Operations Blocks"},

	// A tier that is unlimited for one client has no capacity for all. Peaks are added although
	// they need not have been at one moment: it is what was taken at most.
	{of: result.Tier{},
		sum:  "CapacityBytes Entries UsedBytes LeavingBytes ClaimedBytes PeakBytes WasteBytes",
		same: "Level Description",
		fold: "Read Write FirstReads ReReads DemotedOut DemotedIn Evicted Deleted"},
	{of: result.TierTraffic{},
		sum: "Operations Bytes EntryBytes EarlierBytes DemotionBytes CutBytes LostBytes " +
			"MemoryBytes BytesPerSecond Cancelled DeviceNS Requests InFlightNS MeanInFlight",
		after: "NSPerMiB"},
	{of: result.EntryCount{}, sum: "Entries Bytes"},
	// Each client has a tier of its own, whose wear is no other's.
	{of: result.Policy{},
		same: "Tier Promote Evict AdmitAfter BehindBytes",
		fold: "Copied Promoted Dropped Refused Unwritten Compared", most: "MostBehind",
		each: "DriveWritesPerDay"},
	{of: result.Comparison{}, sum: "Lookups Hits WaterfallHits"},
	{of: result.ReadCount{}, sum: "Operations Bytes"},
	{of: result.ReadKind{}, after: "Latency"},
	// The lengths that were loaded, and where loading them begins to pay, are each rank's: how many
	// tokens a class had stands nowhere.
	{of: result.FoundParts{}, sum: "Requests Tokens Bytes LoadNS SavedNS Worth WorthTokens LostNS",
		after: "WorthRatio WorthTokenRatio LoadBytesPerS NeededBytesPerS"},
	{of: result.FoundAbove{}, sum: "Requests Tokens"},
	{of: result.FirstToken{}, sum: "Requests", same: "Prefill", fold: "Sums Found FoundAbove",
		each:  "GPUBusyShare Loading BreakEven",
		after: "TTFT ByClass Load GPUWait Compute SavedRatio ComputeSavedRatio"},
	{of: result.FirstTokenTime{}, sum: "TTFT Queue Load LoadWaits GPUWait Compute Overlap " +
		"ComputeAll"},

	// Ranks are processes: what measuring cost is that of all of them, and the memory is that of
	// the largest, which has to fit next to the others. A ladder was climbed by one alone, and what
	// bounded the trial is known where it bounded all of them.
	{of: result.Harness{},
		sum: "CPUSeconds CPUNS Mallocs AllocBytes GCCount GCPauseNS VolCtxSw InvolCtxSw " +
			"WorkerIdleNS WorkerBusyNS BufferWaitNS HostNS LockWaitNS SchedWaitNS GCAssistNS",
		most: "PeakRSSBytes", fold: "Busy Verdict", each: "Ladder", after: "CPUNSPerByte"},
	{of: result.BusyTime{},
		sum: "StorageNS OtherTiersNS HandoverNS EngineNS ClearingNS RemovalNS RoomNS " +
			"WriteLimitNS WriterNS BuffersNS GenerationNS HostNS DispatchNS ThinkingNS"},
	{of: result.Verdict{}, sum: "InFlight", same: "Kind Bound",
		each: "IdleShare CPUShare HostWaitShare HarnessShare Reason"},
	// Ranks that share a device have each counted the bytes of all of them: see derive.go.
	// Where they do not, each rank's ratio is that of its own device, and theirs together is that
	// of the sums.
	{of: result.Witness{},
		sum: "ReadBytes WriteBytes ReadIOs WriteIOs DiscardIOs DiscardBytes DiscardNS FlushIOs " +
			"FlushNS QueueNS AppReadBytes AppWriteBytes",
		same: "Device Reason", each: "BusyShare", after: "ReadRatio WriteRatio ServedFromCache"},

	// What only some runs have. An input is replayed by each rank; it was replayed as often as the
	// slowest of them did.
	{of: result.Precondition{}, sum: "Bytes Writers", most: "DurationNS",
		each: "LastRates Spread"},
	{of: result.Input{}, least: "Cycles",
		sum:  "Rows Failed Malformed Skipped TotalRows Sessions LiveSessions",
		same: "Tokenizer", list: "Problems"},
	{of: result.Simulation{}, sum: "TraceRows Outstanding QueueGrowth", most: "WallNS",
		same: "Notice Device", each: "DeviceBusyShare SustainedUsers"},
	{of: result.Replay{},
		sum: "Rows Skipped Reads Writes Deletes EvictedReads UnwrittenReads UnknownDeletes " +
			"Overwrites TooLarge Evictions",
		most: "LateNS"},
	{of: result.PlainIO{}, sum: "FootprintBytes RequestsPerSecond", same: "FileBytes BlockBytes",
		each: "Ladder Knee", after: "CPUNSPerRequest"},
	{of: result.Removal{}, sum: "Files Bytes FilesPerSecond BytesPerSecond",
		most: "UnlinkNS QuietNS"},

	// The bytes of a checkpoint are those of all clients together, its time that of the slowest.
	{of: result.Checkpoint{}, most: "FlushNS GapNS TotalNS", fold: "Stages", each: "First Count",
		same:  "Model Scale Accelerators Mode Zero Tensor Pipeline Data Files Bytes Flush Notes",
		after: "Writes Reads FlushP95NS FlushMaxNS RecoveryNS Rules"},
	{of: result.CheckpointRun{}, sum: "Bytes CachedBytes VerifiedBytes",
		most: "DurationNS FlushNS", least: "MinNS", same: "Index",
		after: "Start Slowest DeviceBytes Cold"},
	{of: result.Pipeline{}, sum: "Producers Writers Chunks GenerationNS",
		most: "GenerationWallNS IONS CloseNS", same: "ChunkBytes Buffers",
		after: "ProducerWaitNS WriterWaitNS TotalNS GenerationRate Ratio Overhead Bottleneck"},

	// Ranks share a store, and each has counted its own requests. Endpoints are put together by
	// their addresses; what was in flight at one of them at most is added as peaks of tiers are.
	// Connections belong to a process, so that what the kernel says of them is added, too; the
	// shortest round trip is that of the way, whichever rank has measured it.
	{of: result.Objects{}, sum: "Status Retries BackoffNS Lost WastedBytes", most: "ProofNS",
		same: "Store Server", fold: "Operations Outside", after: "FirstByte"},
	{of: result.ObjectCounts{}, sum: "Requests Attempts Failed Cancelled Unsent Bytes"},
	{of: result.ObjectOperation{}, after: "Latency"},
	{of: result.Endpoint{}, same: "URL",
		sum: "Requests Attempts Failed BytesRead BytesWritten Retries MaxInFlight"},
	{of: result.Network{}, sum: "ReceivedBytes AckedBytes Retransmits", least: "MinRTTNS",
		after: "ReadRatio"},
}

// named are the rules of a row with the fields that they are of.
func (r row) named() map[rule]string {
	return map[rule]string{sum: r.sum, most: r.most, least: r.least, same: r.same, fold: r.fold,
		list: r.list, each: r.each, after: r.after}
}

// rules is the table by structure and field.
var rules = sync.OnceValue(func() map[reflect.Type]map[string]rule {
	all := map[reflect.Type]map[string]rule{}
	for _, r := range table {
		of := map[string]rule{}
		for rule, fields := range r.named() {
			for field := range strings.FieldsSeq(fields) {
				of[field] = rule
			}
		}
		all[reflect.TypeOf(r.of)] = of
	}
	return all
})

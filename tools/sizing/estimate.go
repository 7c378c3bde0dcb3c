package sizing

import (
	"cmp"
	"fmt"
	"math"

	"kvbench/kvbench/params"
	"kvbench/tiers/buffer"
	"kvbench/tracing/host"
)

// SchemaVersion of the JSON. Readers accept any 1.x.
const SchemaVersion = "1.0"

// Need has the needs of a run. Numbers that are unknown before the run are null.
type Need struct {
	SchemaVersion string  `json:"schema_version"`
	Benchmark     string  `json:"benchmark"`
	Division      string  `json:"division"`
	Model         string  `json:"model"`
	BytesPerToken int64   `json:"rank_bytes_per_token"` // of one rank, tensor parallelism included
	Users         int     `json:"users"`                // 0: requests come from a trace
	WindowS       float64 `json:"window_s"`             // 0: bounded by a count
	Ranks         int     `json:"local_ranks"`          // clients on one host

	Memory      params.Memory `json:"memory"` // of one rank
	MemoryBytes int64         `json:"memory_bytes"`

	// Note says which bytes the bytes per token leave out or add.
	Note string `json:"note,omitempty"`

	perToken string // which layers keep the bytes of a token

	LargestEntry Entry    `json:"largest_entry"`
	largest      string   // a description of LargestEntry
	MeanEntry    *Entry   `json:"mean_entry"`
	RequestRate  *float64 `json:"requests_per_s"` // the largest offered rate
	WriteRate    *float64 `json:"write_bytes_per_s"`

	Disk    Disk  `json:"disk"` // of one rank
	Results int64 `json:"results_bytes"`
}

// Entry is one cached object.
type Entry struct {
	Tokens int   `json:"tokens"`
	Bytes  int64 `json:"bytes"`
}

// Disk is the space that one rank needs on the storage tier's filesystem.
type Disk struct {
	Minimum int64 `json:"minimum_bytes"` // with less, the run ends with an error
	// The entries of the live conversations. With less, history is evicted before it is read.
	WorkingSet *int64 `json:"working_set_bytes"`
	// The bytes written in the window. With so much, nothing is evicted.
	Everything *int64 `json:"everything_bytes"`
	// By -storage-capacity-gb; null if the run takes it from the free space.
	Capacity *int64 `json:"capacity_bytes"`
	// The bytes that -precondition writes before the window.
	Written *int64 `json:"precondition_bytes"`
}

// resultBytes is an upper bound of the size of a trial's result file and summary.
const resultBytes = 1 << 20

// Estimate computes the needs of a run. writeRate limits the bytes/s that the storage accepts; 0 = no
// limit. machine gives only the processors and the available memory.
func Estimate(v *params.Values, writeRate float64, machine host.Limits) Need {
	buffers := buffer.Use{Workers: v.WorkerCount(), MaxWriters: v.MaxConcurrentAllocs,
		Depth: v.Depth(), Chunk: int(v.ChunkSize),
		Most: params.MostBuffers(v.LocalRanks, machine)}
	n := Need{
		SchemaVersion: SchemaVersion, Benchmark: v.Bench.Name, Division: string(v.Division),
		Model:         v.ModelName,
		BytesPerToken: v.Sizer().Bytes(1), WindowS: v.Window.Length.Seconds(), Ranks: v.LocalRanks,
		Memory:  params.EstimateMemory(buffers.Bytes(), v.CPUBytes, machine.GOMAXPROCS),
		Results: int64(v.Count) * int64(v.Ranks) * resultBytes,
	}
	n.MemoryBytes = n.Memory.Total()
	if v.StorageBytes > 0 {
		n.Disk.Capacity = new(v.StorageBytes)
	}
	if written := cmp.Or(v.PreconditionBytes, 2*v.StorageBytes); v.Precondition && written > 0 {
		n.Disk.Written = &written
	}
	// A run ends with an error if a tier cannot hold its largest entry.
	tokens, bytes := v.LargestEntry()
	n.LargestEntry = Entry{tokens, bytes}
	n.Disk.Minimum = bytes
	n.largest = largestIs(v, tokens)
	n.Note = v.NotCounted()
	n.perToken = fmt.Sprintf("%s: %s", v.Model.Attention, v.Model.Arithmetic())
	if alone := v.Model.BytesPerToken(); v.Paged() && v.Model.StateBytes > 0 {
		n.Note = fmt.Sprintf("pages of all groups of layers, states included, as -layout %s keeps "+
			"them; without states a token has %d B on all ranks", v.Layout, alone)
	}
	if v.Bench.Load == params.LoadUsers {
		n.Users = v.Users
		n.users(v, writeRate)
	}
	return n
}

// largestIs describes the largest entry.
func largestIs(v *params.Values, tokens int) string {
	switch {
	case v.CutTokens() > 0:
		return fmt.Sprintf("an object of %d tokens", tokens)
	case v.Bench.Load == params.LoadUsers:
		return fmt.Sprintf("the largest entry, %d tokens", tokens)
	case !v.Bench.Blocks():
		return fmt.Sprintf("an entry of %d tokens; the largest of the trace is known when it is "+
			"read", tokens)
	case v.BlockTracePath == "":
		return fmt.Sprintf("a block of %d tokens, as Mooncake's traces have; give "+
			"-block-trace-path for another trace", tokens)
	}
	return fmt.Sprintf("a block of %d tokens, the trace's largest", tokens)
}

// users computes the needs of the users that the run would draw.
func (n *Need) users(v *params.Values, writeRate float64) {
	if v.DecodeOnly {
		entries, tokens := v.DecodePopulation() // written before the window
		n.Disk.Minimum = int64(entries) * v.Sizer().Bytes(tokens)
		n.Disk.WorkingSet, n.Disk.Everything = new(n.Disk.Minimum), new(n.Disk.Minimum)
		n.MeanEntry = &Entry{n.LargestEntry.Tokens, n.LargestEntry.Bytes}
		return
	}
	load := v.Offered()
	size := func(tokens float64) int64 { return int64(tokens * float64(n.BytesPerToken)) }
	n.RequestRate, n.WriteRate = &load.Requests, &load.Bytes
	n.MeanEntry = &Entry{int(math.Round(load.MeanTokens)), size(load.MeanTokens)}
	n.Disk.WorkingSet = new(max(size(load.LiveTokens), n.Disk.Minimum))
	n.Disk.Everything = new(max(v.Written(load, writeRate), n.Disk.Minimum))
}

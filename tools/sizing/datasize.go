package sizing

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"text/tabwriter"

	"kvbench/kvbench/params"
	"kvbench/kvbench/units"
	"kvbench/tiers/buffer"
	"kvbench/tiers/workdir"
	"kvbench/tracing/host"
)

// machine returns facts of the machine; tests replace it.
type machine struct {
	limits     func() host.Limits
	filesystem func(dir string) (host.Filesystem, error)
}

// Question has the parameters of a future run.
type Question struct {
	machine machine
	set     *params.Set
	bench   *string
	window  *string
	count   *string
	rate    *float64
}

// NewQuestion adds the flags to a flag set. The default division is open: window, sizes and users of the
// quick division are too small to plan with.
func NewQuestion(fs *flag.FlagSet) *Question {
	q := &Question{
		machine: machine{host.ReadLimits, host.FilesystemOf}, set: params.Register(fs),
		bench: fs.String("bench", "Synthetic", ""), window: fs.String("benchtime", "", ""),
		count: fs.String("count", "", ""), rate: fs.Float64("write-gbps", 0, ""),
	}
	_ = fs.Set("division", string(params.Open)) // cannot fail
	return q
}

// Answer has the needs of the run and the resources of this machine. It is encoded as JSON.
type Answer struct {
	Need
	Machine available `json:"this_machine"`
}

// Fits reports whether this machine meets the needs that could be checked.
func (a Answer) Fits() bool { return len(a.Machine.Refusals) == 0 }

// Answer resolves the parameters and computes the needs. rest are arguments after the flags, which are
// an error. Several mistakes in parameters are one error that unwraps to all.
func (q *Question) Answer(rest []string) (a Answer, err error) {
	b, known := params.Benchmark(strings.TrimPrefix(*q.bench, "Benchmark"))
	switch {
	case len(rest) > 0:
		return a, fmt.Errorf("unexpected %q: parameters are flags, for example -num-users 70",
			rest[0])
	case !known:
		var names []string
		for _, b := range params.Benchmarks() {
			names = append(names, b.Name)
		}
		return a, fmt.Errorf("-bench: must be one of %s, given %s", strings.Join(names, ", "),
			*q.bench)
	case !(*q.rate >= 0) || math.IsInf(*q.rate, 0):
		return a, fmt.Errorf("-write-gbps: must not be negative, given %g", *q.rate)
	}
	base, err := os.Getwd()
	if err != nil {
		return a, err
	}
	v, err := q.set.Resolve(params.Inputs{Bench: b, Base: base, BenchTime: *q.window,
		Count: *q.count, CheckCacheDir: workdir.CheckPath})
	if err != nil {
		return a, err
	}
	a.Need = Estimate(v, *q.rate*(1<<30), q.machine.limits())
	a.Machine, err = q.machine.available(v.CacheDir(), a.Need)
	return a, err
}

// available has this machine's resources.
type available struct {
	MemoryBytes  int64    `json:"memory_bytes"` // 0 = unknown
	MemorySource string   `json:"memory_source"`
	Directory    string   `json:"directory,omitempty"`
	Filesystem   string   `json:"filesystem,omitempty"`
	FreeBytes    *int64   `json:"free_bytes"` // null without -cache-dir
	Refusals     []string `json:"does_not_fit"`
}

// available compares this machine's resources with the needs of all ranks of this host. Without a
// directory it returns only the memory and refuses nothing.
func (h machine) available(dir string, n Need) (available, error) {
	a := available{Refusals: []string{}}
	a.MemoryBytes, a.MemorySource = h.limits().Available()
	if dir == "" {
		return a, nil
	}
	fs, err := h.filesystem(dir)
	if err != nil {
		return a, err
	}
	a.Directory, a.Filesystem, a.FreeBytes = dir, fs.Type, &fs.Free
	ranks := int64(n.Ranks)
	// The ranks of one host share its memory and, by default, its disk.
	if need := n.MemoryBytes * ranks; a.MemoryBytes > 0 && need > a.MemoryBytes {
		a.Refusals = append(a.Refusals, fmt.Sprintf("memory: %s needed for %s, %s "+
			"available according to %s", size(need), units.Plural(ranks, "rank"),
			size(a.MemoryBytes), a.MemorySource))
	}
	if need := n.Disk.Minimum * ranks; need > fs.Free {
		a.Refusals = append(a.Refusals, fmt.Sprintf("disk: %s needed at least for %s, %s "+
			"free in %s", size(need), units.Plural(ranks, "rank"), size(fs.Free), dir))
	}
	return a, nil
}

// Text is the answer as a table.
func (answer Answer) Text() string {
	n, a := answer.Need, answer.Machine
	// The first column is empty in continuation lines.
	var text strings.Builder
	tab := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(tab, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	all := func(format string, each int64) string { // for all ranks, if there are several
		if n.Ranks <= 1 {
			return ""
		}
		return fmt.Sprintf(format, n.Ranks, size(each*int64(n.Ranks)))
	}
	if n.RequestRate != nil {
		line("recommended", "-storage-capacity-gb %.0f, the working set: with less, entries are "+
			"evicted before they are read again", math.Ceil(float64(*n.Disk.WorkingSet)/(1<<30)))
	}
	line("run", "%s, division %s, %s, %d B per token", n.Benchmark, n.Division, n.Model,
		n.BytesPerToken)
	line("", "all ranks keep of a token %s", n.perToken)
	if n.Note != "" {
		line("", "%s", n.Note)
	}
	if n.RequestRate != nil {
		line("load", "%d users offer at most %.1f requests/s and %s/s to write, in entries of %d "+
			"tokens (%s) on average", n.Users, *n.RequestRate,
			size(int64(*n.WriteRate)), n.MeanEntry.Tokens, size(n.MeanEntry.Bytes))
	}
	line("memory", "%s%s", size(n.MemoryBytes), all(" (%d ranks on this host: %s)", n.MemoryBytes))
	line("", "%s buffers, %s cpu tier, %s harness", size(n.Memory.Pool), size(n.Memory.CPUTier),
		size(n.Memory.Harness))
	disk := func(name string, v *int64, what string) {
		if v != nil {
			line(name, "%s%s\t%s", size(*v), all(" (× %d ranks: %s)", *v), what)
		}
	}
	what := n.largest
	if n.Users > 0 && n.RequestRate == nil {
		what = "the entries that decode-only reads"
	}
	disk("disk minimum", &n.Disk.Minimum, what)
	if n.RequestRate != nil {
		disk("disk working set", n.Disk.WorkingSet, "the entries of all live conversations")
		window := ""
		if n.WindowS > 0 {
			window = fmt.Sprintf(" of %g s", n.WindowS)
		}
		disk("disk everything", n.Disk.Everything,
			"what is written in the window"+window+": nothing is evicted")
	}
	disk("disk given", n.Disk.Capacity, "-storage-capacity-gb")
	disk("preconditioning", n.Disk.Written,
		"written through the drive before the window, within the tier's capacity")
	line("results", "%s", size(n.Results))
	if a.MemoryBytes > 0 {
		line("this machine", "%s memory available (%s)", size(a.MemoryBytes), a.MemorySource)
	}
	if a.FreeBytes != nil {
		line("", "%s free in %s (%s)", size(*a.FreeBytes), a.Directory, a.Filesystem)
	}
	for _, r := range a.Refusals {
		line("does not fit", "%s", r)
	}
	_ = tab.Flush() // into memory
	return text.String()
}

var size = units.Bytes.Text

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

package sizing

import (
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"text/tabwriter"

	"kvbench/kvbench/params"
	"kvbench/kvbench/units"
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

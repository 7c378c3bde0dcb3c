package sizing

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"text/tabwriter"

	"kvbench/kvbench/params"
	"kvbench/tiers/workdir"
	"kvbench/tools/command"
	"kvbench/tracing/host"
)

// Datasize is kvreport datasize.
var Datasize = command.Command{
	Name:  "datasize",
	Args:  "[-bench NAME] [any parameter of the benchmarks] [-write-gbps N] [-json]",
	Short: "memory and disk that a run will need",
	Long: `
Takes the parameters of the benchmarks (go test ./benchmarks -args -help-parameters lists them; -division is open here unless
it is given, and -bench defaults to Synthetic) and tells what one rank needs: memory for buffers, cpu tier and harness, and
disk for the storage tier, by what is wanted of it:
  minimum       the largest entry that a user can ask for (decode-only: the entries that it reads); below it the run is refused
  working set   the entries of all live conversations; with less, history is evicted before it is read
  everything    what the users offer to write in the window; with as much, nothing is ever evicted
The users are those that the run would draw from its seed. Open-loop users do not wait, so that what they offer does not
depend on the storage; what is written does: -write-gbps bounds it by what the storage takes, in GiB/s. Closed-loop users
offer at most as much. With -cache-dir the free space of that directory stands beside the needs, and the exit code is 1
when the memory or the minimum does not fit.`,
	Example: `
go tool kvreport datasize -model llama3.1-70b-instruct -num-users 70
go tool kvreport datasize -bench MaxStorageStress -division closed -cache-dir /mnt/kv -write-gbps 3
go tool kvreport datasize -bench DecodeOnly -num-users 16 -local-ranks 8 -ranks 8 -json`,
	Run: datasize,
}

// machine answers what depends on the machine; tests replace it.
type machine struct {
	limits     func() host.Limits
	filesystem func(dir string) (host.Filesystem, error)
	base       func() (string, error)
}

func datasize(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	return machine{host.ReadLimits, host.FilesystemOf, os.Getwd}.run(args, stdout, stderr)
}

func (h machine) run(args []string, stdout, stderr io.Writer) int {
	fs := command.Flags("datasize")
	set := params.Register(fs)
	bench := fs.String("bench", "Synthetic", "")
	window := fs.String("benchtime", "", "")
	count := fs.Int("count", 0, "")
	rate := fs.Float64("write-gbps", 0, "")
	asJSON := fs.Bool("json", false, "")
	// A duration, sizes and users of the quick division would answer a question that nobody asks.
	rest, err := command.Parse(fs, append([]string{"-division=open"}, args...))
	b, known := params.Benchmark(strings.TrimPrefix(*bench, "Benchmark"))
	switch {
	case err != nil:
	case len(rest) > 0:
		err = fmt.Errorf("unexpected %q: parameters are flags, for example -num-users 70", rest[0])
	case !known:
		var names []string
		for _, b := range params.Benchmarks() {
			names = append(names, b.Name)
		}
		err = fmt.Errorf("-bench: must be one of %s, given %s", strings.Join(names, ", "), *bench)
	case !(*rate >= 0) || math.IsInf(*rate, 0):
		err = fmt.Errorf("-write-gbps: must not be negative, given %g", *rate)
	}
	var base string
	if err == nil {
		base, err = h.base()
	}
	if err != nil {
		return command.Fail(stderr, "datasize", err)
	}
	v, err := set.Resolve(params.Inputs{Bench: b, Base: base, BenchTime: *window, Count: *count, CheckCacheDir: workdir.CheckPath})
	var bad params.Violations
	if errors.As(err, &bad) {
		for _, violation := range bad {
			fmt.Fprintf(stderr, "kvreport datasize: %v\n", violation)
		}
		return command.Usage
	} else if err != nil {
		return command.Fail(stderr, "datasize", err)
	}
	n := Estimate(v, *rate*(1<<30))
	a, err := h.available(v)
	if err != nil {
		return command.Fail(stderr, "datasize", err)
	}
	a.judge(n)
	if *asJSON {
		err = writeJSON(stdout, n, a)
	} else {
		err = writeText(stdout, n, a)
	}
	if err != nil {
		return command.Fail(stderr, "datasize", err)
	}
	if len(a.Refusals) > 0 {
		return command.No
	}
	return command.Done
}

// available is what this machine has.
type available struct {
	MemoryBytes  int64    `json:"memory_bytes"` // 0 = unknown
	MemorySource string   `json:"memory_source"`
	Directory    string   `json:"directory,omitempty"`
	Filesystem   string   `json:"filesystem,omitempty"`
	FreeBytes    *int64   `json:"free_bytes"` // null without -cache-dir
	Refusals     []string `json:"does_not_fit"`
}

func (h machine) available(v *params.Values) (available, error) {
	a := available{Refusals: []string{}}
	a.MemoryBytes, a.MemorySource = h.limits().Available()
	if v.CacheDir == "" {
		return a, nil
	}
	fs, err := h.filesystem(v.CacheDir)
	if err != nil {
		return a, err
	}
	a.Directory, a.Filesystem, a.FreeBytes = v.CacheDir, fs.Type, new(fs.Free)
	return a, nil
}

// judge compares, for all ranks of this host. Without a directory nothing is asked of this machine.
func (a *available) judge(n Need) {
	if a.FreeBytes == nil {
		return
	}
	ranks := int64(n.Ranks)
	if need := n.MemoryBytes * ranks; a.MemoryBytes > 0 && need > a.MemoryBytes {
		a.Refusals = append(a.Refusals, fmt.Sprintf("memory: %s needed for %d rank(s), %s available according to %s", size(need), ranks, size(a.MemoryBytes), a.MemorySource))
	}
	if need := n.Disk.Minimum * ranks; need > *a.FreeBytes {
		a.Refusals = append(a.Refusals, fmt.Sprintf("disk: %s needed at least for %d rank(s), %s free in %s", size(need), ranks, size(*a.FreeBytes), a.Directory))
	}
}

func writeJSON(w io.Writer, n Need, a available) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(struct {
		Need
		Machine available `json:"this_machine"`
	}{n, a})
}

func writeText(w io.Writer, n Need, a available) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(tab, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	each := ""
	if n.Ranks > 1 {
		each = fmt.Sprintf(" (%d ranks on this host: %s)", n.Ranks, size(n.MemoryBytes*int64(n.Ranks)))
	}
	line("run", "%s, division %s, %s, %d B per token", n.Benchmark, n.Division, n.Model, n.BytesPerToken)
	if n.Users > 0 && n.RequestRate != nil {
		line("load", "%d users offer at most %.1f requests/s and %s/s to write, in entries of %d tokens (%s) on average", n.Users, *n.RequestRate,
			size(int64(*n.WriteRate)), n.MeanEntry.Tokens, size(n.MeanEntry.Bytes))
	}
	line("memory", "%s%s", size(n.MemoryBytes), each)
	line("", "%s buffers, %s cpu tier, %s harness", size(n.Memory.Pool), size(n.Memory.CPUTier), size(n.Memory.Harness))
	disk := func(name string, v *int64, what string) {
		if v == nil {
			return
		}
		text := size(*v)
		if n.Ranks > 1 {
			text += fmt.Sprintf(" (× %d ranks: %s)", n.Ranks, size(*v*int64(n.Ranks)))
		}
		line(name, "%s\t%s", text, what)
	}
	what := fmt.Sprintf("the largest entry, %d tokens", n.LargestEntry.Tokens)
	if n.Disk.Everything != nil && *n.Disk.Everything == n.Disk.Minimum && n.MeanEntry != nil && n.RequestRate == nil {
		what = "the entries that decode-only reads"
	}
	if n.Users == 0 {
		what = fmt.Sprintf("an entry of %d tokens; the largest of the trace is known when it is read", n.LargestEntry.Tokens)
	}
	disk("disk minimum", &n.Disk.Minimum, what)
	if n.RequestRate != nil {
		disk("disk working set", n.Disk.WorkingSet, "the entries of all live conversations")
		disk("disk everything", n.Disk.Everything, "what is written in the window: nothing is evicted")
	}
	disk("disk given", n.Disk.Capacity, "-storage-capacity-gb")
	disk("preconditioning", n.Disk.Written, "written through the drive before the window, within the tier's capacity")
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
	return tab.Flush()
}

func size(n int64) string {
	switch {
	case n >= 1<<40:
		return fmt.Sprintf("%.2f TiB", float64(n)/(1<<40))
	case n >= 1<<30:
		return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d B", n)
}

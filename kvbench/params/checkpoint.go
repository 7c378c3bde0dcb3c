package params

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"kvbench/kvbench/units"
	"kvbench/tracing/host"
	"kvbench/workloads/checkpoint"
)

// autoRange is how many chunks of a stretch are in flight when it is read.
const autoRange = 4

// otherHost is a shift by the accelerators of a host: each reads what another host has written.
const otherHost = automatic

// CheckpointShift returns the shift of the readers in accelerators.
func (v *Values) CheckpointShift(s checkpoint.Spec) int {
	if v.Checkpoint.Shift == otherHost {
		_, count := v.CheckpointShare(s)
		return count * max(1, v.LocalRanks) % s.Accelerators
	}
	return v.Checkpoint.Shift
}

// CheckpointShare returns the accelerators of this client: the number of the first one, and their count.
func (v *Values) CheckpointShare(s checkpoint.Spec) (first, count int) {
	count = s.Accelerators / max(1, v.Ranks)
	return v.Rank * count, count
}

// StreamProducers returns how many threads generate content in this process.
func (v *Values) StreamProducers() int {
	if v.Stream.Producers == automatic {
		cores, _ := host.Procs(runtime.NumCPU())
		return max(1, cores/max(1, v.LocalRanks))
	}
	return v.Stream.Producers
}

// StreamRange is how many bytes of a stretch are in flight when it is read, or what a request for a
// part of an object has.
func (v *Values) StreamRange() int64 {
	return cmp.Or(v.Stream.Range, autoRange*v.Stream.Chunk)
}

// StreamDepth is how many chunks of a file are in flight when it is read, or requests for an
// object, each of which comes in one buffer.
func (v *Values) StreamDepth() int {
	if v.OnObjects() {
		return v.Stream.Readers
	}
	return v.Stream.Readers * int(max(1, v.StreamRange()/v.Stream.Chunk))
}

// CheckpointSpec returns the checkpoint that the parameters describe.
func (v *Values) CheckpointSpec() (checkpoint.Spec, error) {
	if v.Bench.Name == streamBench {
		return checkpoint.NewStream(v.Stream.Bytes)
	}
	m, err := checkpoint.Find(v.Checkpoint.Model)
	if err != nil {
		return checkpoint.Spec{}, err
	}
	return checkpoint.New(m, v.Checkpoint.Accelerators, v.Checkpoint.Scale)
}

// CheckpointRuns returns how many checkpoints are written and read, and the time after which no more
// start; 0 = no limit. A count in -benchtime replaces both numbers, except a number that is 0.
func (v *Values) CheckpointRuns() (writes, reads int, within time.Duration) {
	writes, reads = v.Checkpoint.Writes, v.Checkpoint.Reads
	if !v.Changed("benchtime") || v.Division == Closed { // where it is the length of the options
		return writes, reads, 0
	}
	if n := int(v.Window.Completions); n > 0 {
		return min(n, writes*n), min(n, reads*n), 0
	}
	return writes, reads, v.Window.Length
}

// accelerators has the memory in bytes of each accelerator type. H100 and A100 are not types of the
// closed division.
var accelerators = map[string]int64{"b200": 180e9, "mi355": 288e9, "h100": 80e9, "a100": 80e9}

// AcceleratorMemory is the memory of the type in bytes, 0 without a type.
func (v *Values) AcceleratorMemory() int64 { return accelerators[v.Checkpoint.AcceleratorType] }

// parseCheckpointModel reads both names of a model, and keeps the short one.
func parseCheckpointModel(s string) (string, error) {
	m, err := checkpoint.Find(s)
	if err == nil {
		return m.Key, nil
	}
	var keys []string
	for _, m := range checkpoint.Models() {
		keys = append(keys, m.Key)
	}
	_, err = oneOf(keys...).parse(s)
	return "", err
}

// parseScale reads a part of one: 1, or 1/N.
func parseScale(s string) (int64, error) {
	n, part := strings.CutPrefix(s, "1/")
	x, err := strconv.ParseInt(n, 10, 64)
	if err != nil || x < 1 || x > checkpoint.MaxScale || !part && x != 1 {
		return 0, fmt.Errorf("1 or 1/N with N in 1…%d", checkpoint.MaxScale)
	}
	return x, nil
}

func formatScale(x int64) string {
	if x == 1 {
		return "1"
	}
	return "1/" + strconv.FormatInt(x, 10)
}

// The limits of S3: the smallest part of an object but the last, and how many it may have.
const (
	smallestPart = 5 * units.MiB
	mostParts    = 10_000
)

// checkpointObjects checks the parameters of checkpoints on an object store, where a chunk is a part.
func (r *resolver) checkpointObjects(spec checkpoint.Spec) {
	v := r.v
	if !v.OnObjects() || v.refused["cache-dir"] {
		return
	}
	largest := int64(0)
	for a := range spec.Accelerators {
		for _, f := range spec.Files(a) {
			largest = max(largest, f.Bytes)
		}
	}
	least := max(smallestPart, (largest+mostParts-1)/mostParts)
	r.want(v.Stream.Chunk >= least, "stream-chunk", "at least %s with -cache-dir s3://…: it is a "+
		"part of an object, which has %d at most", units.Bytes.Text(least), mostParts)
}

// checkpoint applies the rules between the parameters of checkpoints.
func (r *resolver) checkpoint() {
	v := r.v
	other := func(name string) bool {
		return name == "ranks" || strings.HasPrefix(name, "checkpoint-") ||
			strings.HasPrefix(name, "stream-")
	}
	if !v.Bench.Checkpoints() || v.Skip() != "" || slices.ContainsFunc(slices.Collect(maps.Keys(v.refused)), other) {
		return
	}
	c, s := &v.Checkpoint, &v.Stream
	spec, err := v.CheckpointSpec()
	if err != nil {
		r.refuse("checkpoint-accelerators", "as many as the model can have (%v)", err)
		return
	}
	r.checkpointObjects(spec)
	whole := spec.Model.Accelerators()
	r.want(v.Division != Closed || spec.Accelerators == whole, "checkpoint-accelerators",
		"0 or %d, which is as many as %s has, in the closed division", whole, spec.Name)
	writes, reads, _ := v.CheckpointRuns()
	if spec.Stream == 0 {
		// Checkpoints of several ranks are one only if they begin together, and lie in one directory.
		r.want(v.Ranks <= 1 || v.starts || v.meets || r.in.Agent != nil, "ranks", "of clients that "+
			"know each other with Checkpoint, which begin together: not with -rendezvous none, "+
			"nor with -rank and no -rendezvous")
		r.want(spec.Accelerators%v.Ranks == 0, "ranks", "a divisor of %d, the number of "+
			"accelerators, which are shared out evenly", spec.Accelerators)
		r.want(c.Shift < spec.Accelerators, "checkpoint-shift", "less than %d, the number of "+
			"accelerators", spec.Accelerators)
	}
	r.want(c.Keep == 0 || c.Keep >= reads, "checkpoint-keep",
		"at least %d, as many as -checkpoint-reads, or 0", reads)
	r.want(writes == 0 || reads <= writes, "checkpoint-reads",
		"at most %d, as many as -checkpoint-writes", writes)
	if !v.guessed {
		r.hosts()
	}
	each := v.StreamDepth() / s.Readers
	r.want(v.StreamDepth() <= s.Buffers, "stream-readers", "at most %d: each has %d of %d "+
		"-stream-buffers", s.Buffers/each, each, s.Buffers)
	_, bytes := spec.Totals()
	memory := v.AcceleratorMemory() * int64(spec.Accelerators)
	r.want(memory == 0 || memory >= bytes, "checkpoint-accelerator-type",
		"one of which %d hold the checkpoint, %s: these hold %s", spec.Accelerators,
		units.Bytes.Text(bytes), units.Bytes.Text(memory))
}

// closedPerHost is less than the accelerators of a host in the closed division (MLPerf Storage rules,
// "Checkpointing"). Results report which of these rules a run kept: see Facts of kvbench/checkpoint.
const closedPerHost = 4

// Meet sets how many ranks are on this host, once they have met. Where that was not known before,
// the violations are about it, and the machine has to be looked at again: news.
func (v *Values) Meet(local int) (news bool, bad Violations) {
	if !v.guessed || local < 1 {
		return false, nil
	}
	v.LocalRanks, v.guessed = local, false
	r := &resolver{v: v}
	r.hosts()
	return true, r.bad
}

// hosts applies the rules about how the ranks of checkpoints are spread over hosts.
func (r *resolver) hosts() {
	v := r.v
	spec, err := v.CheckpointSpec()
	if !v.Bench.Checkpoints() || err != nil {
		return
	}
	shifts := v.Checkpoint.Shift == otherHost
	r.want(!shifts || v.LocalRanks < v.Ranks, "checkpoint-shift", "a number where all ranks are "+
		"on one host, as far as is known (-local-ranks): there is no other whose files could be "+
		"read")
	r.want(!shifts || v.Ranks%v.LocalRanks == 0, "checkpoint-shift",
		"a number where hosts have different numbers of ranks")
	_, count := v.CheckpointShare(spec)
	count *= max(1, v.LocalRanks)
	r.want(v.Division != Closed || count > closedPerHost ||
		spec.Accelerators != spec.Model.Accelerators(), "ranks", "on so few hosts that each has "+
		"more than %d accelerators in the closed division, where this one has %d", closedPerHost,
		count)
}

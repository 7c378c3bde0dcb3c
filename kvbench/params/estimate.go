package params

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"

	"kvbench/kvbench/units"
	"kvbench/tracing/host"
	"kvbench/workloads"
	"kvbench/workloads/formats"
	"kvbench/workloads/users"
)

// The storage tier takes at most 95 % of the free space, and leaves at least 5 % of the filesystem and
// at least 10 GiB free.
const (
	freeShare = 0.95
	minFree   = 10 << 30
	leastRoom = 1 << 20 // a filesystem with less is full
)

// ChooseCapacity returns the capacity in bytes of the storage tier in dir, which is on fs. If given is
// 0, the capacity is a part of the free space, divided by the ranks of this host. On the root filesystem
// and on shared filesystems given must not be 0. A given capacity must fit. If byDefault is true, given
// is a default: a default that does not fit is reduced to half of the free space. floor is the free
// space in bytes below which the run ends, 0 = no limit.
func ChooseCapacity(fs host.Filesystem, dir string, given int64, localRanks int,
	byDefault bool) (bytes, floor int64, err error) {
	// The clients of a host take the same decision at the same time, each for its share.
	ranks := int64(max(1, localRanks))
	if fs.Free/ranks < leastRoom {
		return 0, 0, fmt.Errorf("-cache-dir: must be on a filesystem with free space; the %s "+
			"filesystem of %s is full (%s free for %s): free space there, or choose another "+
			"directory", fs.Type, dir, units.Bytes.Text(fs.Free), units.Plural(ranks, "rank"))
	}
	// Given, or the quick division's 4 GiB: taken if it fits.
	if given > 0 {
		switch {
		case given <= fs.Free/ranks: // a product could overflow
			return given, 0, nil
		case byDefault:
			return fs.Free / ranks / 2, 0, nil
		}
		return 0, 0, fmt.Errorf("-storage-capacity-gb: must be at most %s (the %s "+
			"filesystem of %s has %s free for %s), given %s",
			strconv.FormatFloat(math.Floor(toGiB(fs.Free/ranks)*1e4)/1e4, 'f', -1, 64), fs.Type,
			dir, units.Bytes.Text(fs.Free), units.Plural(ranks, "rank"), units.FormatGiB(given))
	}
	floor = max(int64(float64(fs.Total)*(1-freeShare)), minFree)
	bytes = min(int64(float64(fs.Free)*freeShare), fs.Free-floor) / ranks
	why := ""
	switch {
	case fs.Root:
		why = fmt.Sprintf("%s is on the root filesystem (%s free)", dir,
			units.Bytes.Text(fs.Free))
	case fs.Shared:
		why = fmt.Sprintf("%s is on a shared or network filesystem, %s (%s free)", dir,
			fs.Type, units.Bytes.Text(fs.Free))
	case bytes <= 0:
		why = fmt.Sprintf("the %s filesystem of %s has only %s free and %s (at least 5 %% "+
			"and 10 GiB) stay with others", fs.Type, dir, units.Bytes.Text(fs.Free),
			units.Bytes.Text(floor))
	}
	if why != "" {
		return 0, 0, errors.New("-storage-capacity-gb: must be given, because " + why)
	}
	// A tenth of slack: metadata and the padding of last blocks are not
	// another process that fills the disk.
	return bytes, floor - floor/10, nil
}

// skewShare of the capacity of several directories stays empty where the free space decides: a hash
// gives one of them more entries than another. Of n entries the part that one of two directories
// has scatters around a half by a half ÷ √n (binomial): of 400 by 2.5 %, and the fuller one has
// 55 % of the capacity.
const skewShare = 0.1

// Share has a directory's maximum part of a storage tier (Bytes) and the free space of its filesystem
// below which the run ends (Floor), in bytes. A Floor of 0 means no limit.
type Share struct{ Bytes, Floor int64 }

// ChooseShares decides the size of a storage tier of one or several directories by [ChooseCapacity]:
// each takes as much as the one that can take least. Sharing are how many directories, of
// all clients, share the space of the filesystem of each, itself included.
//
// How much a directory may take is more than its part of the capacity, as far as there is space: the
// parts that a hash makes are not equal.
func ChooseShares(dirs []string, on []host.Filesystem, sharing []int, given int64,
	byDefault bool) (bytes int64, shares []Share, err error) {
	n := int64(len(dirs))
	least := int64(math.MaxInt64)
	var errs []error
	for i, dir := range dirs {
		take, floor, err := ChooseCapacity(on[i], dir, (given+n-1)/n, sharing[i], byDefault)
		if err != nil && n > 1 {
			err = fmt.Errorf("%w: each of %d directories takes an equal part", err, n)
		}
		s := Share{Bytes: take, Floor: floor}
		if given > 0 {
			s.Bytes = on[i].Free / int64(max(1, sharing[i]))
		}
		errs, shares, least = append(errs, err), append(shares, s), min(least, take)
	}
	switch bytes = n * least; {
	case given > 0: // a part is rounded up
		bytes = min(bytes, given)
	case n > 1:
		bytes = int64(float64(bytes) * (1 - skewShare))
	}
	return bytes, shares, errors.Join(errs...)
}

// What a run needs in addition to buffers and the cpu tier: runtime, source and the encoding of its
// result, and each shard of its recorder, whose hundred histograms take some 10 MB when all of them
// are used. Measured with two shards: 45 to 120 MB.
const (
	harnessMemory = 172 << 20
	shardMemory   = 10 << 20
)

// bufferPart: a client's buffers take at most one part in this many of its memory. What remains is
// for the cpu tier, to the page cache and to other processes.
const bufferPart = 8

// MostBuffers is how many bytes the buffers of one of so many clients of this host may take: an
// eighth of its part of the memory that is available, 0 when that is not known.
func MostBuffers(localRanks int, l host.Limits) int64 {
	have, _ := l.Available()
	return have / int64(max(1, localRanks)) / bufferPart
}

// Memory is the maximum memory of a run in bytes. It depends neither on the length of the run nor on the
// size of its entries.
type Memory struct {
	Pool    int64 `json:"pool_bytes"` // buffers that chunks pass through
	CPUTier int64 `json:"cpu_tier_bytes"`
	Harness int64 `json:"harness_bytes"` // histograms of all shards, runtime, source
}

// Total returns the sum in bytes.
func (m Memory) Total() int64 { return m.Pool + m.CPUTier + m.Harness }

// EstimateMemory is what a run would need with buffers and a cpu tier of that many bytes, and a
// recorder of so many shards.
func EstimateMemory(pool, cpuTier int64, shards int) Memory {
	return Memory{Pool: pool, CPUTier: cpuTier,
		Harness: harnessMemory + shardMemory*int64(max(1, shards))}
}

// CheckMemory refuses a run that needs more memory than one of so many clients of this host can have.
// The error has the numbers and the cpu tier that would fit, or the cure, which completes "give ".
func CheckMemory(m Memory, cure string, localRanks int, l host.Limits) error {
	have, source := l.Available()
	if localRanks > 1 {
		have /= int64(localRanks)
		source += fmt.Sprintf(" for each of %d ranks", localRanks)
	}
	if have == 0 || m.Total() <= have {
		return nil
	}
	needs := fmt.Sprintf("the run needs %.2f GiB: %.2f cpu tier, %.2f buffers, %.2f harness; "+
		"%.2f are available according to %s", toGiB(m.Total()), toGiB(m.CPUTier), toGiB(m.Pool),
		toGiB(m.Harness), toGiB(have), source)
	// Buffers and harness are needed in any case: what can give way is the cpu tier.
	if fit := have - m.Pool - m.Harness; fit > 0 && m.CPUTier > 0 {
		return fmt.Errorf("-cpu-mem-gb: must be at most %.2f (%s), given %.2f",
			math.Floor(toGiB(fit)*100)/100, needs, toGiB(m.CPUTier))
	}
	if m.Harness > have {
		cure = "the run more memory: no parameter makes the harness smaller"
	}
	return fmt.Errorf("memory: %s; give %s", needs, cure)
}

func toGiB(n int64) float64 { return float64(n) / (1 << 30) }

// DecodePopulation returns the number of entries that decode-only writes before the window, and their
// tokens.
func (v *Values) DecodePopulation() (entries, tokens int) {
	return workloads.PopulationPerUser * v.Users, workloads.PopulationTokens
}

// ContextWindow is the longest prompt in tokens, 0 = there is no bound: the model's is not known, or
// the division is closed, whose users exceed it as the users of the Python benchmark do.
func (v *Values) ContextWindow() int {
	if v.Division == Closed {
		return 0
	}
	return v.Model.Window
}

// CutTemplates names the kinds of users whose contexts are longer than the window, with their
// longest.
func (v *Values) CutTemplates() (list []string) {
	if v.ContextWindow() == 0 || v.Bench.Load != LoadUsers || v.DecodeOnly || v.OfSessions() {
		return nil
	}
	for _, t := range v.Profile.Templates {
		if t.Context[1] > v.ContextWindow() {
			list = append(list, fmt.Sprintf("%s (up to %d)", t.Name, t.Context[1]))
		}
	}
	return list
}

// usualBlock is how many tokens the blocks of Mooncake's traces have.
const usualBlock = 512

// BlockSizes are the sizes of a block trace's blocks in tokens, the largest last.
func (v *Values) BlockSizes() ([]int, error) {
	files, err := formats.Blocks.Files(v.BlockTracePath)
	if err != nil {
		return nil, err
	}
	sizes, err := formats.BlockSizes(files)
	if err != nil && len(sizes) > 0 && v.TraceAllowMalformed {
		err = nil // the run passes over a file without a usable row as well, and reports others
	}
	if err != nil {
		err = fmt.Errorf("-block-trace-path: %w", err)
	}
	return sizes, err
}

// LargestEntry is the largest entry that the users can request, or that a block trace has, in
// tokens and in bytes of this rank.
func (v *Values) LargestEntry() (tokens int, bytes int64) {
	tokens = v.Profile.MaxContextTokens()
	if v.Bench.Blocks() {
		tokens = usualBlock
		if sizes, err := v.BlockSizes(); err == nil { // else reported where the trace is needed
			tokens = sizes[len(sizes)-1]
		}
	}
	if w := v.ContextWindow(); w > 0 {
		tokens = min(tokens, w)
	}
	if v.DecodeOnly {
		tokens = workloads.PopulationTokens
	}
	if n := v.CutTokens(); n > 0 { // an engine's object
		tokens = n
	}
	if v.OfSessions() {
		tokens = v.SessionBlock()
	}
	return tokens, v.Sizer().Bytes(tokens)
}

// CheckFit refuses a slowest tier that can never hold the largest entry of the load, or the entries that
// decode-only reads, with the numbers that would fit. capacity is that of the storage tier in bytes, if there
// is one. Resolve calls it for users when the capacity is given. A caller calls it again for block traces,
// whose files Resolve does not read, and for a capacity from the free space. Other benchmarks always fit.
func (v *Values) CheckFit(capacity int64) Violations {
	// A scenario's size is for any tier: files of plain I/O take at most the whole tier, and a warning says so.
	capacity = max(capacity, 0) // of no storage tier
	if n := v.CeilingBytes; v.Bench.Load == LoadNone && n > capacity && !v.ByScenario("ceiling-size-gb") {
		given := setting{v.Text("ceiling-size-gb"), v.Origin("ceiling-size-gb")}
		return Violations{violation("-ceiling-size-gb", given, fmt.Sprintf("at most the %s GiB of "+
			"the storage tier", strconv.FormatFloat(toGiB(capacity), 'g', 4, 64)))}
	}
	last, part, parts := v.LastTier()
	if v.Bench.Load != LoadUsers && !v.Bench.Blocks() || v.NoStorage() && part == 0 {
		return nil // a rule refuses a run without any tier
	}
	if v.NoStorage() {
		capacity = part * int64(parts)
	}
	refuse := func(least int64, why string, args ...any) Violations {
		required := fmt.Sprintf("at least %v, because ", math.Ceil(toGiB(least/int64(parts))*1000)/1000) +
			fmt.Sprintf(why, args...)
		given := setting{strconv.FormatFloat(toGiB(capacity/int64(parts)), 'g', 4, 64), v.Origin(last)}
		if capacity != v.StorageBytes && !v.NoStorage() {
			given.origin = Origin{Where: ", from the free space of " + cmp.Or(v.CacheDir(),
				"the temporary directory")}
		}
		return Violations{violation("-"+last, given, required)}
	}
	// An entry is never split over tiers: the last one has to hold the largest alone.
	tokens, size := v.LargestEntry()
	if size > capacity {
		return refuse(size, "one entry of %d tokens of %s takes that many GiB (a smaller -model takes "+
			"less)", tokens, v.ModelName)
	}
	// Or the window would read what had been evicted before it began.
	whole := v.Sizer().Bytes(workloads.PopulationTokens)
	if each := whole * workloads.PopulationPerUser; v.DecodeOnly && each*int64(v.Users) > capacity {
		return refuse(each*int64(v.Users), "decode-only reads %d entries of %d tokens of each of %d users "+
			"(or -num-users at most %d)", workloads.PopulationPerUser, workloads.PopulationTokens, v.Users,
			capacity/each)
	}
	return nil
}

// Offered is the load that users offer when they never wait for an answer.
type Offered struct {
	Requests   float64 // per second
	Bytes      float64 // of entries to write, per second
	MeanTokens float64 // of an entry
	LiveTokens float64 // of the entries of all live conversations
}

// Offered returns the load of the users that the run would draw.
func (v *Values) Offered() (o Offered) {
	population := users.Population(v.Profile, v.StreamSeed(), v.Users, v.CPythonPopulation())
	turns, tokens := meanTurns(v.Profile), 0.0
	for _, u := range population {
		mean := (float64(u.Context/4) + float64(u.Context)) / 2
		rate := 1 / max(u.Think, minThink)
		if v.RequestRate > 0 {
			rate = v.RequestRate / float64(len(population))
		}
		o.Requests += rate
		tokens += rate * mean
		o.LiveTokens += turns * mean
	}
	o.Bytes, o.MeanTokens = tokens*float64(v.Sizer().Bytes(1)), tokens/o.Requests
	return o
}

// Written returns the bytes that users with this load write in warm-up and window, to a storage that takes
// at most so many bytes/s, 0 = no limit.
func (v *Values) Written(o Offered, most float64) int64 {
	if count := cmp.Or(v.MaxRequests, v.Window.Completions); count > 0 {
		return int64(float64(count) / o.Requests * o.Bytes)
	}
	rate := o.Bytes
	if most > 0 {
		rate = min(rate, most)
	}
	return int64(rate * (v.Window.Length + v.Warmup).Seconds())
}

// minThink is the smallest think time of a user in seconds. Population may draw less, and the rate must
// be finite.
const minThink = 0.001

// meanTurns returns the mean number of turns of a conversation up to a turn. Each turn starts a new
// conversation with the profile's probability; a conversation has at most MaxTurns turns.
func meanTurns(p users.Profile) float64 {
	if p.NewConversation <= 0 {
		return float64(p.MaxTurns)
	}
	return (1 - math.Pow(1-p.NewConversation, float64(p.MaxTurns))) / p.NewConversation
}

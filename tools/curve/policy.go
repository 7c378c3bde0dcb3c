package curve

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"kvbench/kvbench/units"
	"kvbench/tiers/cache"
	"kvbench/tiers/evict"
	"kvbench/tools/curve/policy"
	"kvbench/workloads/reuse"
)

// policyOptions say what the caches do that the curve is of, with the names and the meaning that
// benchmarks have for them.
type policyOptions struct {
	evict, ttl     string  // the order of all levels; for how long a block stays unasked for
	place, promote string  // whether blocks have copies, and whether reads move them up
	admit          int     // requests before a block goes down, 0 = none
	above          string  // GiB of the cpu tier
	sample         float64 // millions of blocks that a cache serves, 0 = all

	// What read makes of them:
	cpuBytes         int64
	evictTTL         time.Duration
	leastRecentAlone bool // the exact curve is the answer
}

// define adds the flags to a flag set. Their defaults are a cache whose curve is exact, and not
// those of the benchmarks, where there is a cpu tier: what is asked here is what the storage does.
func (o *policyOptions) define(fs *flag.FlagSet) {
	fs.StringVar(&o.evict, "evict", "lru", "")
	fs.StringVar(&o.ttl, "evict-ttl", "0s", "")
	fs.StringVar(&o.place, "tier-policy", cache.Placements[cache.Exclusive], "")
	fs.StringVar(&o.promote, "promote", "never", "")
	fs.IntVar(&o.admit, "admit-after", 0, "")
	fs.StringVar(&o.above, "cpu-mem-gb", "0", "")
	fs.Float64Var(&o.sample, "sample", 1, "")
}

// read checks the options, and reports every mistake by its flag. One option may have several: who
// gives a policy without a tier above the storage hears of each flag that needs one.
func (o *policyOptions) read(refuse func(name, format string, args ...any)) {
	one := func(name, given string, of []string) {
		if !slices.Contains(of, given) {
			refuse(name, "%s, given %q", strings.Join(of, ", "), given)
		}
	}
	one("evict", o.evict, slices.Sorted(maps.Keys(evict.Orders)))
	one("tier-policy", o.place, cache.Placements)
	one("promote", o.promote, []string{"never", "on-hit"})
	var err error
	if o.cpuBytes, err = units.ParseSize(o.above, units.GiB); err != nil || o.cpuBytes < 0 ||
		o.cpuBytes > 1<<50 {
		refuse("cpu-mem-gb", "0 to 1 PiB, given %q", o.above)
	}
	if o.evictTTL, err = units.ParseDuration(o.ttl); err != nil || o.evictTTL < 0 {
		refuse("evict-ttl", "0s or more, such as 30m, given %q", o.ttl)
	}
	if o.admit < 0 || o.admit > 1000 {
		refuse("admit-after", "0 to 1000, given %d", o.admit)
	}
	if !(o.sample >= 0 && o.sample <= 1000) {
		refuse("sample", "0 (everything) to 1000 million blocks, given %g", o.sample)
	}
	// The benchmarks' rules (package params), in their words: what a replay refuses has no curve,
	// or somebody would compare the two.
	alone := o.cpuBytes == 0
	upper := "without a tier above the storage: give -cpu-mem-gb"
	waterfall := o.place == cache.Placements[cache.Exclusive]
	if alone && !waterfall {
		refuse("tier-policy", "waterfall %s", upper)
	}
	if alone && o.promote != "never" {
		refuse("promote", "never %s", upper)
	}
	if alone && o.admit > 0 {
		refuse("admit-after", "0 %s", upper)
	}
	if !alone && waterfall && o.promote != "never" {
		refuse("promote", "never with -tier-policy waterfall, whose entries live in one tier: "+
			"write-back keeps copies")
	}
	if o.place == cache.Placements[cache.WriteThrough] && o.admit > 1 {
		refuse("admit-after", "0 with -tier-policy write-through, which copies everything")
	}
	if o.place == cache.Placements[cache.Selective] && o.admit == 1 {
		refuse("admit-after", "at least 2 with -tier-policy selective")
	}
	o.leastRecentAlone = alone && o.evict == "lru" && o.evictTTL == 0
}

// policy is what the options mean, when they are right.
func (o *policyOptions) policy() cache.Policy {
	p := cache.Policy{Place: cache.Placement(slices.Index(cache.Placements, o.place)),
		After: o.admit, TTL: o.evictTTL, Evict: evict.Orders[o.evict]}
	if o.promote == "on-hit" {
		p.Promote = cache.OnHit
	}
	// At the first request it would be write-through; two is what HiCache and KVBM have.
	if p.Place == cache.Selective {
		p.After = max(2, p.After)
	}
	return p
}

// name is the policy as the flags have it, without what is as in any other. The order of eviction
// comes first, and then how levels work together.
func (o *policyOptions) name() string {
	name := o.evict
	add := func(is bool, format string, args ...any) {
		if is {
			name += fmt.Sprintf(format, args...)
		}
	}
	add(o.cpuBytes > 0, ", %s", o.place)
	add(o.promote != "never", ", promoting on a hit")
	add(o.admit > 0, ", admitting after %d", o.admit)
	add(o.evictTTL > 0, ", forgetting after %s", span(o.evictTTL.Seconds()))
	return name
}

// perDoubling is how many capacities a policy is tried at: each is a cache of its own, which takes
// a microsecond for a block (10,270,576 blocks for 29 caches in 278 s of one processor). Lines
// between them are near a curve that bends as slowly as those of real traces.
const perDoubling = 2

// unjoined is how many blocks a sample has in memory before any are joined, for each one that a
// cache serves: four bytes each are nothing beside a cache's entries, and joining may leave an
// eighth of them.
const unjoined = 8

// newSample is an empty sample of that size.
func (o *policyOptions) newSample(seed int64) policy.Sample {
	if o.sample == 0 {
		return policy.Sample{Seed: uint64(seed)}
	}
	most := max(1, int(o.sample*1e6)) // 0 would be no bound
	return policy.Sample{Seed: uint64(seed), Most: unjoined * most, MostJoined: most}
}

// estimate replaces the points of the exact curve by those of the policy.
func (o *policyOptions) estimate(c reuse.Config, s *policy.Sample, exact *reuse.Summary) (
	policy.Estimate, error) {
	// Of the exact curve's own points every fourth is tried, of those that were asked for all: they
	// stand in the report whatever they cost.
	var of []reuse.Point
	for i, p := range exact.Points {
		octaves := perDoubling * math.Log2(float64(p.Capacity))
		if p.Asked || p.Capacity == exact.Footprint || i == len(exact.Points)-1 ||
			math.Abs(octaves-math.Round(octaves)) < 1e-6 {
			of = append(of, p)
		}
	}
	// Nobody can end it but by ending the program.
	cfg := policy.Config{Policy: o.policy(), Above: o.cpuBytes, Curve: c}
	e, err := cfg.Estimate(context.Background(), s, exact, of)
	if errors.Is(err, policy.ErrEmpty) {
		err = fmt.Errorf("%w: raise -sample, or leave out -warmup", err)
	}
	return e, err
}

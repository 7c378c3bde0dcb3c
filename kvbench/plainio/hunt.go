package plainio

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// hunt is the search for a knee: it says which pairs of a size and a number are measured, and which
// of them is the knee. It knows no storage.
//
// First it surveys, by the bytes in flight, every fourth number of every size, until sixteen times
// as many bytes have brought nothing; then what lies between a pair that is near the fastest and
// the one before it. After that it measures again, in turns: the fastest, whose common rate is what
// others are compared with, and those near it, fewest bytes in flight first, until one of them is
// known to be as fast and all with fewer are known not to be.
//
// What a survey said of a pair that is measured again counts no more: it was chosen for that. Nor
// is any compared with the fastest of all, which is the luckiest.
type hunt struct {
	// Bytes of a request.
	least, most int64

	now     func() time.Duration
	limit   time.Duration
	measure func(ctx context.Context, p *pair, least time.Duration) (rate float64, err error)

	begun time.Duration
	all   []*pair
	full  map[int64]bool // sizes of which more requests bring nothing
	refs  []*pair        // the fastest of the survey
	why   string

	rounds int  // how often a pair is measured again
	saved  bool // a limit may have saved something, see rate
}

// What the search goes by.
const (
	kneeSurvey, kneeRecheck = 200 * time.Millisecond, 400 * time.Millisecond // a measurement

	kneeGrowth = 1.02 // what is less than that is no growth
	kneeFlat   = 2    // times four times the bytes in flight that bring none end the survey
	kneeWithin = 0.98 // of the fastest is as fast
	kneeNear   = 0.92 // of it in the survey may be
	kneeRoom   = 1.2  // times the fastest, see roomy
	kneeRounds = 5    // how often a pair is measured again

	kneeSlowRounds = 3           // where there is no time for more
	kneeDear       = time.Second // of the fastest those are chosen whose looks take no longer

	// What a limit has saved is spent for so long by so many times as many requests, of no more
	// bytes in flight than that, unless the pair itself has more.
	kneeSpend    = 100 * time.Millisecond
	kneeSpenders = 16
	kneeSpent    = 4 << 20

	// Of a size whose requests take so long the survey tries every sixteenth number, as long as
	// more in flight move more: 100 ms for each of four requests are half a second for a pair.
	kneeSlow = 20 * time.Millisecond

	// More in flight than the fastest move in that time wait for longer, of which nothing is
	// measured: two of each are to end in eight times the time of a look.
	kneeWait = kneeLonger * kneeSurvey / 2
)

// pageSize is that of the smallest requests, where the filesystem takes these.
const pageSize = 4096

// run is the whole search.
func (h *hunt) run(ctx context.Context) (k result.Knee, err error) {
	h.begun, h.full, h.why = h.now(), map[int64]bool{}, ""
	if err := h.survey(ctx); err != nil {
		return k, err
	}
	h.all = slices.DeleteFunc(h.all, func(p *pair) bool { return p.useless })
	if len(h.all) == 0 {
		return k, errors.New("no size and number of requests ended often enough to be measured: " +
			"the storage is too slow for this")
	}
	if err := h.between(ctx); err != nil {
		return k, err
	}
	h.choose()
	known, err := h.recheck(ctx)
	if err != nil {
		return k, err
	}
	return h.answer(known), nil
}

// rate measures a pair, which has nothing of what a limit may have saved before.
func (h *hunt) rate(ctx context.Context, p *pair, least time.Duration) (rate float64, err error) {
	if h.saved {
		if _, err = h.measure(ctx, p.spender(), kneeSpend); err != nil {
			return 0, err
		}
	}
	rate, err = h.measure(ctx, p, least)
	fast, noise := h.plateau()
	h.saved = rate < fast*(kneeWithin-max(2*noise, kneeWithin-kneeNear))
	return rate, err
}

// look measures a pair for the survey.
func (h *hunt) look(ctx context.Context, size int64, n int) (*pair, error) {
	p := h.at(size, n)
	if p == nil {
		p = h.add(size, n)
	}
	begun := h.now()
	rate, err := h.rate(ctx, p, kneeSurvey)
	p.took = h.now() - begun
	if rate > 0 {
		p.looks = append(p.looks, rate)
	}
	p.useless = len(p.looks) == 0
	return p, err
}

// add makes a pair one of all, which are in the order of their bytes in flight.
func (h *hunt) add(size int64, n int) *pair {
	p := newPair(size, n)
	h.all = append(h.all, p)
	slices.SortStableFunc(h.all, func(a, b *pair) int {
		return cmp.Or(cmp.Compare(a.inFlight(), b.inFlight()), cmp.Compare(a.size, b.size))
	})
	return p
}

// at is the pair, nil: nobody has measured it.
func (h *hunt) at(size int64, n int) *pair {
	i := slices.IndexFunc(h.all, func(p *pair) bool { return p.size == size && p.n == n })
	if i < 0 {
		return nil
	}
	return h.all[i]
}

// survey measures the grid, by bytes in flight, so that what is slow and large comes last: a
// storage that is full by then is never asked for it, and would take minutes for it.
func (h *hunt) survey(ctx context.Context) error {
	best, flat, linear := 0.0, 0, false
	first := int64(KneeSize)
	for first/kneeStep >= h.least {
		first /= kneeStep
	}
	for flight := first; flight <= KneeFlight; flight *= kneeStep {
		level := 0.0
		if flat > 0 && float64(flight) > kneeWait.Seconds()*best {
			h.why = result.KneeLong
			return nil
		}
		// The largest first, which tell what a small one is up against.
		for size := int64(KneeSize); size >= h.least; size /= kneeStep {
			n := int(flight / size)
			if size > min(flight, h.most) || h.hopeless(size, n, max(best, level), linear) {
				continue
			}
			if len(h.all) > 0 && h.now() > h.begun+(h.limit-h.begun)*2/3 {
				h.why = result.KneeTime
				return nil
			}
			p, err := h.look(ctx, size, n)
			if err != nil {
				return err
			}
			level = max(level, p.hope())
			if err := h.grown(ctx, p); err != nil {
				return err
			}
		}
		if flat++; level > best*kneeGrowth {
			flat = 0
		}
		linear = level > best*kneeStep*3/4
		if best = max(best, level); flat == kneeFlat {
			h.why = result.KneePlateau
			return nil
		}
	}
	h.why = result.KneeGrid
	return nil
}

// hopeless says that the survey does not need a pair. Four times as many requests move four times
// as much at most; and where requests take long, and four times as many bytes have just moved
// nearly that, every sixteenth number will do.
func (h *hunt) hopeless(size int64, n int, best float64, linear bool) bool {
	if n > kneeMost || h.full[size] {
		return true
	}
	for _, p := range h.all {
		if p.size == size && p.n < n && p.hope()*float64(n)/float64(p.n) < kneeNear*best {
			return true
		}
	}
	one := h.at(size, 1)
	slow := one != nil && one.hope() > 0 && float64(size)/one.hope() >= kneeSlow.Seconds()
	return slow && linear && (n == 4 || n == 64) && int64(n)*kneeStep*size <= KneeFlight
}

// grown notes that two doublings of a number have brought nothing: after a step that has not, it
// looks at the number between, because a storage may have stood still.
func (h *hunt) grown(ctx context.Context, p *pair) error {
	before := 0.0
	for _, o := range h.all {
		if o.size == p.size && o.n < p.n {
			before = max(before, o.hope())
		}
	}
	if before == 0 || p.hope() > before*kneeGrowth {
		return nil
	}
	if h.full[p.size] = h.hopeless(p.size, p.n/2, h.fast(), false); h.full[p.size] {
		return nil
	}
	half, err := h.look(ctx, p.size, p.n/2)
	h.full[p.size] = half.hope() <= before*kneeGrowth
	return err
}

// fast is what counts as the fastest while nothing is known but the survey: the third, because the
// first of fifty is the luckiest.
func (h *hunt) fast() float64 {
	var rates []float64
	for _, p := range h.all {
		if !p.guess {
			rates = append(rates, p.hope())
		}
	}
	slices.Sort(rates)
	if len(rates) == 0 {
		return 0
	}
	return rates[max(0, len(rates)-3)]
}

// between looks, for each size, for the least number that is near the fastest, between those of the
// survey, and again at the one before it.
func (h *hunt) between(ctx context.Context) error {
	if h.why == result.KneeTime {
		return nil
	}
	near := func(p *pair) bool { return p.hope() >= kneeNear*h.fast() }
	least := int64(0)
	for _, first := range slices.Clone(h.all) { // by bytes in flight
		if !near(first) || least > 0 && first.inFlight() > kneeStep*least {
			continue
		}
		least = cmp.Or(least, first.inFlight())
		last := h.before(first)
		if last == nil || near(last) {
			continue
		}
		for h.now() < h.limit {
			steps := math.Log2(float64(first.n / last.n))
			n := last.n << int(steps/2)
			if n == last.n && last.inFlight() >= least {
				break
			}
			p, err := h.look(ctx, first.size, n)
			if err != nil {
				return err
			}
			if n == last.n { // it has had its second look
				break
			}
			if near(p) {
				first, least = p, min(least, p.inFlight())
			} else {
				last = p
			}
		}
	}
	h.all = slices.DeleteFunc(h.all, func(p *pair) bool { return p.useless })
	// Between two that are near may be the knee, if it is not the first of them.
	for _, p := range slices.Clone(h.all) {
		last := h.before(p)
		if last == nil || !near(last) || !near(p) {
			continue
		}
		for n := last.n * 2; n < p.n; n *= 2 {
			g := h.add(p.size, n)
			g.guess, g.looks = true, []float64{(last.hope() + p.hope()) / 2}
		}
	}
	return nil
}

// before is the pair of the same size with the next smaller number, nil: it is the first.
func (h *hunt) before(p *pair) (last *pair) {
	for _, o := range h.all {
		if o.size == p.size && o.n < p.n && (last == nil || o.n > last.n) {
			last = o
		}
	}
	return last
}

// choose says who is measured again in any case, and how often all are: the fastest of the survey,
// but of those within 2 % the ones that take least time, where a look takes long; as many as half
// of the time left is enough for.
func (h *hunt) choose() {
	fast := h.fast()
	refs := slices.DeleteFunc(slices.Clone(h.all), func(p *pair) bool { return p.guess })
	slices.SortStableFunc(refs, func(a, b *pair) int {
		return cmp.Compare(b.hope(), a.hope())
	})
	if near := slices.DeleteFunc(slices.Clone(refs), func(p *pair) bool {
		return p.hope() < kneeWithin*fast
	}); len(near) > 0 && near[0].took > kneeDear {
		refs = slices.SortedStableFunc(slices.Values(near),
			func(a, b *pair) int { return cmp.Compare(a.took, b.took) })
	}
	left, took := h.limit-h.now(), time.Duration(0)
	h.rounds = kneeRounds
	if refs[0].took*kneeRounds > left/6 {
		h.rounds = kneeSlowRounds
	}
	for _, p := range refs[:min(kneeRefs, len(refs))] {
		took += (p.took + kneeRecheck - kneeSurvey) * time.Duration(h.rounds)
		if len(h.refs) > 0 && took > left/2 {
			break
		}
		h.refs = append(h.refs, p)
	}
}

// recheck measures pairs again until the knee is known, and says whether it is.
func (h *hunt) recheck(ctx context.Context) (known bool, err error) {
	for p := h.next(); p != nil; p = h.next() {
		if h.now() >= h.limit {
			return false, nil
		}
		rate, err := h.rate(ctx, p, kneeRecheck)
		if err != nil {
			return false, err
		}
		if p.useless = rate == 0; !p.useless {
			p.rates = append(p.rates, rate)
		}
	}
	return true, nil
}

// next is whom to measure: of those that may be the knee and the fastest the one that was measured
// least, nil where all is known.
func (h *hunt) next() (next *pair) {
	plateau, noise := h.plateau()
	ask := slices.Clone(h.refs)
	for _, p := range h.candidates(plateau, noise) {
		if len(ask) == len(h.refs)+kneeAtOnce {
			break
		}
		ask = append(ask, p)
		if len(p.rates) >= h.rounds { // it is the knee, unless one before it is
			break
		}
	}
	for _, p := range ask {
		if !p.useless && len(p.rates) < h.rounds &&
			(next == nil || len(p.rates) < len(next.rates)) {
			next = p
		}
	}
	return next
}

// How many are measured in turns: of the fastest in the survey, of candidates, and of these with
// equally many bytes in flight.
const (
	kneeRefs   = 3
	kneeAtOnce = 3
	kneeEqual  = 2
)

// candidates are who may be the knee, fewest bytes in flight first, of equally many the fastest.
func (h *hunt) candidates(plateau, noise float64) (out []*pair) {
	for _, p := range h.all {
		n := float64(len(p.rates))
		least := min(kneeNear, h.within(noise)*(1-2*noise)) * plateau
		switch {
		case len(p.rates) >= h.rounds:
			least = h.within(noise) * plateau
		case len(p.rates) >= kneeFew:
			least = h.within(noise) * plateau * (1 - kneeLost*noise/math.Sqrt(n))
		}
		if !p.useless && p.hope() >= least && h.roomy(p, plateau) {
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, func(a, b *pair) int {
		return cmp.Or(cmp.Compare(a.inFlight(), b.inFlight()), cmp.Compare(b.hope(), a.hope()))
	})
	return slices.DeleteFunc(out, func(p *pair) bool { return len(p.rates) == 0 && h.others(p) })
}

// roomy says that a pair has some room to spare: fewer requests of its size moved so much that as
// many as it has would move more, were there no limit. One that has none comes to the limit only as
// long as nothing makes requests slower: on a loop device that a cgroup held to 200 MiB/s one
// request of 4 KiB moved 82 to 118 MiB/s, and two, in other searches, 186 and 200.
func (h *hunt) roomy(p *pair, plateau float64) bool {
	last := h.before(p)
	return last == nil || last.hope()*float64(p.n)/float64(last.n) >= kneeRoom*plateau
}

// within is what share of the plateau is as fast: no more than can be told apart, but never so much
// that anything would do.
func (h *hunt) within(noise float64) float64 {
	e := noise / math.Sqrt(float64(h.rounds))
	return max(kneeNear, min(kneeWithin+kneeSure*e, 1-kneeTold*e))
}

// others says that of equally many bytes in flight enough have been measured again: where requests
// of all sizes are as fast, one that is missed costs a step of two, and each takes two seconds.
func (h *hunt) others(p *pair) bool {
	n := 0
	for _, o := range h.all {
		if o.inFlight() == p.inFlight() && len(o.rates) > 0 {
			n++
		}
	}
	return n >= kneeEqual
}

// plateau is the rate of the fastest: the median of those that cannot be told apart from the
// fastest of those that were measured again, by the noise, which is the standard deviation of a
// measurement ÷ its mean.
func (h *hunt) plateau() (rate, noise float64) {
	var sure, off []float64
	for _, p := range h.all {
		if len(p.rates) < 2 || p.useless {
			continue
		}
		sure = append(sure, p.sure())
		n := float64(len(p.rates))
		for _, v := range p.rates {
			off = append(off, math.Abs(v/p.sure()-1)*math.Sqrt(n/(n-1)))
		}
	}
	if len(sure) == 0 {
		return h.fast(), 0
	}
	noise, _ = units.Median(off)
	noise = max(1.48*noise, kneeLeastNoise) // of a normal distribution
	if len(off) < 12 {
		noise = max(noise, 1-kneeWithin)
	}
	apart := kneeApart * noise / math.Sqrt(float64(h.rounds))
	fastest := slices.Max(sure)
	sure = slices.DeleteFunc(sure, func(v float64) bool { return v < fastest*(1-apart) })
	rate, _ = units.Median(sure)
	return rate, noise
}

// What noise does to decisions, by searches on storages of formulas (TestTheKneeDespiteNoise).
const (
	kneeLeastNoise = 0.003 // nothing is known better
	// So many standard errors tell two of the fastest apart: with more the plateau would begin
	// below them, with fewer it is that of the luckiest.
	kneeApart = 1.2
	kneeTold  = 1.5 // of one pair: what is within them of the fastest is as fast
	kneeSure  = 0.3 // of one pair: with less than that to spare it may be slower than within 2 %
	kneeLost  = 2.0 // below that pairs leave after kneeFew measurements
	kneeFew   = 2
)

// answer is the knee by all that was measured.
func (h *hunt) answer(known bool) (k result.Knee) {
	plateau, noise := h.plateau()
	k.EndedBy, k.Noise = h.why, noise
	// Where time was up before all had their turns only those count that had as many as any.
	rounds := 0
	for _, p := range h.all {
		rounds = max(rounds, len(p.rates))
	}
	if !known || rounds == 0 {
		k.EndedBy = result.KneeTime
	}
	var knee, fastest *pair
	for _, p := range h.all {
		if p.guess && len(p.rates) == 0 {
			continue
		}
		k.Points = append(k.Points, p.point())
		if len(p.rates) != rounds || p.useless && rounds > 0 {
			continue
		}
		if fastest == nil || p.hope() > fastest.hope() {
			fastest = p
		}
		if p.hope() >= h.within(noise)*plateau && h.roomy(p, plateau) && (knee == nil ||
			p.inFlight() == knee.inFlight() && p.hope() > knee.hope()) {
			knee = p
		}
	}
	if knee == nil {
		knee = fastest
	}
	k.RequestBytes, k.InFlight, k.Rate = knee.size, knee.n, knee.rate()
	k.Best = max(plateau, k.Rate) // the knee may be one of those that noise has above the others
	k.P99NS = knee.point().P99NS
	k.LeastBytes, k.MostBytes = h.apart(knee, plateau, noise, rounds)
	return k
}

// apart says between which bytes in flight the knee lies, by two standard errors: with less than
// the least nothing comes near enough, with the most something does for sure.
func (h *hunt) apart(knee *pair, plateau, noise float64, rounds int) (least, most int64) {
	least = knee.inFlight()
	for _, p := range h.all {
		if len(p.rates) < 2 || p.useless {
			continue
		}
		e := 2 * noise / math.Sqrt(float64(len(p.rates)))
		if p.hope() >= kneeWithin*plateau*(1-e) {
			least = min(least, p.inFlight())
		}
		if p.inFlight() >= knee.inFlight() && p.hope() >= kneeWithin*plateau*(1+e) &&
			(most == 0 || p.inFlight() < most) {
			most = p.inFlight()
		}
	}
	if most == 0 { // the most of those that are as fast
		most = knee.inFlight()
		for _, p := range h.all {
			if len(p.rates) == rounds && p.hope() >= kneeWithin*plateau {
				most = max(most, p.inFlight())
			}
		}
	}
	return least, most
}

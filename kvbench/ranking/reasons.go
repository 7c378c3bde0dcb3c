package ranking

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// facts are what the trials of a row tell of how it went about its work, all of them together. What
// nobody counted is nil.
type facts struct {
	found    *float64 // tokens found ÷ tokens of the prompts
	object   *float64 // bytes
	read     *float64 // bytes from the storage tier, a trial
	size     *float64 // bytes of one read request to the storage
	inFlight *float64 // requests at the storage, on average over the window
	device   *float64 // bytes of one read that the device saw
	atDevice *float64 // requests at the device, on average over the window
	flushes  *float64 // of the device, a second
	lookup   *float64 // share of the requests' time that was asking what is there
	memory   *float64 // share of the bytes read that the device did not see
	// share of the bytes written that had not reached the device when the window ended
	unwritten *float64
	verdicts  string // what limited the trials
	// others is bytes that the device moved ÷ bytes of the load, where that shows another user of
	// the device: what the device counted is left out then.
	others *float64
}

// factsOf sums over trials before it divides: a mean of ratios would weigh short trials like long
// ones.
func factsOf(results []*result.Result) (f facts) {
	var window, found, tokens, lookup, busy, read, reads, flown float64
	var devBytes, devReads, devTime, flushes, appBytes, devWrote, appWrote float64
	witnessed := len(results) > 0 // or an absent row would have shares of nothing
	// Sums over all trials; only then is anything divided.
	for _, r := range results {
		window += float64(r.WindowNS)
		// Of the prompts, which are the same for all: layouts of large objects leave out more of
		// what fills none, and would find larger shares of less.
		if p := r.Prompt; p != nil {
			found, tokens = found+float64(p.Found), tokens+float64(p.Tokens)
		}
		t := r.Requests.Time
		lookup, busy = lookup+float64(t.Lookup), busy+float64(t.EndToEnd-t.Queue)
		// The storage tier's own view: requests that the layout made, before any page cache.
		for _, tier := range r.Tiers {
			if tier.Level == "storage" {
				read += float64(tier.Read.Bytes)
				reads += float64(tier.Read.Requests)
				flown += float64(tier.Read.InFlightNS + tier.Write.InFlightNS)
			}
		}
		if kind := r.Harness.Verdict.Kind; !strings.Contains(f.verdicts, kind) {
			f.verdicts = strings.TrimPrefix(f.verdicts+", "+kind, ", ")
		}
		w := r.DeviceWitness
		// One trial without a witness would make shares of bytes that nobody counted.
		if w.ReadBytes == nil || w.ReadIOs == nil {
			witnessed = false
			continue
		}
		devBytes, devReads = devBytes+float64(*w.ReadBytes), devReads+float64(*w.ReadIOs)
		appBytes += float64(w.AppReadBytes)
		devTime += counted(w.QueueNS)
		flushes += counted(w.FlushIOs)
		devWrote, appWrote = devWrote+counted(w.WriteBytes), appWrote+float64(w.AppWriteBytes)
	}
	f.found, f.lookup = units.Ratio(found, tokens), units.Ratio(lookup, busy)
	f.read, f.size = units.Ratio(read, float64(len(results))), units.Ratio(read, reads)
	f.inFlight = units.Ratio(flown, window)
	if others := units.Ratio(devBytes+devWrote, appBytes+appWrote); others != nil &&
		*others > othersAbove {
		f.others, witnessed = others, false
	}
	if witnessed {
		f.atDevice = units.Ratio(devTime, window)
		if devBytes > apartShare*appBytes { // else they are somebody else's
			f.device = units.Ratio(devBytes, devReads)
		}
		// Flushes have no owner: of a row whose writes did not reach the device they are others'.
		if devWrote > apartShare*appWrote {
			f.flushes = units.Ratio(flushes, window/1e9)
		}
		f.memory, f.unwritten = missing(devBytes, appBytes), missing(devWrote, appWrote)
	}
	f.object = objectBytes(results)
	return f
}

// missing is the share of the load's bytes that the device did not see in the window.
func missing(device, load float64) *float64 {
	if load <= 0 {
		return nil
	}
	// Others' traffic on the same device, and the filesystem's own, may exceed the load's.
	return new(max(0, 1-device/load))
}

// counted is zero for what a device does not count.
func counted(n *int64) float64 {
	if n == nil {
		return 0
	}
	return float64(*n)
}

// objectBytes is what a worker keeps of the tokens of an engine's object, before a layout rounds it
// up; nil of layouts that are not an engine's.
func objectBytes(results []*result.Result) *float64 {
	if len(results) == 0 {
		return nil
	}
	if n := parameter(results[0], "object-tokens"); n > 0 {
		m := results[0].Model
		return new(n * float64(m.RankBytesPerToken) * float64(max(1, m.StoringRanks)) /
			float64(max(1, m.RankObjects)))
	}
	return nil
}

// parameter is the value of one that is a number, 0 of any other.
func parameter(r *result.Result, name string) float64 {
	for _, p := range r.Parameters {
		if p.Name == name {
			n, _ := strconv.ParseFloat(fmt.Sprint(p.Value), 64)
			return n
		}
	}
	return 0
}

// fact is one of them in a sentence, with the value of the row beside it in brackets. Both are
// told, and never a ratio alone: twice as many flushes may be two.
type fact struct {
	words string // with a place for the value
	unit  units.Unit
	of    func(facts) *float64
}

// text has one digit behind the point of a mere number: nobody needs more of a mean.
func (x fact) text(v float64) string {
	if x.unit == units.Number {
		return fmt.Sprintf("%.1f", v)
	}
	return x.unit.Text(v)
}

// all are the facts in the order in which a sentence has them: what was found, then what the
// storage was asked for, then what the device saw of it.
var all = []fact{
	{"%s of the prompts' tokens found", units.Share, func(f facts) *float64 { return f.found }},
	{"objects of %s", units.Bytes, func(f facts) *float64 { return f.object }},
	{"%s read", units.Bytes, func(f facts) *float64 { return f.read }},
	{"requests of %s", units.Bytes, func(f facts) *float64 { return f.size }},
	{"%s of them in flight", units.Number, func(f facts) *float64 { return f.inFlight }},
	{"device reads of %s", units.Bytes, func(f facts) *float64 { return f.device }},
	{"%s at the device", units.Number, func(f facts) *float64 { return f.atDevice }},
	{"%s flushes a second", units.Number, func(f facts) *float64 { return f.flushes }},
	{"looking up took %s", units.Share, func(f facts) *float64 { return f.lookup }},
	{"memory answered %s of the reads", units.Share, func(f facts) *float64 { return f.memory }},
	{"it kept %s of the writes", units.Share, func(f facts) *float64 { return f.unwritten }},
}

// Two rows differ in a fact where one is half as much again as the other, or, of shares, more by
// ten points. These are no tests: they bound how much there is to read.
const (
	apartFactor = 1.5
	apartShare  = 0.1
)

// othersAbove is from which multiple of the load's bytes on the device has served another process,
// too. Filesystems write less than a fifth more than they are given.
const othersAbove = 1.2

// differences says in what a row differs from another, whose values stand in brackets.
func differences(row, other facts) (list []string) {
	for _, x := range all {
		a, b := x.of(row), x.of(other)
		if a == nil || b == nil || !apart(*a, *b, x.unit) {
			continue
		}
		list = append(list, fmt.Sprintf(x.words+" (%s)", x.text(*a), x.text(*b)))
	}
	if row.verdicts != other.verdicts && row.verdicts != "" && other.verdicts != "" {
		list = append(list, fmt.Sprintf("%s (%s)", row.verdicts, other.verdicts))
	}
	return list
}

func apart(a, b float64, unit units.Unit) bool {
	// Half of very little is nothing that anybody would look into: a depth of 0.2 and one of 0.4.
	if unit == units.Share {
		return math.Abs(a-b) >= apartShare
	}
	return max(a, b) >= apartFactor*min(a, b) && max(a, b) >= 1
}

// elsewhere is of a trial that was stopped where others may not have been. After a number of
// requests they all were at the same.
func elsewhere(r *result.Result) bool {
	return r.PartOfInput() && r.EndedBy != result.EndedByMaxRequests
}

// note says what a reader has to know of all rows together.
func (k *Ranking) note() {
	partly, paced := 0, ""
	// What would make a table unfair that looks like any other.
	for _, row := range k.Rows {
		if row.Failed > 0 {
			k.notes = append(k.notes, fmt.Sprintf("%s: %d of %d trials gave no numbers", row.Name,
				row.Failed, row.Failed+len(row.results)))
		}
		if row.facts.others != nil {
			k.notes = append(k.notes, fmt.Sprintf("%s: the device moved %s times the bytes of "+
				"this load, so another process used it: what the device counted is left out",
				row.Name, units.Number.Text(*row.facts.others)))
		}
		if slices.ContainsFunc(row.results, elsewhere) {
			partly++
		}
		for _, r := range row.results {
			if speed := parameter(r, "trace-speedup"); speed > 0 {
				paced = units.Number.Text(speed)
			}
		}
	}
	if partly > 0 {
		k.notes = append(k.notes, fmt.Sprintf("%d of %d rows were stopped before the trace ended, "+
			"each at another request: they found other tokens; -benchtime has to be longer, or a "+
			"number of requests (-benchtime 1000x)", partly, len(k.Rows)))
	}
	if paced != "" {
		k.notes = append(k.notes, "the trace's own times set the pace (-trace-speedup "+paced+
			"): rows that keep up with it are equal, however fast they are")
	}
}

package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

func share(v float64) string  { return units.Share.Text(v) }
func number(v float64) string { return units.Number.Text(v) }
func rate(v float64) string   { return units.BytesPerSec.Text(v) }

// flying is how many requests were in flight.
func (e *evidence) flying() string {
	return fmt.Sprintf("%s requests were in flight at the storage on average", number(e.inFlight))
}

// tried is the sweep's finding, or the model's bounds.
func (e *evidence) tried() string {
	if s := e.Simulation; s != nil {
		return fmt.Sprintf("the device's medium was busy %s of the window and takes %d requests "+
			"at a time", units.Percent(s.DeviceBusyShare), s.Device.Parallelism)
	}
	rungs := e.rungs()
	var counts, rates []string
	for _, r := range rungs[1:] {
		counts, rates = append(counts, fmt.Sprint(r.InFlight)), append(rates, rate(r.Rate()))
	}
	return fmt.Sprintf("plain I/O right after it moved for a moment %s with %d in flight and %s "+
		"with %s", rate(rungs[0].Rate()), rungs[0].InFlight, strings.Join(rates, ", "),
		strings.Join(counts, ", "))
}

// moved is what the run moved.
func (e *evidence) moved() string { return "the run moved " + rate(e.rate) }

func (e *evidence) gaveAll() string {
	busy := ""
	if of := e.DeviceWitness.BusyShare; of != nil {
		busy = ", the device was busy " + units.Percent(of) + " of the window"
		if *of < deviceBusy {
			busy += ": what held requests back meanwhile lies above it, as a cgroup's io.max or " +
				"the filesystem"
		}
	}
	return fmt.Sprintf("%s and more would not have moved more: %s, %s%s; the harness took %s of "+
		"the workers' busy time", e.flying(), e.moved(), e.tried(), busy, share(e.harness))
}

func (e *evidence) askedLittle() string {
	if thinking := e.Harness.Busy.ThinkingNS; thinking > 0 {
		gpu := ""
		if f := e.FirstToken; f != nil && f.GPUBusyShare != nil {
			gpu = fmt.Sprintf("; the server that computes prompts (-prefill-rate, -gpu) was busy "+
				"%s of the window", units.Percent(f.GPUBusyShare))
			if *f.GPUBusyShare >= deviceBusy {
				gpu += " and was the limit"
			}
		}
		return fmt.Sprintf("workers had no request, or waited for a GPU or slept as long as one "+
			"would compute, for %s of the time (limit %s): the load asked for less than the "+
			"storage could give%s", share(e.idle), share(idleLimit), gpu)
	}
	return fmt.Sprintf("workers had no request for %s of the time (limit %s): the load asked for "+
		"less than the storage could give", share(e.idle), share(idleLimit))
}

func (e *evidence) usedUp() string {
	used := "the process used %s of the %s cores that it may use"
	if len(e.MergedRanks) > 1 {
		used = "the ranks on one host used %s of the %s cores that they may use"
	}
	return fmt.Sprintf(used+" (limit %s): more cores would move more bytes", share(e.cpu),
		number(e.Limits.Cores), share(cpuLimit))
}

// parts lists what the harness did, largest first.
func (e *evidence) parts() string {
	b := &e.Harness.Busy
	type part struct {
		name string
		of   float64
	}
	all := []part{
		{"making data", e.of(b.GenerationNS)}, {"copying and verifying", e.of(b.HostNS)},
		{"waiting for buffers", e.of(b.BuffersNS)},
		{"taking requests (lock, input, plan)", e.of(b.DispatchNS)},
		{"handing requests to threads and back", e.of(b.HandoverNS)},
		{"what belongs to no operation", ratio(e.rest, e.busy)},
	}
	slices.SortStableFunc(all, func(x, y part) int { return cmp.Compare(y.of, x.of) })
	var names []string
	for i, p := range all {
		if i == 0 {
			names = append(names, p.name+" took "+share(p.of))
		} else if p.of >= 0.05 {
			names = append(names, p.name+" "+share(p.of))
		}
	}
	together := ""
	if len(names) > 1 {
		together = ", together " + share(e.harness)
	}
	return fmt.Sprintf("%s of the workers' busy time%s (limit %s): the storage waited for the "+
		"harness", strings.Join(names, ", "), together, share(waitLimit))
}

func (e *evidence) deleted() string {
	var what []string
	if e.removal() > 0 {
		what = append(what, fmt.Sprintf("deleting entries took %s of the workers' busy time",
			share(e.removal())))
	}
	if e.discards() > 0 {
		what = append(what, e.discarded())
	}
	text := strings.Join(what, " and ") + fmt.Sprintf(" (limit %s)", share(waitLimit))
	switch w := e.DeviceWitness; {
	case e.IO.Mode == result.IOObjects:
		text += "; what the store did with it after its answers is unknown"
	case e.inMemory():
		text += "; nothing was discarded: the files lie in memory, whose pages were freed"
	case w.DiscardNS == nil:
		text += "; the device's discards are not counted"
	case e.discards() == 0:
		text += "; the device discarded nothing meanwhile: it was the filesystem that freed room"
	}
	if e.slowed() {
		without, r := "without deletions", e.least()[0]
		if l := e.Harness.Ladder; disturbed(l) {
			without = fmt.Sprintf("with discards in %s of its time",
				units.Percent(l.DiscardShare))
		}
		text += fmt.Sprintf("; %s plain I/O moved %s with %d in flight for a moment, %s", without,
			rate(r.Rate()), r.InFlight, e.moved())
	}
	return text
}

// discarded is the kernel's count of discards, of all processes.
func (e *evidence) discarded() string {
	text := fmt.Sprintf("discards of %s, all processes' together, were at the device for up to %s "+
		"of the window", units.Bytes.Text(e.DeviceWitness.DiscardBytes), share(e.discards()))
	if !e.deletes() {
		text += ", though this run deleted nothing: they are of what was removed before, or of " +
			"another process"
	}
	return text
}

// copied is for files in memory, where more requests would not have moved more.
func (e *evidence) copied() string {
	return fmt.Sprintf("the files lie in memory (%s), where what a request takes is copying by "+
		"this process: %s, %s, %s", e.Environment.Filesystem.Type, e.flying(), e.moved(), e.tried())
}

func (e *evidence) few() string {
	b := &e.Harness.Busy
	bound := ""
	switch e.bound() {
	case WriteLimit:
		bound = fmt.Sprintf("the write limit (%d at a time, for which workers waited %s of their "+
			"busy time; -max-concurrent-allocs)", e.IO.MaxConcurrentAllocs,
			share(e.of(b.WriteLimitNS)))
	case Room:
		bound = fmt.Sprintf("room: for entries that others were reading or writing workers waited "+
			"%s of their busy time (-storage-capacity-gb)", share(e.of(b.RoomNS+b.WriterNS)))
	case Engine:
		bound = fmt.Sprintf("the engine's threads: requests waited for one of them for %s of the "+
			"workers' busy time (-layout)", share(e.of(b.EngineNS)))
	case Depth:
		bound = fmt.Sprintf("depth: each of %s had %d at most (-io-depth)",
			units.Plural(e.Workload.Workers, "worker"), e.IO.Depth)
	default:
		bound = fmt.Sprintf("the number of workers (%d, each with %d at most; -workers)",
			e.Workload.Workers, e.IO.Depth)
	}
	return fmt.Sprintf("%s, bounded by %s, and more would have moved more: %s, %s", e.flying(),
		bound, e.moved(), e.tried())
}

// unknown says what is known and what was missing.
func (e *evidence) unknown() string {
	var missing string
	l := e.Harness.Ladder
	switch yes, no := e.couldMore(); {
	case e.idle > idleLimit:
		missing = fmt.Sprintf("a window of %s is too short to tell a load that asks for little "+
			"from the beginning of one (%s at least)", units.Nanoseconds.Text(e.WindowNS),
			units.Nanoseconds.Text(int64(loadShows)))
	case e.Simulation != nil && e.Simulation.Device == nil:
		missing = "the storage of this simulation takes no time"
	case yes || no:
		missing = e.contradicts()
	case l == nil:
		missing = "whether more in flight would have moved more was not tried"
	case l.Reason != "":
		missing = "whether more in flight would have moved more is not known, because " + l.Reason
	case disturbed(l):
		missing = fmt.Sprintf("discards, all processes' together, were at the device for up to %s "+
			"of the time while plain I/O was tried, which therefore shows nothing",
			share(min(1, *l.DiscardShare))) // several at a time add up to more
	case units.OrZero(l.CPUShare) >= cpuLimit:
		missing = fmt.Sprintf("plain I/O took %s of the processors, which therefore shows nothing "+
			"of the storage", units.Percent(l.CPUShare))
	case len(l.Rungs) < 2:
		missing = "there was no room or memory to try more in flight"
	case e.rungs() == nil:
		missing = "plain I/O was tried for too short a time: fewer than four requests ended for " +
			"each that was in flight"
	case e.beyond():
		missing = fmt.Sprintf("%s and %s, which is less in any concurrency and therefore no "+
			"measure of it", e.moved(), e.tried())
	default:
		missing = fmt.Sprintf("%s, which is within the noise of both", e.tried())
	}
	took := "the harness took " + share(e.harness) + " of their busy time"
	if interrupted(e.Result) {
		took = "what the harness took of their busy time is not known of an interrupted run, " +
			"whose operations had not ended"
	}
	if e.discards() > waitLimit {
		missing += "; " + e.discarded()
	}
	idle := "idle"
	if e.Harness.Busy.ThinkingNS > 0 {
		idle = "idle or waited for a GPU for"
	}
	return fmt.Sprintf("nothing shows what the limit was: workers were %s %s, %s, %s; %s", idle,
		share(e.idle), took, e.flying(), missing)
}

// contradicts says why a saturated storage is not called the limit.
func (e *evidence) contradicts() string {
	var but string
	switch other := e.of(e.Harness.Busy.OtherTiersNS); {
	case e.fromCache():
		but = "a cache answered reads, not the device"
	case other > waitLimit:
		but = fmt.Sprintf("other tiers took %s of the busy time", share(other))
	default:
		busy := "the device's busy time is unknown"
		if of := e.DeviceWitness.BusyShare; of != nil {
			busy = fmt.Sprintf("the device was busy %s of the window only", units.Percent(of))
		}
		but = fmt.Sprintf("%s and %s: %s", e.moved(), busy, e.tried())
	}
	return "more in flight would not have moved more, but " + but
}

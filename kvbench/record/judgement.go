package record

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/kvbench/verdict"
	"kvbench/tiers"
)

// failedShare is the largest share of failed operations of a complete trial. It is a convention.
const failedShare = 0.01

// busy adds the times of operations to the busy times that the workload reported.
func (b *builder) busy() {
	h, n := &b.r.Harness, b.n.Busy
	n.DispatchNS, n.ThinkingNS = h.Busy.DispatchNS, h.Busy.ThinkingNS
	for _, t := range b.r.Tiers {
		n.RoomNS += t.RoomNS
	}
	n.RemovalNS = max(n.RemovalNS, h.Busy.RemovalNS) // the latter includes the wait for discards
	// A request is at the device, in this process, or waits for an engine's threads. Several requests
	// of one operation may be in flight, so the operation's time is divided in the same proportion.
	handover, held := b.n.HandoverNS[tiers.Storage], b.n.HeldNS[tiers.Storage]
	t := &b.n.Tiers[tiers.Storage]
	all := handover + held + t.Read.InFlightNS + t.Write.InFlightNS
	n.HandoverNS = int64(units.OrZero(units.Ratio(handover, all)) * float64(n.StorageNS))
	n.EngineNS = int64(units.OrZero(units.Ratio(held, all)) * float64(n.StorageNS))
	h.Busy = n
}

// deviceCounters writes the application's bytes next to the kernel's counters, for comparison.
func (b *builder) deviceCounters() {
	w := &b.r.DeviceCounters
	stored := &b.n.Tiers[tiers.Storage]
	w.AppReadBytes, w.AppWriteBytes = stored.Read.Bytes, stored.Write.Bytes
	if w.Device == "" && w.Reason == "" {
		w.Reason = "no backing device was looked for"
	}
}

// roots adds the counts of requests to each of several directories.
func (b *builder) roots() {
	b.r.IO.Roots = slices.Clone(b.r.IO.Roots)
	for i := range min(len(b.r.IO.Roots), len(b.parts)) {
		root := &b.r.IO.Roots[i]
		root.Read, root.Write = b.parts[i][tiers.Read], b.parts[i][tiers.Write]
	}
}

// ceiling compares the storage tier's bytes with the bytes that plain I/O would have moved in the
// same mix and time. Between two measured mixes the time per byte is interpolated linearly: plain I/O
// reaches that on any device by moving a part of the bytes in one mix and the rest in the other. A
// medium that executes both directions one after the other is no faster. A full-duplex medium is
// faster between the points, most at the share where both directions are full: there a load can
// exceed the ceiling unless its own share of reads was measured (-read-share). Outside the measured
// shares the ceiling is unknown.
func (b *builder) ceiling() {
	c := b.r.Ceiling
	if c == nil {
		return
	}
	read := float64(b.n.traffic(tiers.Storage, tiers.Read).Bytes)
	bytes := read + float64(b.n.traffic(tiers.Storage, tiers.Write).Bytes)
	if bytes == 0 {
		return
	}
	if perByte, ok := timePerByte(c.Points, read/bytes); ok {
		b.r.CeilingRatio = units.Ratio(bytes*perByte, b.window.Seconds())
	}
}

// timePerByte is the seconds that plain I/O takes for a byte of a load with a share of reads. The
// points are in the order of their shares. A point within a hundredth of the share is used as it is:
// loads do not keep their mix more exactly.
func timePerByte(points []result.CeilingPoint, share float64) (seconds float64, ok bool) {
	const near = 0.01
	above, _ := slices.BinarySearchFunc(points, share,
		func(p result.CeilingPoint, share float64) int { return cmp.Compare(p.ReadShare, share) })
	for _, p := range points[max(above-1, 0):min(above+1, len(points))] {
		if math.Abs(p.ReadShare-share) <= near {
			return 1 / p.Rate, true
		}
	}
	if above == 0 || above == len(points) {
		return 0, false
	}
	lo, hi := points[above-1], points[above]
	at := (share - lo.ReadShare) / (hi.ReadShare - lo.ReadShare)
	return (1-at)/lo.Rate + at/hi.Rate, true
}

// simulation completes the section of a simulated run, except for the number of users that the
// device sustains: the caller finds it by simulating fewer users.
func (b *builder) simulation() {
	r, s := b.r, b.r.Simulation
	if s == nil {
		return
	}
	s.Notice = result.SimulatedNotice
	if s.Device == nil {
		r.Notice = result.SimulatedNotice + "; operations took no time, so the mix is that of " +
			"infinitely fast storage, not of an overloaded real run"
		return
	}
	r.Notice = result.SimulatedNotice + "; times are those of the " + s.Device.String()
	s.DeviceBusyShare = units.Ratio(b.info.MediumBusy, b.window)
	total := r.Load["total"]
	s.QueueGrowth = b.perSecond(total.Queued + total.InFlight - total.CarriedIn)
}

// validation compares the run with the recorded one. The hit ratio is one of the numbers, so this
// comes after the counts. A recorded request only shows whether it hit at all: the run's ratio is
// the share of requests that found at least one token of their prompt.
func (b *builder) validation() {
	v, moved := b.r.Recording, &b.r.Moved
	if v == nil {
		return
	}
	ratio := units.Ratio(moved.ReadBytes, moved.WriteBytes)
	if v.Judge(b.r.Prompt.RequestHitRatio, ratio); !v.Passed {
		b.warn("the run is not within %.0f %% of the recorded one in %s", 100*v.Tolerance, v.Trace)
	}
}

// warn adds a warning that a reader needs to judge the numbers.
func (b *builder) warn(format string, args ...any) {
	b.r.Warnings = append(b.r.Warnings, fmt.Sprintf(format, args...))
}

// awayAbove is the share of the workers' busy time above which pauses between attempts at a store
// cause a warning. It equals failedShare.
const awayAbove = 0.01

// warnings adds warnings after the engine's own, and before the warnings of the kernel's trace.
func (b *builder) warnings() {
	r := b.r
	if w := r.DeviceCounters; w.ServedFromCache != nil && *w.ServedFromCache {
		b.warn("the device read only %s of the bytes that the application read (%s of %s): the "+
			"rest was served from a cache, so read figures are not the device's",
			units.Percent(w.ReadRatio), units.Bytes.Text(w.ReadBytes),
			units.Bytes.Text(w.AppReadBytes))
	} else if text := w.ReadByOthers(); text != "" && r.Ranks <= 1 {
		// Other ranks may use the device: the merged result compares the sum of all ranks.
		b.warn("%s", text)
	}
	if n := r.Network; n.Short() {
		b.warn("only %s came from the network where the application read %s (ratio %s): the rest "+
			"came from elsewhere, so read figures are not the store's",
			units.Bytes.Text(n.ReceivedBytes), units.Bytes.Text(r.DeviceCounters.AppReadBytes),
			units.Number.Text(n.ReadRatio))
	}
	if o, busy := r.Objects, r.Harness.WorkerBusyNS; o != nil && busy > 0 &&
		float64(o.BackoffNS) > awayAbove*float64(busy) {
		b.warn("requests waited %s in all for their next attempt (%s of the workers' busy time): "+
			"the store was away or refused them for a while, which rates and latencies hold",
			units.Nanoseconds.Text(o.BackoffNS), units.Percent(units.Ratio(o.BackoffNS, busy)))
	}
	if o := r.Objects; o != nil && o.EarlierBackoffNS > 0 {
		b.warn("before the window requests waited %s in all for their next attempt: the store was away or "+
			"refused them; what was measured then does not contain these requests",
			units.Nanoseconds.Text(o.EarlierBackoffNS))
	}
	b.recording()
	b.sweep()
	b.unfilledBucket()
	b.shortWindow()
	if p := r.IO.Pool; p.Buffers > 0 && !p.Covers {
		b.warn("the buffer pool (%d × %s) does not cover workers × depth: operations may wait "+
			"for buffers (admission)", p.Buffers, units.Bytes.Text(p.BufferBytes))
	}
	var censored []string
	for _, c := range result.Classes {
		if o := r.Load[c]; o.Censored {
			censored = append(censored, c+" "+units.Percent(o.CensoredRatio))
		}
	}
	if len(censored) > 0 {
		b.warn("request latencies are censored: unfinished at the end of the window were %s; the "+
			"slowest are not in the percentiles", strings.Join(censored, ", "))
	}
	if n := r.Requests.FailedOperations; n > 0 {
		b.warn("%s failed, most often %s", units.Plural(n, "operation"), r.Errors[0])
	}
	if n := r.Requests.RetriedOperations; n > 0 {
		b.warn("%s after transient errors", units.Plural(n, "repetition"))
	}
	r.Warnings = append(r.Warnings, b.info.TraceWarnings...)
}

// recording warns if only a part of a recording was replayed, or if most of its rows were not used. The hit ratio of
// a block trace grows along the trace, and the length of the part depends on the drive.
func (b *builder) recording() {
	r, in := b.r, b.r.Input
	if in == nil {
		return
	}
	if r.PartOfInput() {
		cure := "with -benchtime 10h and no -max-requests the run ends with it"
		if fmt.Sprint(r.Parameter("replay-cycles")) == "0" {
			cure = "with -replay-cycles 1, -benchtime 10h and no -max-requests the run ends with it"
		}
		if pace := r.Parameter("trace-speedup"); pace != nil && fmt.Sprint(pace) != "0" {
			cure += ", and -trace-speedup 0 leaves out its pauses"
		}
		b.warn("only the first %s of the recording were replayed before the run ended (%s): its numbers, and hit "+
			"ratios above all, are those of this part; %s", units.Plural(in.Rows, "row"), r.EndedBy, cure)
	}
	if 2*(in.Failed+in.Malformed) > in.Rows {
		b.warn("most of the input is not used: of %s %s have no answer and %s are malformed",
			units.Plural(in.Rows, "row"), units.Count.Text(in.Failed), units.Count.Text(in.Malformed))
	}
}

// unfilledBucket warns of a window in which an engine's bucket never filled: all writes were copies
// into memory, so that the result shows nothing about the storage.
func (b *builder) unfilledBucket() {
	_, w := b.r.StorageTraffic()
	if w.MemoryBytes > 0 && w.Bytes == 0 {
		b.warn("nothing was written: the engine's bucket never filled (%s or %d objects), so that "+
			"the storage was not touched; measure for longer",
			units.Bytes.Text(int64(tiers.BucketBytes)), tiers.BucketKeys)
	}
}

// otherRate is the factor between the rates of window and sweep above which one of them was disturbed.
const otherRate = 2

// sweep warns if the queue-depth sweep cannot have found the number in flight: by itself, or because the
// window moved much more or less with as many. A window with removals is not compared, because the sweep removes nothing.
func (b *builder) sweep() {
	p := b.r.PlainIO
	if p == nil {
		return
	}
	read, write := b.r.StorageTraffic()
	rate := units.OrZero(units.Ratio(read.Bytes+write.Bytes, b.window.Seconds()))
	for _, s := range p.Sweep {
		if s.InFlight == b.r.Workload.Workers && rate > 0 && b.r.Tier("storage").Deleted.Entries == 0 &&
			(rate > otherRate*s.Rate() || rate < s.Rate()/otherRate) {
			p.SweepDoubt = cmp.Or(p.SweepDoubt, fmt.Sprintf("the queue-depth sweep moved %s with %d in flight, the window "+
				"%s: one of them was disturbed, and another number may move more", units.BytesPerSec.Text(s.Rate()),
				s.InFlight, units.BytesPerSec.Text(rate)))
		}
	}
	if p.SweepDoubt != "" {
		b.warn("%s", p.SweepDoubt)
	}
}

// shortWindow warns if more was in flight at the end of the window than had completed: such a window
// shows the beginning of a load only. By Little's law one request takes as long as all those in
// flight take to complete at this rate.
func (b *builder) shortWindow() {
	r := b.r
	done, cut := r.Completions(), r.Load["total"].InFlight
	if r.CompletionUnit == result.UnitOperation {
		cut = r.Requests.CancelledOperations
	}
	if done == 0 || done >= cut || r.EndedBy != result.EndedByDeadline {
		return
	}
	each := time.Duration(float64(b.window) * float64(cut) / float64(done))
	b.warn("the window of %s is too short for this load: %s completed in it and %s were in flight "+
		"at its end; one takes about %s at this rate, so measure for several times that",
		units.Nanoseconds.Text(int64(b.window)), units.Plural(done, r.CompletionUnit),
		units.Count.Text(cut), units.Nanoseconds.Text(int64(each)))
}

// status decides the outcome by the first reason of: what ended the trial, too many failures,
// nothing completed. It never makes the engine's own status better.
func (b *builder) status() {
	r := b.r
	r.Status = cmp.Or(r.Status, result.StatusComplete)
	fail := func(format string, args ...any) {
		if r.Status != result.StatusIncomplete { // an interruption explains all else
			r.Status = result.StatusFailed
		}
		r.Error = cmp.Or(r.Error, fmt.Sprintf(format, args...))
	}
	for _, e := range r.ErrorSamples {
		if e.Fatal {
			fail("%s %s of %s: %s", e.Tier, e.Operation, e.Where(), e.Message)
			r.Status = result.StatusFailed
		}
	}
	// Failures in the window are compared with its operations, other failures with the other
	// operations: a long warm-up neither hides failures in the window nor adds its own.
	judge := func(failed, all int64, where string) {
		if share := units.Ratio(failed, all); units.OrZero(share) > failedShare {
			fail("%d of %d operations %s failed (%s, at most %s may), most often %s", failed, all,
				where, units.Percent(share), units.Share.Text(failedShare), r.Errors[0])
		}
	}
	inside := int64(0)
	for _, t := range r.Tiers {
		inside += t.Read.Operations + t.Write.Operations + t.DemotedOut.Entries +
			t.DemotedIn.Entries + t.Deleted.Entries
	}
	failed := r.Requests.FailedInWindow
	judge(failed, failed+inside, "of the window")
	judge(b.failedAround, b.failedAround+b.rec.around.good.Load(), "before and after the window")
	if failed := r.Requests.FailedOperations; failed > 0 && r.Division == result.DivisionClosed {
		fail("%s failed and the closed division allows none, most often %s",
			units.Plural(failed, "operation"), r.Errors[0])
	}
	if broken := r.Checkpoint.Broken(); broken != "" && r.Division == result.DivisionClosed {
		fail("the closed division: %s", broken)
	}
	if r.Completions() == 0 {
		advice := "use a longer window, smaller entries or fewer users"
		if r.Harness.Verdict.Kind == result.LoadLimited { // too few requests came
			advice = "use a longer window, or a load with more requests"
		}
		if r.Division == result.DivisionClosed { // it allows no other load
			advice = "the closed division fixes all but the window of a rehearsal (-benchtime)"
		}
		fail("no %s completed in the window of %s: %s; %s", r.CompletionUnit,
			b.window.Round(time.Millisecond), r.Harness.Verdict.Reason, advice)
	}
	if r.Status == result.StatusFailed { // the message above has what was measured
		r.Harness.Verdict = verdict.Judge(r)
	}
}

package record

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/workloads"
)

// failedShare of the operations is what a trial survives.
const failedShare = 0.01

// errors copies the failure table, most frequent first.
func (b *builder) errors(r *result.Result) {
	f := &b.rec.failures
	f.mu.Lock()
	defer f.mu.Unlock()
	r.Errors, r.ErrorSamples = []result.ErrorCount{}, []result.ErrorSample{}
	for k, n := range f.by {
		r.Errors = append(r.Errors, result.ErrorCount{Tier: k.level.String(), Operation: k.op.String(), Errno: k.errno, Count: n})
	}
	slices.SortFunc(r.Errors, func(x, y result.ErrorCount) int {
		return cmp.Or(cmp.Compare(y.Count, x.Count), cmp.Compare(x.Tier, y.Tier), cmp.Compare(x.Operation, y.Operation),
			cmp.Compare(x.Errno, y.Errno))
	})
	for _, s := range f.first {
		r.ErrorSamples = append(r.ErrorSamples, errorSample(s))
	}
	if f.fatal != nil && !slices.ContainsFunc(f.first, func(s FailureSample) bool { return s.Fatal }) {
		r.ErrorSamples = append(r.ErrorSamples, errorSample(*f.fatal))
	}
}

func errorSample(s FailureSample) result.ErrorSample {
	e := result.ErrorSample{
		Tier: s.Level.String(), Operation: s.Op.String(), Errno: s.Errno, Key: s.Key, Fatal: s.Fatal,
	}
	if s.Offset >= 0 {
		e.Offset = new(s.Offset)
	}
	if s.Err != nil {
		e.Message = s.Err.Error()
	}
	return e
}

// warnings lists what a reader must know before believing the numbers, the engine's own first.
func (b *builder) warnings(r *result.Result) {
	warn := func(format string, args ...any) { r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...)) }
	if w := r.DeviceWitness; w.ServedFromCache != nil && *w.ServedFromCache {
		warn("the device read only %s of the bytes that the application read (%s of %s): the rest was served from a cache, so read "+
			"figures are not the device's", units.Percent(w.ReadRatio), units.Bytes.Text(*w.ReadBytes), units.Bytes.Text(w.AppReadBytes))
	}
	if p := r.IO.Pool; p.Buffers > 0 && !p.Covers {
		warn("the buffer pool (%d × %s) does not cover workers × depth: operations may wait for buffers (admission)",
			p.Buffers, units.Bytes.Text(p.BufferBytes))
	}
	var censored []string
	for c := int(workloads.NumClasses) - 1; c >= 0; c-- {
		if o := b.loads[c]; o.Censored {
			censored = append(censored, fmt.Sprintf("%s %s", workloads.Class(c), units.Percent(o.CensoredRatio)))
		}
	}
	if len(censored) > 0 {
		warn("request latencies are censored: unfinished at the end of the window were %s; the slowest are not in the percentiles",
			strings.Join(censored, ", "))
	}
	if n := r.Requests.FailedOperations; n > 0 {
		warn("%s failed, most often %s", units.Plural(n, "operation"), describeError(r.Errors[0]))
	}
	if n := r.Requests.RetriedOperations; n > 0 {
		warn("%s after transient errors", units.Plural(n, "repetition"))
	}
	for _, d := range []result.Distribution{r.Latency.Request.EndToEnd, r.Latency.Request.Queue} {
		if d.OutOfRange > 0 {
			warn("%d request latencies exceed a day and count as one", d.OutOfRange)
			break
		}
	}
}

func describeError(e result.ErrorCount) string {
	return fmt.Sprintf("%s %s: %s", e.Tier, e.Operation, e.Errno)
}

// status decides the outcome. It only ever makes the engine's word worse: what the engine calls failed stays so.
func (b *builder) status(r *result.Result) {
	r.Status = cmp.Or(r.Status, result.StatusComplete)
	fail := func(format string, args ...any) {
		if r.Status != result.StatusIncomplete { // interrupted: whatever is missing, that is why
			r.Status = result.StatusFailed
		}
		if r.Error == "" {
			r.Error = fmt.Sprintf(format, args...)
		}
	}
	failed := r.Requests.FailedOperations
	all := failed + b.t.n.over(opDone) + b.t.n.over(opDemotion)
	if f := b.rec.failures.fatalSample(); f != nil {
		e := errorSample(*f)
		fail("%s %s of %s: %s", e.Tier, e.Operation, e.Where(), e.Message)
		r.Status = result.StatusFailed
	}
	if share := units.Ratio(failed, all); units.OrZero(share) > failedShare {
		fail("%d of %d operations failed (%s, at most %s may), most often %s", failed, all, units.Percent(share),
			units.Percent(new(failedShare)), describeError(r.Errors[0]))
	} else if failed > 0 && r.Division == result.DivisionClosed {
		fail("%s failed and the closed division allows none, most often %s", units.Plural(failed, "operation"), describeError(r.Errors[0]))
	}
	if b.completions() == 0 {
		fail("no %s completed in the window of %s: %s", r.CompletionUnit, b.window.Round(time.Millisecond), b.slowestStage())
	}
}

func (f *failures) fatalSample() *FailureSample {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fatal
}

// completions counts what the trial is counted in.
func (b *builder) completions() int64 {
	if b.info.CompletionUnit != result.UnitOperation {
		return b.sum(sumRequests)
	}
	return b.t.n.over(opDone)
}

// slowestStage names where time went when nothing completed, cancelled operations included.
func (b *builder) slowestStage() string {
	slowest := stage(0)
	for s := range numStages {
		if b.sum(stageSum(s)) > b.sum(stageSum(slowest)) {
			slowest = s
		}
	}
	spent := time.Duration(b.sum(stageSum(slowest)))
	var started, queued int64
	for c, o := range b.loads {
		started += max(b.info.Requests[c].Started, o.InFlight)
		queued += o.Queued
	}
	switch {
	case b.info.CompletionUnit == result.UnitOperation:
		return "none of them is that fast; use a longer window or smaller entries"
	case spent > 0:
		return fmt.Sprintf("the slowest stage was %s (%s summed over workers, %d operations cut off); use a longer window, smaller "+
			"entries or fewer users", stageNames[slowest], spent.Round(time.Millisecond), b.t.n.over(opCancelled))
	case started > 0:
		return fmt.Sprintf("the slowest stage was the workers: %d requests were started and no operation of theirs ended", started)
	case queued > 0:
		return fmt.Sprintf("the slowest stage was the queue: %d requests waited and none was started", queued)
	}
	return "the slowest stage was the load: no request arrived; use a longer window or more users"
}

package kvbench

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"kvbench/kvbench/result"
	"kvbench/tiers/ioengine"
)

// ErrUnanswered is in the error of a trial that ended because a device did not answer for
// StorageConfig.IOTimeout.
var ErrUnanswered = errors.New("the storage does not answer")

// stallWarning is the shortest stall that is a warning in the result. The result has shorter ones,
// too: devices with long queues rarely take longer than some seconds.
const stallWarning = 10 * time.Second

// attend ends the trial when the storage leaves a request or call unanswered for longer than
// IOTimeout. It returns when the trial is over.
func (t *trial) attend(over <-chan struct{}) {
	limit := t.cfg.Storage.IOTimeout
	// Eight times in IOTimeout: the trial ends an eighth late at most.
	tick := time.NewTicker(min(max(limit/8, time.Millisecond), time.Second))
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case <-tick.C:
		}
		if err := t.unanswered(limit); err != nil {
			t.Fail(err, result.EndedByError)
			close(t.hung)
			return
		}
	}
}

// stuck returns the calls of the engine, and the read of the input, that have been in flight for
// longer than the limit.
func (t *trial) stuck(limit time.Duration) (all []ioengine.Stuck) {
	if t.engine != nil {
		all = t.engine.Stuck(nil, limit)
	}
	if t.counted != nil {
		if path, since := t.counted.Waits(); since > limit {
			all = append(all, ioengine.Stuck{What: "reading", Path: path, For: since})
		}
	}
	return all
}

// unanswered returns an error if a call has been in flight for longer than the limit.
func (t *trial) unanswered(limit time.Duration) error {
	stuck := t.stuck(limit)
	if len(stuck) == 0 {
		return nil
	}
	oldest := slices.MaxFunc(stuck,
		func(a, b ioengine.Stuck) int { return cmp.Compare(a.For, b.For) })
	others := ""
	if n := len(stuck) - 1; n > 0 {
		others = fmt.Sprintf(" (and of %d others)", n)
	}
	return fmt.Errorf("%w: %s%s, for %s, longer than -io-timeout %s: the kernel log (dmesg) may "+
		"say why; processes that wait for it end only when it answers, or is aborted",
		ErrUnanswered, oldest, others, oldest.For.Round(time.Millisecond), limit)
}

// stalls notes the calls that the storage answered late, or not at all.
func (t *trial) stalls() {
	if gap := time.Duration(t.stopped.Load()); gap > 0 {
		t.warn(fmt.Sprintf("this process did not run for %s: it was stopped (SIGSTOP), or had no "+
			"processor; requests in flight look that much slower", gap.Round(time.Second/10)))
	}
	if t.engine == nil {
		return
	}
	all := t.engine.Stalls()
	if all.Count == 0 {
		return
	}
	in := &result.Stalls{AfterNS: int64(ioengine.StallAfter), Count: all.Count,
		LongestNS: int64(all.Longest[0].For)}
	for _, s := range all.Longest {
		in.Longest = append(in.Longest, result.Stall{Operation: s.What, Path: s.Path, Offset: s.Off,
			Bytes: int64(s.N), BegunNS: int64(s.Begun - t.begun), LengthNS: int64(s.For),
			Answered: s.Answered})
	}
	t.info.Stalls = in
	if longest := all.Longest[0]; longest.For > stallWarning {
		t.warn(fmt.Sprintf("the device had a request for %s without an answer: %s",
			longest.For.Round(time.Second), longest))
	}
}

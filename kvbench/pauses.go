package kvbench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/workloads"
)

// pauses finds the pauses of this process: SIGSTOP, a frozen control group, a virtual machine that stands still.
// A thread wakes up each pauseTick of CLOCK_MONOTONIC. If it wakes up late by pauseLeast or more, the process
// was paused, unless the thread waited for a CPU for half of that time or longer: the kernel counts that wait
// (/proc/thread-self/schedstat) for a thread that may run, and not for a stopped one. So a busy machine is no
// pause. Shorter stops are not seen. Neither is a suspend of the machine, in which the clock stands, too.
type pauses struct {
	now func() time.Duration // the trial's clock

	mu     sync.Mutex
	woken  *sync.Cond    // after each tick
	last   time.Duration // the last tick
	waited time.Duration // for a CPU, until the last tick
	ended  bool
	list   []pause
}

type pause struct{ begin, end time.Duration }

const pauseTick, pauseLeast = 100 * time.Millisecond, time.Second

func newPauses(now func() time.Duration) *pauses {
	p := &pauses{now: now, last: now()}
	p.woken = sync.NewCond(&p.mu)
	return p
}

// watch looks for pauses until ctx ends.
func (p *pauses) watch(ctx context.Context) {
	runtime.LockOSThread() // the wait for a CPU is of one thread
	defer runtime.UnlockOSThread()
	stat, err := os.Open("/proc/thread-self/schedstat")
	if err == nil {
		defer stat.Close()
	}
	text := make([]byte, 128)
	for ctx.Err() == nil {
		waited := time.Duration(0)
		if err == nil { // the second of its numbers, in ns
			n, _ := stat.ReadAt(text, 0)
			if all := bytes.Fields(text[:n]); len(all) > 1 {
				ns, _ := strconv.ParseInt(string(all[1]), 10, 64)
				waited = time.Duration(ns)
			}
		}
		p.tick(p.now(), waited)
		select {
		case <-time.After(pauseTick):
		case <-ctx.Done():
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.woken.Broadcast()
}

// tick takes a wake-up of the thread, which has waited for a CPU for so long in all.
func (p *pauses) tick(now, waited time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	late := now - p.last - pauseTick
	if late >= pauseLeast && 2*(waited-p.waited) < late {
		p.list = append(p.list, pause{now - late, now})
	}
	p.last, p.waited = now, waited
	p.woken.Broadcast()
}

// within returns how long the process was paused in the last time of that length. After a pause it may run
// before the thread has woken up, and waits for it.
func (p *pauses) within(length time.Duration) (paused time.Duration) {
	if length < pauseLeast {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	for !p.ended && now-p.last >= pauseLeast {
		p.woken.Wait()
	}
	for _, one := range p.list {
		paused += max(0, min(now, one.end)-max(now-length, one.begin))
	}
	return paused
}

// of returns the pauses as those of a rank. begun is the time at which the trial began.
func (p *pauses) of(rank int, begun time.Duration) (list []result.Pause) {
	p.within(pauseLeast) // waits for a tick that is late
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	for _, one := range p.list {
		list = append(list, result.Pause{Rank: rank, Time: time.Now().Add(one.begin - now).UTC().Format(result.PauseTime),
			BegunNS: int64(one.begin - begun), LengthNS: int64(one.end - one.begin)})
	}
	return list
}

// WatchPauses looks for pauses of this process until end is called, which returns them as those of a rank.
func WatchPauses(rank int) (end func() []result.Pause) {
	begun := time.Now()
	p, stop := watchPauses(func() time.Duration { return time.Since(begun) })
	return func() []result.Pause {
		defer stop()
		return p.of(rank, 0)
	}
}

// watchPauses looks for pauses until stop is called.
func watchPauses(now func() time.Duration) (p *pauses, stop func()) {
	p = newPauses(now)
	ctx, end := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); p.watch(ctx) }()
	return p, func() { end(); <-done }
}

// pauseInfo writes the pauses into the result.
func (t *trial) pauseInfo() {
	if t.pauses == nil {
		return
	}
	start, end := t.Rec.Window()
	var texts []string
	t.info.Pauses = t.pauses.of(t.info.Rank, t.begun)
	for i, one := range t.info.Pauses {
		begin := t.begun + time.Duration(one.BegunNS)
		in := start != workloads.Never && begin <= end && begin+time.Duration(one.LengthNS) >= start
		t.info.Pauses[i].InWindow = in
		texts = append(texts, t.info.Pauses[i].String())
	}
	if len(texts) > 0 {
		t.warn(fmt.Sprintf("this process was paused %s (SIGSTOP, a frozen container, a virtual machine that stood "+
			"still): %s; requests in flight then are in no latency and count as no stall",
			units.Plural(len(texts), "time"), strings.Join(texts, ", ")))
	}
}

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

// pauseInfo writes the pauses into the result.
func (t *trial) pauseInfo() {
	if t.pauses == nil {
		return
	}
	t.pauses.within(pauseLeast) // waits for a tick that is late
	t.pauses.mu.Lock()
	defer t.pauses.mu.Unlock()
	start, end := t.Rec.Window()
	now := t.Clock.Now()
	var texts []string
	for _, one := range t.pauses.list {
		in := start != workloads.Never && one.begin <= end && one.end >= start
		begin := time.Now().Add(one.begin - now).UTC()
		t.info.Pauses = append(t.info.Pauses, result.Pause{Rank: t.info.Rank, Time: begin.Format(time.RFC3339),
			BegunNS: int64(one.begin - t.begun), LengthNS: int64(one.end - one.begin), InWindow: in})
		texts = append(texts, t.info.Pauses[len(t.info.Pauses)-1].String())
	}
	if len(texts) > 0 {
		t.warn(fmt.Sprintf("this process was paused %s (SIGSTOP, a frozen container, a virtual machine that stood "+
			"still): %s; requests in flight then are in no latency and count as no stall",
			units.Plural(len(texts), "time"), strings.Join(texts, ", ")))
	}
}

package objecttier

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"kvbench/tiers/objecttier/store"
	"kvbench/tiers/workdir"
)

// markerName is the object that says that a prefix is the suite's, and whose run works in it.
const markerName = ".kvbench.json"

const markerNote = "made by kvbench, which removes its own objects from here " +
	"at its end or at its next start"

// A store has no locks. A run that lives says so every heartbeat; one that has not for deadAfter,
// by the store's own clock, is dead. Four beats may be lost to a store that is overloaded.
const (
	heartbeat = 30 * time.Second
	deadAfter = 120 * time.Second
)

// Process is who works in a prefix.
type Process struct {
	PID  int    `json:"pid"`
	Host string `json:"host"`
	// Boot is this start of the machine, and Space where process numbers count: two containers
	// share the first and have numbers of their own.
	Boot  string `json:"boot_id"`
	Space string `json:"pid_namespace"`
}

// thisProcess is the one that asks. Where the kernel does not say which boot or namespace it is, a
// process is never taken for dead by its number.
func thisProcess() *Process {
	p := &Process{PID: os.Getpid()}
	p.Host, _ = os.Hostname()
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	p.Boot = strings.TrimSpace(string(boot))
	p.Space, _ = os.Readlink("/proc/self/ns/pid")
	return p
}

// dead says that a process is known to have ended: one of this boot, whose number nobody has.
func (p Process) dead(now *Process) bool {
	return p.Boot != "" && p.Boot == now.Boot && p.Space == now.Space && p.Space != "" &&
		p.PID > 0 && errors.Is(syscall.Kill(p.PID, 0), syscall.ESRCH)
}

// marker is the marker's text: whose run it is, for people and for dead, and what it calls its
// objects, for the one that reclaims them.
type marker struct {
	Note    string    `json:"kvbench_owned_prefix"`
	Nonce   string    `json:"nonce"`
	Of      int       `json:"rank"`
	Started time.Time `json:"started"`
	Beat    int64     `json:"heartbeats"` // makes each text another one
	// Ended: the run has gone and left its objects, to be kept or because they could not be
	// deleted. Nobody has to wait until it is taken for dead, be it the same process.
	Ended bool `json:"ended,omitempty"`
	Process
	Names
	// Before are the names of earlier runs whose objects may still lie there: the start that was to
	// reclaim them has not come to its end.
	Before []Names `json:"names_before,omitempty"`
	// Contents is what a folder has to know of its objects, and ContentsBefore what those of
	// earlier runs had, as long as theirs may still lie there.
	Contents       json.RawMessage   `json:"contents,omitempty"`
	ContentsBefore []json.RawMessage `json:"contents_before,omitempty"`
}

// all are the names that objects may have.
func (m marker) all() []Names { return append(slices.Clone(m.Before), m.Names) }

// InUseError says that another run works in the prefix.
type InUseError struct {
	URL  string
	PID  int
	Host string
	Age  time.Duration // of its last heartbeat
}

func (e *InUseError) Error() string {
	who := "another run"
	if e.PID != 0 {
		who = fmt.Sprintf("process %d on %s", e.PID, e.Host)
	}
	return fmt.Sprintf("%s is in use by %s, which said so %v ago; wait for it to end (or %v, if "+
		"it is dead), or give another -cache-dir or -rank", e.URL, who,
		e.Age.Round(time.Second), deadAfter)
}

// owner is the marker of a run, and what keeps it fresh. It stands in for a lock, as far as a store
// that can compare before it writes allows: two runs that start at once are told apart, one that is
// dead is found out, and one that was taken for dead notices and deletes nothing any more.
type owner struct {
	t     *Tier
	at    *store.Client   // who is asked for the marker
	old   marker          // of the run before, if there was one
	fresh bool            // there was none
	stays bool            // what it left is what this one wants
	left  []workdir.Names // of earlier runs in a folder
	mu    sync.Mutex      // of what follows, once the tier is open
	etag  string
	mark  marker
	// unguarded: the store ignores conditions
	unguarded bool
	beats     context.CancelFunc
	ended     sync.WaitGroup
	taken     atomic.Bool // another run has taken the prefix over
	// litter: an upload may be in the store that nobody knows of.
	litter atomic.Bool
	// foreign: something below the prefix is nobody's that the run knows.
	foreign atomic.Bool
}

// key is the marker's, in the bucket.
func (o *owner) key() string { return o.t.base + markerName }

// take makes the marker, or takes over that of a dead run.
func (o *owner) take(ctx context.Context) error {
	c := &o.t.cfg
	o.mark = marker{Note: markerNote, Nonce: c.Nonce, Of: c.Rank, Started: time.Now().UTC(),
		Process: *c.Process, Names: c.Names}
	// Between reading it and writing it another run may do the same: one of both is told that it
	// has changed, by a store that knows conditions.
	info, text, err := o.read(ctx)
	only := store.Condition{ETag: info.ETag}
	switch {
	case errors.Is(err, store.ErrNoKey):
		// Without a marker nobody knows by whose names to look for what may be deleted.
		if err := o.nothingInside(ctx); err != nil {
			return err
		}
		o.fresh, only = true, store.Condition{Absent: true}
		if err := o.recall(); err != nil {
			return err
		}
	case err != nil:
		return err
	default:
		if err := o.judge(info, text); err != nil {
			return err
		}
	}
	if err := o.write(ctx, only); err != nil {
		if errors.Is(err, store.ErrExists) { // somebody was quicker
			return &InUseError{URL: o.t.URL()}
		}
		return err
	}
	return o.try(ctx)
}

// read is the marker that is there.
func (o *owner) read(ctx context.Context) (info store.Info, text []byte, err error) {
	if info, err = o.at.Head(ctx, o.key()); err != nil {
		if !errors.Is(err, store.ErrNoKey) {
			return info, nil, o.explained(ctx, err)
		}
		// HEAD has no body, in which a store would say that it is the bucket that is missing.
		if missing := o.bucket(ctx); missing != nil {
			return info, nil, missing
		}
		return info, nil, err
	}
	if info.Size > 1<<16 {
		return info, nil, nil
	}
	_, err = o.at.Get(ctx, o.key(), store.Range{N: info.Size, Of: info.Size},
		make([]byte, info.Size), func(p []byte, _ int64) error {
			text = append(text, p...)
			return nil
		})
	return info, text, err
}

// bucket asks for the first key of the prefix: whether there is a bucket to ask.
func (o *owner) bucket(ctx context.Context) error {
	return o.at.List(ctx, o.t.base, func(store.Info) bool { return false })
}

// explained is the error of a HEAD, or the same with a body that says why.
func (o *owner) explained(ctx context.Context, err error) error {
	if e, ok := errors.AsType[*store.Error](err); ok && e.Status >= 400 {
		if more := o.bucket(ctx); more != nil {
			return more
		}
	}
	return err
}

// judge says why a marker keeps the run out, if it does, and remembers whose it was.
func (o *owner) judge(info store.Info, text []byte) error {
	var old marker
	// Whatever cannot be read to the end is not ours: what it says decides what is deleted.
	if json.Unmarshal(text, &old) != nil || old.Note == "" || old.Names.validate() != nil {
		return fmt.Errorf("%s/%s is there and is no marker of kvbench's (%d bytes); move it away "+
			"or give another -cache-dir", o.t.URL(), markerName, info.Size)
	}
	age := max(0, o.t.client.StoreNow().Sub(info.Modified))
	// The store's own clock wrote the one time and told the other: this machine's may be off.
	if age < deadAfter && !old.Ended && !old.dead(o.t.cfg.Process) {
		return &InUseError{URL: o.t.URL(), PID: old.PID, Host: old.Host, Age: age}
	}
	o.old = old
	o.mark.Before = old.all()
	return o.recall()
}

// confirm says that the run still has its prefix, at this moment: before anything is deleted by its
// names, which another run's objects may have, too.
func (o *owner) confirm(ctx context.Context) error {
	o.beatOnce(ctx)
	return o.check()
}

// beatOnce changes the marker. One that is another's by now has been taken over; a beat that fails
// otherwise is one of four.
func (o *owner) beatOnce(ctx context.Context) {
	o.mu.Lock()
	defer o.mu.Unlock()
	err := o.write(ctx, store.Condition{ETag: o.etag})
	if errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrNoKey) {
		o.taken.Store(true)
	}
}

// nothingInside refuses a prefix in which somebody else's objects lie.
func (o *owner) nothingInside(ctx context.Context) error {
	var some []string
	for _, c := range o.t.listers() {
		err := c.List(ctx, o.t.base, func(i store.Info) bool {
			some = append(some, strings.TrimPrefix(i.Key, o.t.base))
			return len(some) < 3
		})
		if err != nil {
			return err
		}
	}
	for _, name := range some { // the marker was not there when it was asked for
		if name == markerName {
			return &InUseError{URL: o.t.URL()} // it has come this moment
		}
	}
	if len(some) > 0 {
		return fmt.Errorf("%s holds objects (%s) but no marker of kvbench's (%s), so it is "+
			"somebody else's; move it away or give another -cache-dir", o.t.URL(),
			strings.Join(some, ", "), markerName)
	}
	return nil
}

// write puts the marker: as it was to the byte but for its number of heartbeats, so that its ETag
// changes and who has read the old one cannot take it over.
func (o *owner) write(ctx context.Context, only store.Condition) error {
	o.mark.Beat++
	text, err := json.Marshal(o.mark)
	if err != nil {
		return err
	}
	if o.unguarded {
		only = store.Condition{}
	}
	put := func(only store.Condition) error {
		etag, _, err := o.t.client.Put(ctx, o.key(), int64(len(text)),
			func() io.ReadSeeker { return bytes.NewReader(text) }, only)
		if err == nil {
			o.etag = etag
		}
		return err
	}
	err = put(only)
	if errors.Is(err, store.ErrNotServed) && only != (store.Condition{}) {
		o.ignores()
		return put(store.Condition{})
	}
	return err
}

// try finds out whether conditions count: a marker that is there must not be made again, nor one
// changed that is another.
func (o *owner) try(ctx context.Context) error {
	if o.unguarded {
		return nil
	}
	// Text and ETag of what is there stay valid whatever comes of it: a store that lets one through
	// has written the same marker again.
	for _, only := range []store.Condition{{Absent: true},
		{ETag: "00000000000000000000000000000000"}} {
		switch err := o.write(ctx, only); {
		case err == nil:
			o.ignores()
			return nil
		case !errors.Is(err, store.ErrExists) && !errors.Is(err, store.ErrNoKey):
			return err
		}
	}
	return nil
}

// forget notes that nothing of earlier runs is left, which the next heartbeat tells.
func (o *owner) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mark.Before, o.mark.ContentsBefore = nil, nil
}

// ignores notes that the store knows no conditions: what follows is written without.
func (o *owner) ignores() {
	o.unguarded = true
	o.t.warn("the store ignores If-Match and If-None-Match: nothing keeps a second run out of " +
		o.t.URL())
}

// beat begins to keep the marker fresh.
func (o *owner) beat() {
	ctx, stop := context.WithCancel(context.Background())
	o.beats = stop
	o.ended.Go(func() {
		// On a goroutine and a ticker of its own: the clock of the run waits for all that was begun
		// with it before the run removes its objects, and until then it lives.
		tick := time.NewTicker(heartbeat)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if o.beatOnce(ctx); o.check() != nil {
				return
			}
		}
	})
}

// check is an error when the prefix is not the run's any more.
func (o *owner) check() error {
	if o.taken.Load() {
		return &TakenError{URL: o.t.URL()}
	}
	return nil
}

// TakenError says that the prefix is not the run's any more: what has its names may be another's,
// so that nothing is written, deleted or believed from then on.
type TakenError struct{ URL string }

func (e *TakenError) Error() string {
	return fmt.Sprintf("another run has taken over %s, or its marker was removed: this one has "+
		"not said for %v that it lives", e.URL, deadAfter)
}

// stop ends the heartbeat, and waits for one under way.
func (o *owner) stop() {
	if o.beats != nil {
		o.beats()
		o.ended.Wait()
	}
}

// leave says in the marker that the run has gone and its objects have not. A marker that cannot be
// written, or is another's by now, stays as it is: then the next start waits.
func (o *owner) leave(ctx context.Context) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.taken.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*cleanup)
	defer cancel()
	o.mark.Ended = true
	return o.write(ctx, store.Condition{ETag: o.etag})
}

// release removes the marker. Where begin has failed and there was a run before, whose objects may
// be left, it stays, and where something of somebody else's lies beside it: without it the next run
// would be refused there.
func (o *owner) release(ctx context.Context, all bool) error {
	switch {
	case o.taken.Load():
		return nil
	case !all && !o.fresh, o.foreign.Load():
		return o.leave(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*cleanup)
	defer cancel()
	err := o.t.client.Delete(ctx, o.key())
	if !all {
		o.withdraw(ctx)
	}
	return err
}

// withdraw removes the run's marker at each endpoint that shows it: those that a start refuses,
// because they are different stores, may have been given one each. Who does not answer is passed
// over.
func (o *owner) withdraw(ctx context.Context) {
	if o.t.cfg.Store.Endpoints.Pinned() {
		return
	}
	for i := range o.t.Endpoints() {
		there := &owner{t: o.t, at: o.t.client.At(i)}
		var m marker
		if _, text, err := there.read(ctx); err == nil && json.Unmarshal(text, &m) == nil &&
			m.Nonce == o.mark.Nonce && m.Process == o.mark.Process {
			_ = there.at.Delete(ctx, o.key())
		}
	}
}

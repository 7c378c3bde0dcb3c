package benchmarks

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"kvbench/kvbench/report"
	"kvbench/kvbench/result"
)

// unwritten is the result of the trial under way, from when it is known until it is safe: what
// hours have found is not to be lost because the results directory hangs. One goroutine writes it
// and may hang with that; another gives it up, and a signal's goroutine may come between the two,
// so that whoever tells of it first takes it.
type unwritten struct {
	mu      sync.Mutex
	result  *result.Result // nil: there is none, or it is safe
	at      string
	givenUp bool             // it may have been written since
	open    bool             // a trial has begun, whose result is not safe
	told    []*result.Result // on standard error, because they were given up
}

// clear is before a trial.
func (u *unwritten) clear() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.result, u.at, u.givenUp, u.open = nil, "", false, true
}

// begin is when a result is known, and has its name.
func (u *unwritten) begin(r *result.Result) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.result = r
}

// goesTo says where it will lie.
func (u *unwritten) goesTo(path string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.at = path
}

// end is when it was written, or could not be: then it is told with all others.
func (u *unwritten) end(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if err == nil {
		u.result, u.givenUp, u.open = nil, false, false
	}
}

// path is where the result lies, "" where that is not known: who looks there would hang, too.
func (u *unwritten) path() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.givenUp {
		return ""
	}
	return u.at
}

// giveUp is when nobody waits for it any more. The line of the benchmark under way is broken by a
// signal or an error anyhow.
func (u *unwritten) giveUp(_ *result.Result, why error) {
	u.mu.Lock()
	u.givenUp = u.result != nil
	u.mu.Unlock()
	briefly(func() { u.tell(why.Error()) })
}

// tell says on standard error what would stand in the result's summary.
func (u *unwritten) tell(why string) {
	u.mu.Lock()
	r := u.result
	if r != nil {
		u.told = append(u.told, r)
	}
	u.result = nil
	u.mu.Unlock()
	if r == nil {
		return
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "\nthe result of %s may be nowhere else than here, because of this: %s\n\n",
		r.Name, why)
	if report.WriteSummary(&text, r) == nil {
		_, _ = os.Stderr.Write(text.Bytes())
	}
}

// none says that the process ends before the result of its trial was known, "" where one is written
// or printed. Without it a user who pressed Ctrl-C twice looks for the result that the first one
// promises.
func (u *unwritten) none() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.open || u.result != nil || u.givenUp {
		return ""
	}
	return "no result of this trial was written, because another signal came"
}

// untold are those of results that were not told before the end. Nobody wants to read eighty lines
// twice.
func (u *unwritten) untold(results []*result.Result) []*result.Result {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(results), func(r *result.Result) bool {
		return slices.Contains(u.told, r)
	})
}

// briefly says something to a reader who may not read, or whose file may lie where nothing answers.
func briefly(say func()) {
	said := make(chan struct{})
	go func() {
		defer close(said)
		say()
	}()
	select {
	case <-said:
	case <-time.After(300 * time.Millisecond):
	}
}

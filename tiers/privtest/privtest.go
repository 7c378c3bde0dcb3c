package privtest

import (
	"errors"
	"os"
	"testing"
	"time"
)

// RequireEnv is the environment variable that turns skips into failures when it is "1".
const RequireEnv = "KVTEST_REQUIRE_PRIVILEGED"

var errNotRoot = errors.New("this test needs root")

// Need goes on when err is nil. Otherwise the test is skipped with err as the reason, or fails
// where RequireEnv is set. Hand it the error of really trying, not a guess.
func Need(t testing.TB, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if os.Getenv(RequireEnv) == "1" {
		t.Fatalf("%s=1, but: %v", RequireEnv, err)
	}
	t.Skipf("skipped for lack of privilege or support: %v", err)
}

// Root skips the test unless it runs as root, and under -short: tests that need root mount
// filesystems, attach programs to the kernel and wait for devices in real time, which is not what a
// person waits for before each commit.
func Root(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: tests that need root take their time")
	}
	if os.Geteuid() != 0 {
		Need(t, errNotRoot)
	}
}

// LoopOptions of LoopFS; the zero value is an ext4 with its journal, through the page cache of the
// backing file.
type LoopOptions struct {
	// DirectIO lets the loop device read and write its file around the page cache. tmpfs supports
	// that since Linux 6.6.
	DirectIO bool
	// PreferDirectIO is DirectIO where tmpfs supports it, and the page cache elsewhere.
	PreferDirectIO bool
	// NoJournal makes device writes countable: without a journal nothing is written that was not
	// asked for.
	NoJournal bool
	// Discard makes the filesystem discard what is deleted, soon after.
	Discard bool
	// Times make the device slow: a disk of known times, whatever the machine can do. Direct I/O
	// then needs nothing of tmpfs.
	Times Times
	// CanHang gives the Loop a Server, which lets the test stop the device in the middle of
	// anything.
	CanHang bool
}

// Times are what a made device takes for a request, beside what memory does: zero is no such
// device. It serves any number of reads and writes at a time, of up to 1 MiB each, and nothing else
// while it discards.
type Times struct{ Read, Write, Discard time.Duration }

// Rates are limits of a device: bytes and requests per second, 0 is none.
type Rates struct{ Read, Write, ReadIOPS, WriteIOPS int64 }

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

// Need returns if err is nil. Otherwise it skips the test with err as the reason, or fails it if RequireEnv
// is set. Pass the error of a real attempt, not of a guess.
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

// Root skips the test unless it runs as root, and with -short: tests that need root mount filesystems,
// attach programs to the kernel and wait for devices in real time, which is too slow before each commit.
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
// backing file. NoJournal, Discard and BlockBytes are for ext4 only.
type LoopOptions struct {
	// DirectIO makes the loop device use direct I/O on its file. tmpfs supports it since Linux 6.6.
	DirectIO bool
	// PreferDirectIO is DirectIO if tmpfs supports it, and the page cache otherwise.
	PreferDirectIO bool
	// Type of the filesystem; "" is ext4. Mount are its mount options. BlockBytes is the size of its blocks, and
	// SectorBytes that of the device's; 0 is the default.
	Type, Mount             string
	BlockBytes, SectorBytes int
	// NoJournal makes device writes countable: without a journal the device writes only what the
	// test submits.
	NoJournal bool
	// Discard makes the filesystem send discards soon after deletions.
	Discard bool
	// Times make the device slow, with known latencies. Direct I/O then does not depend on tmpfs.
	Times Times
	// CanHang gives the Loop a Server, with which the test can make the device hang at any time.
	CanHang bool
}

// Times are how long a device takes for a request, in addition to memory's time: zero is no such
// device. It completes Slots reads and writes at a time (0: any number), of up to 1 MiB each, and
// nothing else while it discards.
type Times struct {
	Read, Write, Discard time.Duration
	Slots                int
}

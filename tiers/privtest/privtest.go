package privtest

import (
	"errors"
	"os"
	"testing"
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

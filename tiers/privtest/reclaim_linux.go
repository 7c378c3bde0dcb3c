package privtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// prefix begins all names outside the test's own directory; the process id follows.
const prefix = "kvbench-privtest-"

func ownPrefix() string { return fmt.Sprintf("%s%d-", prefix, os.Getpid()) }

// reclaim removes the remains of killed test binaries: mounts and loop devices outlive their process. It
// ignores errors, because another test binary may be doing the same.
func reclaim() {
	for _, base := range abandoned(os.TempDir()) {
		_ = dismantle(base)
	}
	if parent, _, err := throttling(); err == nil {
		for _, group := range abandoned(parent) {
			_ = os.Remove(group)
		}
	}
}

// abandoned lists the entries of dir that belong to processes that have ended.
func abandoned(dir string) []string {
	all, _ := filepath.Glob(filepath.Join(dir, prefix+"*"))
	var dead []string
	for _, path := range all {
		id, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), prefix), "-")
		pid, err := strconv.Atoi(id)
		if err == nil && pid > 0 && unix.Kill(pid, 0) == unix.ESRCH {
			dead = append(dead, path)
		}
	}
	return dead
}

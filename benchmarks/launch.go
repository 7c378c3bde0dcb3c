package benchmarks

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kvbench/kvbench/environment"
)

// launchDir returns the directory in which the user typed the command, which is what relative paths
// in flags, environment and configuration mean. `go test` starts test binaries in the directory of
// their package, where the working directory is not the answer:
//
//   - started by a go command: that command's working directory (Linux);
//   - else by go test through something else (-exec), or where that is unknown: the module's root;
//   - else (a compiled test binary that a user or a script runs): the working directory.
//
// The directory is absolute. Call it before anything changes the working directory, and while the
// parent still lives.
func launchDir() string {
	cwd, err := os.Getwd()
	if err != nil {
		return string(filepath.Separator)
	}
	return dirOf(proc("/proc"), os.Getppid(), cwd, os.Args[1:])
}

func dirOf(p proc, parent int, cwd string, args []string) string {
	if p.isGoCommand(parent) {
		// Unreadable when the go command belongs to another user, and its directory may have been
		// removed meanwhile; then the next rule applies.
		typed, err := os.Readlink(p.file(parent, "cwd"))
		if info, statErr := os.Stat(typed); err == nil && statErr == nil && info.IsDir() {
			return typed
		}
	}
	if !slices.Contains(args, environment.ByGoTest) {
		return cwd
	}
	return cmp.Or(environment.ModuleRoot(cwd), cwd)
}

// proc is the directory in which the kernel shows processes: /proc, or a test's.
type proc string

func (p proc) file(pid int, name string) string {
	return filepath.Join(string(p), strconv.Itoa(pid), name)
}

// isGoCommand looks at a process's name, and at its executable, because a process may be renamed. It is false where there is no /proc.
func (p proc) isGoCommand(pid int) bool {
	if comm, err := os.ReadFile(p.file(pid, "comm")); err == nil &&
		strings.TrimSpace(string(comm)) == "go" {
		return true
	}
	exe, err := os.Readlink(p.file(pid, "exe"))
	// A toolchain that was replaced while it runs reads "/usr/local/go/bin/go (deleted)".
	return err == nil && filepath.Base(strings.TrimSuffix(exe, " (deleted)")) == "go"
}

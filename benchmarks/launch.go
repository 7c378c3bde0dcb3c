package benchmarks

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kvbench/kvbench/result"
)

// launchDir returns the directory in which the user typed the command. Relative paths in flags,
// environment and configuration start there. `go test` starts a test binary in the directory of its
// package, so the working directory is not always the answer:
//
//   - if a go command is the parent: the working directory of the go command (Linux);
//   - otherwise, under go test (with -exec, or if that directory is unknown): the root of the module;
//   - otherwise (a user or a script runs a compiled test binary): the working directory.
//
// The directory is absolute. Call launchDir before anything changes the working directory, and while
// the parent process lives.
func launchDir() string {
	cwd, err := os.Getwd()
	if err != nil {
		return string(filepath.Separator)
	}
	return dirOf(proc("/proc"), os.Getppid(), cwd, os.Args[1:])
}

func dirOf(p proc, parent int, cwd string, args []string) string {
	if p.isGoCommand(parent) {
		// The link is unreadable if the go command belongs to another user. The directory may have been
		// removed. In both cases the next rule applies.
		typed, err := os.Readlink(p.file(parent, "cwd"))
		if info, statErr := os.Stat(typed); err == nil && statErr == nil && info.IsDir() {
			return typed
		}
	}
	if !slices.Contains(args, result.ByGoTest) {
		return cwd
	}
	return cmp.Or(result.ModuleRoot(cwd), cwd)
}

// proc is the path of the proc filesystem: /proc, or a directory of a test.
type proc string

func (p proc) file(pid int, name string) string {
	return filepath.Join(string(p), strconv.Itoa(pid), name)
}

// isGoCommand reports whether a process is the go command. It checks the process's name, and its
// executable, because a process can be renamed. Without /proc it returns false.
func (p proc) isGoCommand(pid int) bool {
	if comm, err := os.ReadFile(p.file(pid, "comm")); err == nil &&
		strings.TrimSpace(string(comm)) == "go" {
		return true
	}
	exe, err := os.Readlink(p.file(pid, "exe"))
	// If the toolchain was replaced while it runs, the link reads "/usr/local/go/bin/go (deleted)".
	return err == nil && filepath.Base(strings.TrimSuffix(exe, " (deleted)")) == "go"
}

package kvbench

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// LaunchDir returns the directory in which the user typed the command, which is what relative paths in flags,
// environment and configuration mean, and a phrase that says how it was found. The go command starts test binaries in
// the directory of their package, so the working directory is not the answer:
//
//   - started by a go command: that command's working directory (Linux);
//   - else inside a module: the module's root;
//   - else (a compiled test binary carried elsewhere): the working directory.
//
// The directory is absolute. Call it before anything changes the working directory, and while the parent still lives.
func LaunchDir() (dir, how string) {
	cwd, err := os.Getwd()
	if err != nil {
		return string(filepath.Separator), fmt.Sprintf("the root directory: the working directory cannot be read (%v)", err)
	}
	return machine{}.launchDir(os.Getppid(), cwd)
}

func (m machine) launchDir(parent int, cwd string) (dir, how string) {
	if m.isGoCommand(parent) {
		// Unreadable when the go command belongs to another user; then the next rule applies.
		typed, err := os.Readlink(m.process(parent, "cwd"))
		if err == nil && isDir(typed) {
			return typed, fmt.Sprintf("the working directory of the go command (process %d)", parent)
		}
	}
	if root := moduleRoot(cwd); root != "" {
		return root, "the root of the module"
	}
	return cwd, "the working directory"
}

// isGoCommand looks at a process's name, and at its executable in case somebody renamed the process. It is false where
// there is no /proc.
func (m machine) isGoCommand(pid int) bool {
	if comm, err := os.ReadFile(m.process(pid, "comm")); err == nil && strings.TrimSpace(string(comm)) == "go" {
		return true
	}
	exe, err := os.Readlink(m.process(pid, "exe"))
	// A toolchain that was replaced while it runs reads "/usr/local/go/bin/go (deleted)".
	return err == nil && filepath.Base(strings.TrimSuffix(exe, " (deleted)")) == "go"
}

func (m machine) process(pid int, file string) string {
	return filepath.Join(m.root, "/proc", strconv.Itoa(pid), file)
}

// moduleRoot is the nearest directory upwards that holds a go.mod, "" when there is none.
func moduleRoot(dir string) string {
	for {
		if info, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil && info.Mode().IsRegular() {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

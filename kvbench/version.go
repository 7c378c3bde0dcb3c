package kvbench

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
)

// revision is set by `make dist` (-ldflags "-X kvbench/kvbench.revision=…"): test binaries carry no
// version control stamp of their own.
var revision string

// version tells which revision of this suite is running: as linked in, as the Go command stamped
// it, or as the checkout that the test runs in says.
func version() string {
	if revision != "" {
		return revision
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		if v := stamped(info.Settings); v != "" {
			return v
		}
		if v := info.Main.Version; v != "" && v != "(devel)" {
			return v
		}
	}
	if dir, err := os.Getwd(); err == nil {
		if root := ModuleRoot(dir); root != "" && isOurModule(root) {
			if v := checkedOut(root); v != "" {
				return v + " (checkout)"
			}
		}
	}
	return "unknown"
}

func stamped(settings []debug.BuildSetting) string {
	var rev, dirty string
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision":
			rev = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+dirty"
		}
	}
	if rev == "" {
		return ""
	}
	return rev + dirty
}

// ModuleRoot is the nearest directory upwards that holds a go.mod, "" when there is none.
func ModuleRoot(dir string) string {
	for {
		if info, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil &&
			info.Mode().IsRegular() {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}

// isOurModule keeps the revision of somebody else's checkout out of the result, when a compiled
// binary runs there.
func isOurModule(root string) bool {
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return false
	}
	first, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(first) == "module kvbench"
}

var commitHash = regexp.MustCompile(`^[0-9a-f]{40,64}$`)

// checkedOut reads the commit of a git checkout from its files: no git command is needed, whether
// local changes are there is not told.
func checkedOut(root string) string {
	git := filepath.Join(root, ".git")
	if text, err := os.ReadFile(git); err == nil { // a worktree: a file that says where
		dir, _ := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir: ")
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(root, dir)
		}
		git = dir
	}
	common := git // where branches are; a worktree shares those of its main repository
	if text, err := os.ReadFile(filepath.Join(git, "commondir")); err == nil {
		common = filepath.Join(git, strings.TrimSpace(string(text)))
	}
	head := oneLine(filepath.Join(git, "HEAD"))
	ref, ok := strings.CutPrefix(head, "ref: ")
	if !ok {
		return hashOrNone(head)
	}
	if hash := hashOrNone(oneLine(filepath.Join(common, ref))); hash != "" {
		return hash
	}
	packed, _ := os.ReadFile(filepath.Join(common, "packed-refs"))
	for line := range strings.Lines(string(packed)) {
		if hash, name, _ := strings.Cut(strings.TrimSpace(line), " "); name == ref {
			return hashOrNone(hash)
		}
	}
	return ""
}

// oneLine reads a file of one line, "" when there is none.
func oneLine(file string) string {
	text, _ := os.ReadFile(file)
	return strings.TrimSpace(string(text))
}

func hashOrNone(s string) string {
	if commitHash.MatchString(s) {
		return s
	}
	return ""
}

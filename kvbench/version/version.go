package version

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
)

// Unknown is the version of a binary without a stamp, outside of its checkout.
const Unknown = "unknown"

// revision is set by `make dist` (-ldflags "-X kvbench/kvbench/version.revision=…"): test binaries
// carry no version control stamp of their own, but with go test -c -buildvcs=true.
var revision string

// Current tells which revision of this suite is running: as linked in, as the Go command stamped
// it, or as the checkout that the test runs in says.
func Current() string {
	v := revision
	if info, ok := debug.ReadBuildInfo(); ok && v == "" {
		v = cmp.Or(stamped(info.Settings), strings.TrimPrefix(info.Main.Version, "(devel)"))
	}
	if dir, err := os.Getwd(); err == nil && v == "" {
		if root := ModuleRoot(dir); isOurModule(root) {
			v = checkedOut(root)
		}
		if v != "" {
			v += " (checkout)"
		}
	}
	return cmp.Or(v, Unknown)
}

func stamped(settings []debug.BuildSetting) string {
	stamp := make(map[string]string)
	for _, s := range settings {
		stamp[s.Key] = s.Value
	}
	rev := stamp["vcs.revision"]
	if rev != "" && stamp["vcs.modified"] == "true" {
		rev += "+dirty"
	}
	return rev
}

// ModuleRoot is the nearest directory upwards that holds a go.mod, "" when there is none.
func ModuleRoot(dir string) string {
	for up := filepath.Dir(dir); ; dir, up = up, filepath.Dir(up) {
		if info, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil &&
			info.Mode().IsRegular() {
			return dir
		}
		if up == dir {
			return ""
		}
	}
}

// isOurModule keeps the revision of somebody else's checkout out of the result, when a compiled
// binary runs there.
func isOurModule(root string) bool {
	first, _, _ := strings.Cut(textOf(root, "go.mod"), "\n")
	return strings.TrimSpace(first) == "module kvbench"
}

var commitHash = regexp.MustCompile(`^[0-9a-f]{40,64}$`)

// checkedOut reads the commit of a git checkout from its files, "" when it cannot be told: no git
// command is needed, whether local changes are there is not told.
func checkedOut(root string) string {
	git := filepath.Join(root, ".git")
	// In a worktree it is a file that says where the directory is.
	if dir, ok := strings.CutPrefix(textOf(git), "gitdir: "); ok {
		if git = dir; !filepath.IsAbs(dir) {
			git = filepath.Join(root, dir)
		}
	}
	hash := textOf(git, "HEAD")
	if ref, ok := strings.CutPrefix(hash, "ref: "); ok {
		// Branches are there; a worktree shares those of its main repository.
		common := filepath.Join(git, textOf(git, "commondir"))
		hash = textOf(common, ref)
		for line := range strings.Lines(textOf(common, "packed-refs")) {
			packed, name, _ := strings.Cut(strings.TrimSpace(line), " ")
			if name == ref && hash == "" {
				hash = packed
			}
		}
	}
	return commitHash.FindString(hash)
}

// textOf reads a small file, "" when there is none.
func textOf(path ...string) string {
	text, _ := os.ReadFile(filepath.Join(path...))
	return strings.TrimSpace(string(text))
}

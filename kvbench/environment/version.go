package environment

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
)

// UnknownVersion is the version of a binary without a stamp, outside of its checkout.
const UnknownVersion = "unknown"

// VersionRemedy says how to make results name the commit that they were measured with.
const VersionRemedy = "measure with go test ./benchmarks in a git checkout, a binary of make dist, or " +
	"one of go test -c -buildvcs=true"

// revision is set by `make dist` (-ldflags "-X kvbench/kvbench/environment.revision=…"): test binaries
// carry no version control stamp of their own, but with go test -c -buildvcs=true.
var revision string

// ByGoTest is what go test, and nothing else, passes to each test binary (cmd/go/internal/test).
const ByGoTest = "-test.paniconexit0"

// Version is the revision of this program: linked in, stamped by the Go command, or of the checkout
// in which go test has just built it. It is determined once, at its first use, because the checkout
// may change later. A kept binary may be older than the checkout in which it runs, so its revision
// is unknown.
var Version = sync.OnceValue(func() string {
	v := revision
	if info, ok := debug.ReadBuildInfo(); ok && v == "" {
		v = cmp.Or(stamped(info.Settings), strings.TrimPrefix(info.Main.Version, "(devel)"))
	}
	if dir, err := os.Getwd(); err == nil && v == "" && slices.Contains(os.Args, ByGoTest) {
		if v = checkedOut(ModuleRoot(dir)); v != "" {
			v += " (checkout)"
		}
	}
	return cmp.Or(v, UnknownVersion)
})

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

// checkedOut is the commit of a git checkout, with +dirty if files were changed, "" if git does not
// know it.
func checkedOut(root string) string {
	if _, err := os.Lstat(filepath.Join(root, ".git")); err != nil {
		return "" // it may lie in a checkout of something else
	}
	out, _ := exec.Command("git", "--no-optional-locks", "-C", root, "describe", "--always",
		"--abbrev=40", "--exclude=*", "--dirty=+dirty").Output()
	return commit.FindString(strings.TrimSpace(string(out)))
}

var commit = regexp.MustCompile(`^[0-9a-f]{40,64}(\+dirty)?$`)

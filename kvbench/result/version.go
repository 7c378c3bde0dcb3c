package result

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

// UnknownVersion is the version of a binary without a VCS stamp outside of its checkout.
const UnknownVersion = "unknown"

// VersionRemedy says how to get the commit into results.
const VersionRemedy = "measure with go test ./benchmarks in a git checkout, a binary of make dist, or " +
	"one of go test -c -buildvcs=true"

// revision is set by `make dist` (-ldflags "-X kvbench/kvbench/result.revision=…"): go test
// writes no VCS stamp into a test binary, except with go test -c -buildvcs=true.
var revision string

// ByGoTest is the argument that only go test passes to a test binary (cmd/go/internal/test).
const ByGoTest = "-test.paniconexit0"

// byGoTool matches the path of a program that go tool or go run built, without a VCS stamp: in a
// temporary directory, from the second call of go tool on in the build cache.
var byGoTool = regexp.MustCompile(`(/go-build\d+/b\d+/exe|/[0-9a-f]{64}-d)/[^/]+$`)

// Version returns the revision of this program: from the linker, from the Go command's VCS stamp,
// or of the checkout in which go test, go tool or go run built it. It reads the revision once, at the first call,
// because the checkout may change later. A test binary that go test did not start may be older than
// the checkout, so its revision is unknown.
var Version = sync.OnceValue(func() string {
	v := revision
	if info, ok := debug.ReadBuildInfo(); ok && v == "" {
		v = cmp.Or(stamped(info.Settings), strings.TrimPrefix(info.Main.Version, "(devel)"))
	}
	path, _ := os.Executable()
	built := slices.Contains(os.Args, ByGoTest) || byGoTool.MatchString(path)
	if dir, err := os.Getwd(); err == nil && v == "" && built {
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

// ModuleRoot returns dir or its nearest parent directory that has a go.mod, "" if there is none.
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

// checkedOut returns the commit of the git checkout root, with +dirty if files were changed. It
// returns "" if root is no checkout or git fails.
func checkedOut(root string) string {
	if _, err := os.Lstat(filepath.Join(root, ".git")); err != nil {
		return "" // root may be inside of another project's checkout
	}
	out, _ := exec.Command("git", "--no-optional-locks", "-C", root, "describe", "--always",
		"--abbrev=40", "--exclude=*", "--dirty=+dirty").Output()
	return commit.FindString(strings.TrimSpace(string(out)))
}

var commit = regexp.MustCompile(`^[0-9a-f]{40,64}(\+dirty)?$`)

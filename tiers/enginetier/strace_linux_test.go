package enginetier_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/enginetier"
	"kvbench/tiers/privtest"
	"kvbench/tiers/tiertest"
	"kvbench/tiers/workdir"
)

// straced are how many objects are stored and loaded under strace.
const straced = 1000

// stracedDir names, to the process that is watched, the directory that it works in.
const stracedDir = "KVTEST_STRACED_DIR"

// expected is what the kernel has to see of one object: its calls in their order, with sizes. What
// stands in brackets may be there or not, as others have made the directories before.
var expected = map[string]struct{ store, load string }{
	"vllm-fs": {"faccessat, newfstatat, [newfstatat, mkdirat, ]mkdirat, " +
		"[newfstatat, ]openat O_WRONLY|O_CREAT|O_EXCL|O_TRUNC|O_DIRECT, write 8192, close, " +
		"renameat",
		"openat O_RDONLY|O_DIRECT, read 8192, close"},
	"lmcache-fs": {"newfstatat, openat O_WRONLY|O_CREAT|O_TRUNC, write 8192, close, renameat",
		"openat O_RDONLY, read 8192, close"},
	"hicache-file": {"newfstatat, openat O_WRONLY|O_CREAT|O_TRUNC, write 8192, close, renameat",
		"openat O_RDONLY, read 8192, close"},
	"vllm-slots":  {"pwritev 4096+4096", "preadv 4096+4096"},
	"kvbm-slots":  {"pwrite64 8192", "pread64 8192"},
	"lmcache-raw": {"pwrite64 4096, pwrite64 8192", "pread64 8192"},
	"mooncake-offset": {"pwritev 24+64+4008+8192",
		"preadv 24, preadv 64, preadv 8192"},
	"mooncake-bucket": {"", "openat O_RDONLY, preadv 8192, close"},
}

// TestTheKernelSeesTheCalls stores and loads a thousand objects in each layout, one after the
// other, and compares what strace has seen of each with what its engine does.
func TestTheKernelSeesTheCalls(t *testing.T) {
	if dir := os.Getenv(stracedDir); dir != "" {
		beWatched(t, dir)
		return
	}
	strace := straceFor(t)
	for _, l := range tiers.EngineLayouts {
		t.Run(l.Name, func(t *testing.T) {
			dir := t.TempDir()
			log := watch(t, strace, dir, l.Name)
			stores, loads := seen(t, log, dir, l.Name)
			want := expected[l.Name]
			differences := 0
			for i, got := range stores {
				if !matches(want.store, got) && l.Name != "mooncake-bucket" {
					differences++
					assert.Less(t, differences, 3, "store %d: %s", i, got)
				}
			}
			for i, got := range loads {
				if !matches(want.load, got) {
					differences++
					assert.Less(t, differences, 3, "load %d: %s", i, got)
				}
			}
			assert.Zero(t, differences)
			assert.Len(t, loads, straced)
			if l.Name == "mooncake-bucket" {
				keys := strings.TrimSuffix(strings.Repeat("64+8192+", tiers.BucketKeys), "+")
				assert.Len(t, stores, straced/tiers.BucketKeys)
				for _, got := range stores {
					assert.True(t, got == "openat O_WRONLY|O_CREAT|O_TRUNC, pwritev "+keys+
						", close, openat O_WRONLY|O_CREAT|O_TRUNC, write, close", got[:80])
				}
			} else {
				assert.Len(t, stores, straced)
			}
			t.Logf("%d stores, %d loads, %d differences", len(stores), len(loads), differences)
		})
	}
}

// straceFor finds strace, or skips the test.
func straceFor(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("strace makes every call slow: not in short mode")
	}
	strace, err := exec.LookPath("strace")
	if err != nil { // without it the suite's own recorder has the calls in testdata/calls
		privtest.Need(t, fmt.Errorf("strace is not installed: %w", err))
	}
	return strace
}

// watch runs the test again, under strace, and returns the path of what strace has written.
func watch(t *testing.T, strace, dir, layout string) (log string) {
	t.Helper()
	test, _, _ := strings.Cut(t.Name(), "/")
	log = filepath.Join(t.TempDir(), "calls")
	cmd := exec.Command(strace, "-f", "-o", log, "-y", "-v", "-e", "trace=openat,close,"+
		"read,write,pread64,pwrite64,preadv,pwritev,renameat,unlinkat,mkdirat,faccessat,"+
		"newfstatat", os.Args[0], "-test.run=^"+test+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), stracedDir+"="+dir+"="+layout)
	if out, err := cmd.CombinedOutput(); err != nil {
		if strings.Contains(string(out), "ptrace") {
			privtest.Need(t, fmt.Errorf("processes cannot be traced here: %s", out))
		}
		require.NoError(t, err, "%s", out)
	}
	return log
}

// object is the i-th one.
func object(i int) tiers.Object {
	return tiers.Object{Key: strconv.Itoa(i), Gen: 1, Size: 8192}
}

// beWatched is the process under strace. Before each object it opens a file that is named after
// what comes next.
func beWatched(t *testing.T, where string) {
	at, layout, _ := strings.Cut(where, "=")
	dir, err := workdir.Open(t.Context(), workdir.Options{CacheDir: at, Nonce: "test", Keep: true})
	require.NoError(t, err)
	facts, _ := tiers.EngineLayoutOf(layout)
	tier, err := enginetier.New(t.Context(), enginetier.Config{Dir: dir, Layout: layout,
		Engine: tiertest.Psync(t), Direct: facts.Direct, Model: "m", Bytes: 8192, Layers: 2,
		Capacity: 16 << 20})
	require.NoError(t, err)
	mark := func(what string) { _, _ = os.Open(filepath.Join(at, "mark-"+what)) }
	for i := range straced {
		mark("store")
		require.NoError(t, store(t, tier, object(i)))
	}
	for i := range straced {
		mark("load")
		require.NoError(t, load(t, tier, object(i)))
	}
	mark("end")
}

var (
	begun   = regexp.MustCompile(`^(\d+) +(\w+)\((.*?) *<unfinished \.\.\.>$`)
	resumed = regexp.MustCompile(`^(\d+) +<\.\.\. (\w+) resumed>(.*)$`)
	whole   = regexp.MustCompile(`^(\d+) +(\w+)\((.*)\) += (.*)$`)
	opened  = regexp.MustCompile(`O_[A-Z_|]+`)
	pieces  = regexp.MustCompile(`iov_len=(\d+)`)
	moved3  = regexp.MustCompile(`, (\d+)(?:, \d+)?$`)
)

// seen are the calls of each object, stored and loaded one by one: those between two marks.
func seen(t *testing.T, log, dir, layout string) (stores, loads []string) {
	t.Helper()
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	pending, calls := map[string]string{}, []string(nil)
	last := "" // the mark before the calls
	for line := range strings.Lines(string(text)) {
		name, args, is := oneCall(strings.TrimSpace(line), pending)
		_, mark, marked := strings.Cut(args, "mark-")
		switch {
		case !is:
		case marked:
			all := strings.Join(calls, ", ")
			if strings.HasPrefix(last, "load") {
				loads = append(loads, all)
			} else if last != "" && (all != "" || layout != "mooncake-bucket") { // it gathers them
				stores = append(stores, all)
			}
			last, calls = mark, nil
		case strings.Contains(args, dir+"/rank_0/engine"), strings.Contains(args, "dynamo-kvbm"):
			calls = append(calls, described(name, args))
		}
	}
	return stores, loads
}

// oneCall reads a line. A call that others come between has two lines, and is told at its end.
func oneCall(line string, pending map[string]string) (name, args string, is bool) {
	if m := begun.FindStringSubmatch(line); m != nil {
		pending[m[1]] = m[1] + " " + m[2] + "(" + m[3]
		return "", "", false
	}
	if m := resumed.FindStringSubmatch(line); m != nil {
		line = pending[m[1]] + m[3]
	}
	if m := whole.FindStringSubmatch(line); m != nil {
		return m[2], m[3], true
	}
	return "", "", false
}

// described is a call with its flags and sizes, as the table of expectations has it.
func described(name, args string) string {
	switch name {
	case "openat":
		var flags []string
		behind := args[strings.LastIndex(args, `"`):] // the name
		for _, f := range strings.Split(opened.FindString(behind), "|") {
			if f != "O_CLOEXEC" && f != "O_NOFOLLOW" && f != "O_LARGEFILE" {
				flags = append(flags, f)
			}
		}
		return name + " " + strings.Join(flags, "|")
	case "preadv", "pwritev":
		var sizes []string
		for _, m := range pieces.FindAllStringSubmatch(args, -1) {
			sizes = append(sizes, m[1])
		}
		return name + " " + strings.Join(sizes, "+")
	case "read", "write", "pread64", "pwrite64":
		if m := moved3.FindStringSubmatch(args); m != nil && !strings.Contains(args, ".meta") {
			return name + " " + m[1]
		}
	}
	return name
}

// matches compares calls, of which those in brackets may be missing.
func matches(want, got string) bool {
	maybe := strings.NewReplacer(`\[`, "(?:", `\]`, ")?").Replace(regexp.QuoteMeta(want))
	return regexp.MustCompile("^" + maybe + "$").MatchString(got)
}

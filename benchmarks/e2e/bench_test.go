package e2e

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/tiers/privtest"
)

// Where things are, seen from the directory of this package.
const (
	benchmarks = ".."
	moduleRoot = "../.."
	testdata   = moduleRoot + "/testdata"
)

// Exit codes of the binary.
const (
	exitFailed     = 1
	exitParameters = 2
)

// concurrently is how many parallel tests run at a time: most of them wait for windows, timeouts and
// storage that hangs, and use little of a processor.
const concurrently = 4

// TestMain removes the binary that the tests made.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(max(concurrently, runtime.GOMAXPROCS(0))))
	}
	code := m.Run()
	// Without -run all tests have left their results.
	if all := flag.Lookup("test.run").Value.String() == "" && builtDir != ""; all && code == 0 && os.Getenv(identitiesEnv) != "" {
		if missing := notChecked(os.Getenv(privtest.RequireEnv) == "1"); missing != nil {
			fmt.Fprintf(os.Stderr, "the results that the tests left lack\n\t%s\n", strings.Join(missing, "\n\t"))
			code = exitFailed
		}
	}
	_ = os.RemoveAll(builtDir) // of "" it removes nothing
	os.Exit(code)
}

// builtPrefix begins the names of the directories of binaries; the id of the process follows.
const builtPrefix = "kvbench-e2e-"

// built makes the binary in a directory of its own and removes the directories that killed test
// processes have left.
var built = sync.OnceValues(func() (path string, err error) {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), builtPrefix+"*"))
	for _, dir := range dirs {
		id, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), builtPrefix), "-")
		if pid, err := strconv.Atoi(id); err == nil && syscall.Kill(pid, 0) == syscall.ESRCH {
			_ = os.RemoveAll(dir)
		}
	}
	if builtDir, err = os.MkdirTemp("", fmt.Sprintf("%s%d-", builtPrefix, os.Getpid())); err != nil {
		return "", err
	}
	if err := os.Chmod(builtDir, 0o755); err != nil { // other users run it, too
		return "", err
	}
	path = filepath.Join(builtDir, "kvbench.test")
	build := exec.Command("go", "test", "-c", "-o", path, benchmarks)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the test binary: %w\n%s", err, out)
	}
	return path, nil
})

// reporter makes kvreport in the same directory.
var reporter = sync.OnceValues(func() (path string, err error) {
	if _, err := built(); err != nil {
		return "", err
	}
	path = filepath.Join(builtDir, "kvreport")
	build := exec.Command("go", "build", "-o", path, moduleRoot+"/tools/kvreport")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building kvreport: %w\n%s", err, out)
	}
	return path, nil
})

// builtDir has the binary, if a test needed it.
var builtDir string

// binary returns the compiled test binary of the benchmarks, which is static, as make dist's.
func binary(t testing.TB) string {
	t.Helper()
	endToEnd(t)
	path, err := built()
	require.NoError(t, err)
	return path
}

// endToEnd skips where an end-to-end test makes no sense.
func endToEnd(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: end-to-end tests run benchmarks")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skipf("a compiled test binary on a machine without Go: %v", err)
	}
	if _, err := os.Stat(filepath.Join(moduleRoot, "go.mod")); err != nil {
		t.Skipf("a compiled test binary outside of the module: %v", err)
	}
}

// microConfig makes entries small (1 KiB per token, 64 tokens at most) and users
// quick, so that a run takes milliseconds. It replaces the model of each benchmark.
const microConfig = `
parameters: {model: micro}
model_configs:
  micro: {num_layers: 2, hidden_dim: 128, num_heads: 1, kv_heads: 1}
user_templates:
  chatbot: {context_range: [16, 64], generation_range: [4, 40], think_time_range: [0.01, 0.02]}
  coding: {context_range: [16, 64], generation_range: [4, 40], think_time_range: [0.01, 0.02]}
  document: {context_range: [16, 64], generation_range: [4, 40], think_time_range: [0.01, 0.02]}
`

// bench is one place to run benchmarks from: its own working, cache, results
// and temporary directory, which do not exist before the run where that matters.
type bench struct {
	t       testing.TB
	work    string // a directory of its own, not in any module
	dir     string // working directory, if not work
	cache   string // does not exist yet
	results string // does not exist yet
	env     []string
	attr    *syscall.SysProcAttr
	files   []*os.File // descriptors from 3
	command []string   // what to run instead of the binary
	outputs []string   // of the runs that ended
}

func newBench(t testing.TB) *bench {
	t.Helper()
	work := t.TempDir()
	temp := filepath.Join(work, "tmp")
	require.NoError(t, os.Mkdir(temp, 0o777))
	b := &bench{
		t: t, work: work, cache: filepath.Join(work, "cache"),
		results: filepath.Join(work, "results"),
		env:     append(plainEnv(), "TMPDIR="+temp),
	}
	t.Cleanup(func() { checkResultsBelow(t, work, b.outputs) })
	return b
}

// plainEnv is the environment without what would set parameters.
func plainEnv() []string {
	var env []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if strings.HasPrefix(name, "KVBENCH_") || strings.HasPrefix(name, "OMPI_") ||
			strings.HasPrefix(name, "PMI_") || strings.HasPrefix(name, "PALS_") ||
			strings.HasPrefix(name, "FLUX_") || strings.HasPrefix(name, "MV2_") ||
			name == "JOB_COMPLETION_INDEX" || name == "MASTER_ADDR" ||
			strings.HasPrefix(name, "SLURM_") && name != "SLURM_CONF" || name == "MPI_LOCALNRANKS" || name == "TMPDIR" ||
			name == "GOFLAGS" {
			continue
		}
		env = append(env, v)
	}
	return env
}

// micro writes microConfig and returns the flags that use it.
func (b *bench) micro() []string {
	path := filepath.Join(b.work, "micro.yaml")
	require.NoError(b.t, os.WriteFile(path, []byte(microConfig), 0o644))
	return []string{"-config", path, "-storage-capacity-gb", "0.25"}
}

// places are the flags for the bench's own directories.
func (b *bench) places() []string {
	return []string{"-cache-dir", b.cache, "-results-dir", b.results}
}

// outcome is what a run left.
type outcome struct {
	code           int
	stdout, stderr string
	took           time.Duration
}

// buffer collects what a run prints, to be looked at meanwhile.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// process is a run in progress.
type process struct {
	*exec.Cmd
	t           testing.TB
	b           *bench
	out, errout buffer
	started     time.Time
}

// start runs the binary with -test.run '^$' and the given arguments.
func (b *bench) start(args ...string) *process {
	b.t.Helper()
	command := b.command
	if command == nil {
		command = []string{binary(b.t), "-test.run=^$"}
	}
	command = append(append([]string(nil), command...), args...)
	p := &process{Cmd: exec.Command(command[0], command[1:]...), t: b.t, b: b}
	p.Dir, p.Env, p.SysProcAttr = cmp.Or(b.dir, b.work), b.env, b.attr
	p.Stdout, p.Stderr, p.ExtraFiles = &p.out, &p.errout, b.files
	p.WaitDelay = 20 * time.Second
	// these tests run under nohup: what is handled here is not ignored by a child
	if signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	p.started = time.Now()
	require.NoError(b.t, p.Start())
	b.t.Cleanup(func() { // a test that failed half-way leaves no process behind
		if p.ProcessState == nil {
			_ = p.Process.Kill()
			_ = p.Cmd.Wait()
		}
	})
	return p
}

// end waits and reports.
func (p *process) end() outcome {
	p.t.Helper()
	err := p.Cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(p.t, err)
	}
	p.b.outputs = append(p.b.outputs, p.out.String())
	return outcome{code: p.ProcessState.ExitCode(), stdout: p.out.String(),
		stderr: p.errout.String(), took: time.Since(p.started)}
}

// run runs to the end.
func (b *bench) run(args ...string) outcome {
	b.t.Helper()
	return b.start(args...).end()
}

// ok runs to a good end.
func (b *bench) ok(args ...string) outcome {
	b.t.Helper()
	o := b.run(args...)
	require.Equal(b.t, 0, o.code, "%v\nstdout:\n%s\nstderr:\n%s", args, o.stdout, o.stderr)
	return o
}

// resultFiles lists the result JSON files below dir in the order of their names.
func resultFiles(t testing.TB, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(d.Name(), "kvcache_results_") &&
			strings.HasSuffix(d.Name(), ".json") {
			files = append(files, path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	require.NoError(t, err)
	return files
}

// theResult reads the only result below dir.
func theResult(t testing.TB, dir string) *result.Result {
	t.Helper()
	files := resultFiles(t, dir)
	require.Len(t, files, 1)
	return readResult(t, files[0])
}

func readResult(t testing.TB, path string) *result.Result {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	r, err := result.Parse(text)
	require.NoError(t, err)
	return r
}

// tree describes everything below dir: type, mode, size, the files' times and
// contents and the links' targets. Directories' times change with their entries.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += fmt.Sprintf(" %s %x", info.ModTime().Format(time.RFC3339Nano),
				sha256.Sum256(content))
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			text += " -> " + target
		}
		name, err := filepath.Rel(dir, path)
		all[name] = text
		return err
	}))
	return all
}

// exists reports whether there is a file of any kind at a path.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// patience bounds waiting, also on a busy machine.
const patience = 5 * time.Minute

// eventually polls every millisecond.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(patience)
	for !cond() {
		require.True(t, time.Now().Before(deadline), "not within %s: %s", patience, what)
		<-tick.C
	}
}

// goFlags are the binary's flags as the go command takes them.
func goFlags(flags []string) []string {
	var list []string
	for _, f := range flags {
		list = append(list, strings.Replace(f, "-test.", "-", 1))
	}
	return list
}

// few are the flags of the shortest possible run of Synthetic.
func (b *bench) few(args ...string) []string {
	return append(append(b.micro(), "-test.bench=Synthetic", "-test.benchtime=5x"), args...)
}

func parameter(t testing.TB, r *result.Result, name string) string {
	t.Helper()
	for _, p := range r.Parameters {
		if p.Name == name {
			return fmt.Sprint(p.Value)
		}
	}
	t.Errorf("no parameter %s", name)
	return ""
}

// refused runs with parameters that cannot work: exit code 2, a message, no benchmark, and nothing
// made. It returns the message.
func (b *bench) refused(args ...string) string {
	b.t.Helper()
	before := tree(b.t, b.work)
	o := b.run(args...)
	assert.Equal(b.t, exitParameters, o.code, "%v\n%s%s", args, o.stdout, o.stderr)
	assert.Empty(b.t, o.stdout, "%v", args)
	assert.Equal(b.t, before, tree(b.t, b.work), "something was made")
	return o.stderr
}

package tiertest

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers/gputier"
)

//go:embed testdata/libcuda.c
var fakeCUDA string

//go:embed testdata/libnvidia-ml.c
var fakeNVML string

// FakeCards compiles the drivers of the tests and starts this test binary again with them, because the
// dynamic linker reads LD_LIBRARY_PATH when a process begins. It returns the exit status for TestMain. The
// drivers are C files in testdata, which say how the environment controls them.
func FakeCards(m *testing.M) int {
	const again = "KVTEST_FAKE_CARDS"
	if os.Getenv(again) != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "kvbench-fake-cards-*")
	if err == nil {
		defer os.RemoveAll(dir)
		err = CompileCards(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "the tests run without fake cards:", err)
		return m.Run()
	}
	cmd := exec.Command(os.Args[0], os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), again+"=1", "LD_LIBRARY_PATH="+dir)
	if err := cmd.Run(); cmd.ProcessState == nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return cmd.ProcessState.ExitCode()
}

// CompileCards writes the drivers of the tests to a directory, for LD_LIBRARY_PATH.
func CompileCards(dir string) error {
	for name, source := range map[string]string{"libcuda.so.1": fakeCUDA, "libnvidia-ml.so.1": fakeNVML} {
		cc := exec.Command("cc", "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-pthread", "-o",
			filepath.Join(dir, name), "-x", "c", "-")
		cc.Stdin = strings.NewReader(source)
		if out, err := cc.CombinedOutput(); err != nil {
			return fmt.Errorf("cc %s: %w\n%s", name, err, out)
		}
	}
	return nil
}

// Cards returns a test's own log of what the driver of the tests holds. The test fails at its end if that is
// anything: device memory, registrations or contexts. It is skipped in builds that cannot use a card.
func Cards(t testing.TB) (log string) {
	t.Helper()
	if _, err := gputier.Cards(); errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	log = filepath.Join(t.TempDir(), "log")
	t.Setenv("FAKECUDA_LOG", log)
	t.Cleanup(func() {
		// After a signal a run on a busy machine may return before its clean-up has ended.
		assert.Eventually(t, func() bool { return len(CardsHold(t, log)) == 0 }, time.Minute, time.Second/20,
			"the driver still holds something: %v", CardsHold(t, log))
	})
	return log
}

// CardsHold returns what the log of the fake driver (FAKECUDA_LOG) says is still held, as "WHAT COUNT" of
// the last line for each kind: nothing if all was given back.
func CardsHold(t testing.TB, log string) (held []string) {
	t.Helper()
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	last := map[string]string{}
	for line := range strings.Lines(string(text)) {
		what, count, _ := strings.Cut(strings.TrimSpace(line), " ")
		last[what] = count
	}
	require.NotEmpty(t, last, "the log is of a run that used a card")
	for what, count := range last {
		if count != "0" {
			held = append(held, what+" "+count)
		}
	}
	return held
}

package trace

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/internal/privtest"
)

func run(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = Run(args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{nil, "give either -comm NAME or -pid N"},
		{[]string{"-comm", "x", "-pid", "3"}, "give either -comm NAME or -pid N"},
		{[]string{"-comm", "a-name-of-seventeen"}, "longer than the 15 characters"},
		{[]string{"-pid", "-4"}, "must not be negative"},
		{[]string{"-pid", "4", "-duration", "-1s"}, "-duration -1s"},
		{[]string{"-pid", "4", "-level", "all"}, `-level: unknown level "all"`},
		{[]string{"-pid", "4", "-dir", "/proc"}, "-dir /proc: proc"},
		{[]string{"-pid", "4", "extra"}, `unexpected argument "extra"`},
		{[]string{"-speed", "4"}, "-speed"},
	} {
		code, stdout, stderr := run(c.args...)
		assert.Equal(t, usage, code, "%q", c.args)
		assert.Empty(t, stdout)
		assert.Contains(t, stderr, c.says)
		assert.Equal(t, 1, strings.Count(stderr, "\n"), "one line: %s", stderr)
	}
}

// TestBesideFio traces a running fio by name and expects its job back.
func TestBesideFio(t *testing.T) {
	privtest.Root(t)
	_, err := exec.LookPath("fio")
	privtest.Need(t, err)
	l := privtest.LoopFS(t, 160, privtest.LoopOptions{NoJournal: true, DirectIO: true})
	file := filepath.Join(l.Dir, "data")
	out, err := exec.Command("fio", "--name=layout", "--filename="+file, "--rw=write", "--bs=1M", "--size=128M", "--direct=1").CombinedOutput()
	require.NoError(t, err, "%s", out)
	fio := exec.Command("fio", "--name=t", "--filename="+file, "--rw=randrw", "--rwmixread=70", "--bssplit=4k/50:16k/30:128k/20,64k/100", "--norandommap",
		"--direct=1", "--ioengine=libaio", "--iodepth=8", "--time_based", "--runtime=60", "--output=/dev/null")
	require.NoError(t, fio.Start())
	t.Cleanup(func() { _ = fio.Process.Signal(os.Interrupt); _ = fio.Wait() })

	job := filepath.Join(t.TempDir(), "job.fio")
	code, stdout, stderr := run("-comm", "fio", "-duration", "3s", "-dir", l.Dir, "-fio", job)
	if code == no {
		privtest.Need(t, errors.New(stderr))
	}
	require.Equal(t, done, code, "%s", stderr)
	assert.Contains(t, stdout, "Diagnosis: ")
	text, err := os.ReadFile(job)
	require.NoError(t, err)
	assert.Regexp(t, regexp.MustCompile(`(?m)^rwmixread=(6[789]|7[0123])$`), string(text))
	assert.Regexp(t, regexp.MustCompile(`(?m)^bssplit=4k/(4[789]|5[0123]):16k/(2[789]|3[0123]):128k/(1[789]|2[0123]),64k/100$`), string(text))
	assert.Regexp(t, regexp.MustCompile(`(?m)^iodepth=\d+$`), string(text))
}

func TestNobodyToTrace(t *testing.T) {
	privtest.Root(t)
	code, _, stderr := run("-comm", "no-such-program", "-duration", "50ms")
	assert.Equal(t, no, code, stderr)
	code, _, stderr = run("-pid", "999999999")
	assert.NotEqual(t, done, code, stderr)
}

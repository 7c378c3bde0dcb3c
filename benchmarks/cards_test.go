package benchmarks

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers/gputier"
	"kvbench/tiers/tiertest"
)

// TestCards: what a user gets who asks for cards, without and with them. Each line is a run of this binary.
func TestCards(t *testing.T) {
	dir := t.TempDir()
	run := func(drivers string, args ...string) (code int, out string) {
		cmd := exec.Command(os.Args[0], append([]string{"-test.run=^$", "-test.bench=Tier/tier=gpu/op=.*/size=1MiB",
			"-test.benchtime=20x", "-gpu-backend=cuda", "-results-dir=" + filepath.Join(dir, "results")}, args...)...)
		cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+drivers, "FAKECUDA_LOG="+filepath.Join(dir, "log"))
		text, _ := cmd.CombinedOutput()
		return cmd.ProcessState.ExitCode(), string(text)
	}
	refused := func(drivers, want string, args ...string) {
		t.Helper()
		code, out := run(drivers, args...)
		assert.Equal(t, exitParameters, code)
		assert.Contains(t, out, want)
		assert.NoDirExists(t, filepath.Join(dir, "results"))
	}
	if _, err := gputier.Cards(); errors.Is(err, errors.ErrUnsupported) {
		refused("", "-gpu-backend: must be simulated on this machine, given cuda: this build cannot use a card, "+
			"because it was built without cgo")
		return
	}
	refused("", "-gpu-backend: must be simulated on this machine, given cuda: load the CUDA driver: libcuda.so.1")
	require.NoError(t, tiertest.CompileCards(dir))
	refused(dir, "-num-gpus: must be at most 2, the cards of this machine, given 3", "-num-gpus=3")
	refused(dir, "-gpu-mem-gb: must be at most 1, because card 0 (Fake Card 0) has 1 GiB of 1 GiB free for 1 rank "+
		"of this host, given 2", "-gpu-mem-gb=2")
	refused(dir, "-gpu-mem-gb: must be at most 0.5, because", "-gpu-mem-gb=0.75", "-ranks=2")
	code, out := run(dir, "-gpu-mem-gb=0.125", "-num-gpus=2", "-verify=full", "-summary=long")
	assert.Zero(t, code, "%s", out)
	assert.Contains(t, out, "gpu: 2 × Fake Card 0, CUDA 13.0")
	assert.Contains(t, out, "Fake Card 1 at 0000:82:00.0, driver 580.95.05, CUDA 13.0, PCIe 5 × 8; a plain copy reads")
	assert.Empty(t, tiertest.CardsHold(t, filepath.Join(dir, "log")))
}

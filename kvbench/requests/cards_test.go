package requests

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/kvbench/result"
	"kvbench/tiers/content"
	"kvbench/tiers/tiertest"
)

// TestRunsOnCards: however a run on cards ends, no byte is lost and the driver holds nothing.
func TestRunsOnCards(t *testing.T) {
	for _, c := range []struct {
		name, fail string
		interrupt  bool
		wantError  string
	}{
		{name: "success"},
		{name: "signal", interrupt: true, wantError: assert.AnError.Error()},
		{name: "no memory", fail: "cuMemAlloc_v2:2:2", wantError: "cuMemAlloc of 2097152 bytes (-gpu-mem-gb) on card 1"},
		{name: "lost card", fail: "cuStreamSynchronize:700:100", wantError: "CUDA_ERROR_ILLEGAL_ADDRESS"},
		{name: "no registration", fail: "cuMemHostRegister_v2:800:1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tiertest.Cards(t)
			t.Setenv("FAKECUDA_FAIL", c.fail)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			cfg := onFiles(t, 4)
			cfg.Storage.Cards, cfg.Storage.Verify = 2, content.VerifyFull
			cfg.Window, cfg.Limit = 0, 100
			if c.interrupt {
				cfg.Limit = 0
				cfg.EndedBy = result.EndedByInput
				cfg.Progress = func(kvbench.Snapshot) { interrupt(cancel) }
			}
			r, err := runLoad(ctx, cfg)
			if c.wantError != "" {
				require.ErrorContains(t, err, c.wantError)
				return
			}
			require.NoError(t, err)
			require.Equal(t, result.StatusComplete, r.Status)
			gpu, storage := r.Tiers[0], r.Tiers[1]
			assert.Equal(t, "2 × Fake Card 0, CUDA 13.0", gpu.Description)
			assert.Positive(t, gpu.Read.Bytes)
			assert.Positive(t, storage.DemotedIn.Bytes, "bytes of the card are written to the storage")
			assert.Positive(t, storage.Read.Bytes, "and read back and verified")
			require.Len(t, r.Cards, 2)
			for _, card := range r.Cards {
				assert.Empty(t, card.NVMLReason)
				assert.EqualValues(t, 2<<20, *card.UsedBytes)
				assert.Positive(t, *card.ReceivedBytes)
			}
			warned := strings.Contains(strings.Join(r.Warnings, "\n"), "copies to and from the card are slower "+
				"than its link: register the I/O buffers: cuMemHostRegister")
			assert.Equal(t, c.fail != "", warned)
		})
	}
}

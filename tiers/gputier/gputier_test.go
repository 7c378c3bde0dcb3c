package gputier_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/gputier"
	"kvbench/tiers/tiertest"
	"kvbench/tracing/host"
	"kvbench/tracing/nvml"
)

func TestMain(m *testing.M) { os.Exit(tiertest.FakeCards(m)) }

// cards returns a tier over some of the driver's cards.
func cards(t testing.TB, n int, bytes int64) *gputier.Tier {
	t.Helper()
	tiertest.Cards(t)
	tier, err := gputier.New(n, bytes)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, tier.Close()) })
	return tier
}

func TestContract(t *testing.T) {
	for _, n := range []int{1, 2} {
		tiertest.RunFiles(t, func(t testing.TB) tiers.Files { return cards(t, n, 16<<20) })
	}
}

// TestNoTier: what the driver refuses is an error with the driver's text and the cure, and nothing is held.
func TestNoTier(t *testing.T) {
	for _, c := range []struct{ fail, want string }{
		{"cuMemAlloc_v2:2:2", "cuMemAlloc of 1048576 bytes (-gpu-mem-gb) on card 1: CUDA_ERROR_OUT_OF_MEMORY " +
			"(out of memory); give a smaller -gpu-mem-gb, or end the processes that use the card " +
			"(nvidia-smi lists them)"},
		{"cuDevicePrimaryCtxRetain:46:2", "cuDevicePrimaryCtxRetain of card 1: CUDA_ERROR_DEVICE_UNAVAILABLE " +
			"(CUDA-capable device(s) is/are busy or unavailable); another process has the card for itself: " +
			"end it (nvidia-smi lists it), or allow several with nvidia-smi -c 0"},
		{"cuMemAlloc_v2:12345:1", "on card 0: error 12345 (unknown to the driver)"},
	} {
		tiertest.Cards(t)
		t.Setenv("FAKECUDA_FAIL", c.fail)
		_, err := gputier.New(2, 1<<20)
		assert.ErrorContains(t, err, c.want)
	}
	t.Setenv("FAKECUDA_FAIL", "")
	_, err := gputier.New(3, 1<<20)
	assert.EqualError(t, err, "use 3 cards (-num-gpus): this machine has 2")
}

// TestNoCards: a process without driver or card.
func TestNoCards(t *testing.T) {
	_, err := gputier.Cards()
	if want := os.Getenv("WANT"); want != "" {
		assert.ErrorContains(t, err, want)
		return
	}
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	for _, c := range []struct{ env, want string }{
		{"LD_LIBRARY_PATH=", "libcuda.so.1 comes with the NVIDIA driver"},
		{"FAKECUDA_CARDS=0", "cuInit: CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected); nvidia-smi -L"},
		{"FAKECUDA_FAIL=cuInit:803:1", "different versions"},
	} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestNoCards$")
		cmd.Env = append(os.Environ(), c.env, "WANT="+c.want)
		out, err := cmd.CombinedOutput()
		assert.NoError(t, err, "%s", out)
	}
}

// TestFailingCards: a copy that fails is an error of its Put or Get, and nothing is lost but what a failed
// write has written.
func TestFailingCards(t *testing.T) {
	o := tiers.Object{Key: "u1/c1/t1", Gen: 1, Size: 6*tiertest.Chunk - 100}
	tier := cards(t, 2, 1<<20)
	x := tiertest.Transfer(t, tiertest.Chunk, 3)
	write := func() error { _, _, err := x.Write(t.Context(), tier, nil, o); return err }
	read := func() error { _, _, err := x.Read(t.Context(), tier, nil, o); return err }
	for _, call := range []string{"cuCtxSetCurrent", "cuMemcpyHtoDAsync_v2", "cuStreamSynchronize"} {
		t.Setenv("FAKECUDA_FAIL", call+":700:3")
		err := write()
		assert.ErrorContains(t, err, "(write) at offset", call)
		assert.ErrorContains(t, err, "CUDA_ERROR_ILLEGAL_ADDRESS")
		_, err = tier.Create(t.Context(), tiers.Object{Key: "large", Size: 1 << 30})
		assert.ErrorContains(t, err, fmt.Sprint(2<<20, " are free"))
	}
	t.Setenv("FAKECUDA_FAIL", "")
	require.NoError(t, write())
	t.Setenv("FAKECUDA_FAIL", "cuMemcpyDtoHAsync_v2:214:2")
	assert.ErrorContains(t, read(), "CUDA_ERROR_ECC_UNCORRECTABLE")
	t.Setenv("FAKECUDA_FAIL", "")
	require.NoError(t, read(), "the object is still there")
}

// TestPins: the buffers of a run are registered once. If the driver refuses that, they work as they are.
func TestPins(t *testing.T) {
	tier := cards(t, 1, 1<<20)
	x := tiertest.Transfer(t, tiertest.Chunk, 2)
	require.NoError(t, x.Pool.Register(tier.Pins()))
	o := tiers.Object{Key: "k", Size: 300_000}
	_, _, err := x.Write(t.Context(), tier, nil, o)
	require.NoError(t, err)
	require.NoError(t, x.Pool.Close(), "which unregisters")
	t.Setenv("FAKECUDA_FAIL", "cuMemHostRegister_v2:800:1")
	x = tiertest.Transfer(t, tiertest.Chunk, 2)
	assert.ErrorContains(t, x.Pool.Register(tier.Pins()), "CUDA_ERROR_NOT_PERMITTED (operation not permitted)")
	_, _, err = x.Read(t.Context(), tier, nil, o)
	require.NoError(t, err)
}

// TestCopyRates: the time of a slow card's copies is in the rates.
func TestCopyRates(t *testing.T) {
	tier := cards(t, 1, 1<<20)
	const pause = 10 * time.Millisecond
	t.Setenv("FAKECUDA_SLOW", "10000")
	rates, err := tier.CopyRates()
	require.NoError(t, err)
	require.Len(t, rates, 1)
	for _, rate := range rates[0] {
		assert.Positive(t, rate)
		assert.Less(t, rate, (1<<20)/pause.Seconds())
	}
	assert.Equal(t, "Fake Card 0, CUDA 13.0", tier.Traits().Description)
	assert.Equal(t, []gputier.Card{{Name: "Fake Card 0", Address: "0000:81:00.0", CUDA: "13.0", Bytes: 1 << 30,
		Free: 1 << 30}}, tier.Cards())
}

// TestNVML: the library counts the bytes that the tier copies and the memory that it takes.
func TestNVML(t *testing.T) {
	tier := cards(t, 1, 1<<20)
	before, err := nvml.Cards()
	require.NoError(t, err)
	require.Len(t, before, 2)
	x := tiertest.Transfer(t, tiertest.Chunk, 2)
	o := tiers.Object{Key: "k", Size: 300_000}
	_, _, err = x.Write(t.Context(), tier, nil, o)
	require.NoError(t, err)
	for range 2 {
		_, _, err = x.Read(t.Context(), tier, nil, o)
		require.NoError(t, err)
	}
	after, err := nvml.Cards()
	require.NoError(t, err)
	assert.Equal(t, o.Size, *after[0].ReceivedBytes-*before[0].ReceivedBytes)
	assert.Equal(t, 2*o.Size, *after[0].SentBytes-*before[0].SentBytes)
	after[0].ReceivedBytes, after[0].SentBytes = nil, nil
	assert.Equal(t, nvml.Card{Name: "Fake Card 0", UUID: "GPU-0", Driver: "580.95.05", Address: "0000:81:00.0",
		MemoryBytes: new(int64(1 << 30)), UsedBytes: new(int64(1 << 20)), Source: "NVML",
		Link: &host.Link{Address: "0000:81:00.0", Generation: 5, Width: 8, MaxGeneration: 5, MaxWidth: 16},
	}, after[0])
	t.Setenv("FAKENVML_OLD", "1")
	after, err = nvml.Cards()
	require.NoError(t, err)
	assert.Nil(t, after[0].SentBytes, "a counter of 32 bits overflows within a second")
}

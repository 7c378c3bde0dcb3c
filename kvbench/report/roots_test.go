package report

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbench/kvbench/result"
)

// twoRoots are two directories; a read of the second takes that many times as long.
func twoRoots(times float64, requests int64) *result.Result {
	r := plainResult()
	for i, dir := range []string{"/mnt/a/kv", "/mnt/b/kv"} {
		took := int64(2e6)
		if i == 1 {
			took = int64(2e6 * times)
		}
		r.IO.Roots = append(r.IO.Roots, result.Root{Directory: dir, Filesystem: "xfs",
			Device: "nvme" + string(rune('0'+i)) + "n1", RoomBytes: 1 << 40, Entries: 10,
			UsedBytes: 1 << 30, Elsewhere: int64(i), DeviceReadBytes: new(int64(1 << 28)),
			DeviceWriteBytes: new(int64(0)), DeviceBusyShare: new(0.5),
			Read: result.RootTraffic{Bytes: 1 << 28, BytesPerSecond: new(float64(1 << 28)),
				Requests: requests, RequestNS: requests * took, MeanInFlight: new(times)}})
	}
	r.DeviceWitness.ReadBytes, r.DeviceWitness.WriteBytes = new(int64(1<<29)), new(int64(0))
	r.Derive()
	return r
}

func plainResult() *result.Result { return &result.Result{WindowNS: 1e9, Benchmark: "MultiTurn"} }

// TestRootsAreListed with their sum; a slow one is named where the numbers show it.
func TestRootsAreListed(t *testing.T) {
	text := summaryOf(t, twoRoots(4, 1000))
	assert.Contains(t, text, "\nroots ")
	assert.Contains(t, text, "/mnt/a/kv (nvme0n1)")
	assert.Regexp(t, `\n +all +20 +1 +2 GiB +512 MiB/s .* 0.50 GiB +0 GiB +–\n`, text)
	assert.Contains(t, text, "\n            /mnt/b/kv lags: its reads take 8 ms on average, those "+
		"of the others 2 ms: with 50 % of them it has 80 % of what is in flight\n")
	assert.NotContains(t, summaryOf(t, twoRoots(2, 1000)), "lags", "67 % are less than 1.5 × 50 %")
	assert.NotContains(t, summaryOf(t, twoRoots(4, 299)), "lags", "too few")
	r := twoRoots(4, 1000)
	r.IO.Roots[1].Read.Bytes *= 4
	assert.NotContains(t, summaryOf(t, r), "lags", "its requests are four times as large")
	r = twoRoots(4, 1000)
	r.IO.Roots[1].Device = r.IO.Roots[0].Device
	assert.NotContains(t, summaryOf(t, r), "lags", "it is the same device")
	assert.NotContains(t, summaryOf(t, plainResult()), "roots")
	sections := Sections(twoRoots(1, 100))
	assert.Equal(t, "What each directory had and moved", sections[len(sections)-1].Title)
}

// TestMountsOfRoots: one network mount among the directories is enough for a trace of block devices
// not to have seen all requests.
func TestMountsOfRoots(t *testing.T) {
	r := twoRoots(1, 100)
	r.IO.ChunkBytes = 1 << 20
	assert.False(t, fioInput(r).Remote)
	r.IO.Roots[1].Mount = result.Filesystem{Type: "nfs4", ReadSizeBytes: new(int64(256 << 10)),
		WriteSizeBytes: new(int64(4 << 20))}
	in := fioInput(r)
	assert.Equal(t, []any{true, int64(256 << 10), int64(1 << 20)},
		[]any{in.Remote, in.ReadSize, in.WriteSize})
}

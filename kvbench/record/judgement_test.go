package record

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"kvbench/kvbench/result"
	"kvbench/tiers"
)

// warningsOf are those of a trial of 12 s with these completed requests.
func warningsOf(completed int, in result.Result) string {
	rec := openRecorder(1, 12*time.Second)
	for range completed {
		rec.Request(RequestSample{})
	}
	rec.Chunk(0, tiers.Storage, tiers.Decode, tiers.Chunk{Op: tiers.Read, Bytes: 100 << 20})
	return strings.Join(Build(infoOf(in), rec).Warnings, "\n")
}

func TestAWindowThatIsTooShortIsSaidSo(t *testing.T) {
	end := func(by string, inFlight int64) result.Result {
		return result.Result{EndedBy: by,
			Load: map[string]result.ClassOutcome{"batch": {InFlight: inFlight}}}
	}
	assert.Contains(t, warningsOf(8, end(result.EndedByDeadline, 200)),
		"the window of 12 s is too short for this load: 8 requests completed in it and 200 were "+
			"under way at its end; one takes about 5m0s at this rate")
	for _, c := range []struct {
		completed int
		in        result.Result
	}{{200, end(result.EndedByDeadline, 200)}, {8, end(result.EndedBySignal, 200)},
		{8, end(result.EndedByDeadline, 8)}} {
		assert.NotContains(t, warningsOf(c.completed, c.in), "too short")
	}
}

func TestADeviceThatSomebodyElseReadIsSaidSo(t *testing.T) {
	for share, want := range map[int64]string{90: "served from a cache", 96: "", 104: "",
		145: "the device read 145 MiB where the application read 100 MiB (ratio 1.45): somebody else"} {
		got := warningsOf(1, result.Result{DeviceWitness: result.Witness{Device: "vda",
			ReadBytes: new(share << 20), WriteBytes: new(int64(0))}})
		if want == "" {
			assert.NotContains(t, got, "the device read")
		} else {
			assert.Contains(t, got, want)
		}
	}
}

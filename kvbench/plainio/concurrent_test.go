package plainio

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A storage that moves bytes in slices shows its rate, whatever part of a slice is in flight when a
// measurement ends.
func TestAMeanLosesNothingUnderWay(t *testing.T) {
	const slice, bytes = 100 * time.Millisecond, 20 << 20
	apart := 0.0
	for took := 2 * slice; took <= 10*slice; took += 7 * time.Millisecond {
		all := make([]tally, 2) // one of them stays empty
		total := 0
		for at := slice; at <= took; at += slice {
			all[0].add(at-1, bytes)
			total += bytes
		}
		assert.InEpsilon(t, bytes/slice.Seconds(), mean(all, took), 0.04, took)
		apart = max(apart, 1-float64(total)/took.Seconds()/(bytes/slice.Seconds()))
	}
	assert.Greater(t, apart, 0.3, "as bytes over time have it")
}

// However many times parts have become longer, all bytes are in them, where they belong.
func TestATallyKeepsAllBytes(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		all, took, total := make([]tally, 3), time.Duration(0), int64(0)
		step := time.Duration(1 + rnd.Int64N(int64(20*time.Millisecond)))
		for range 5000 {
			took += time.Duration(rnd.Int64N(int64(step)))
			total += 4096
			all[rnd.IntN(len(all))].add(took, 4096)
		}
		sum := int64(0)
		for i := range all {
			for at, bytes := range all[i].bytes {
				sum += bytes
				if bytes != 0 {
					assert.LessOrEqual(t, time.Duration(at)*all[i].part, took)
				}
			}
		}
		assert.Equal(t, total, sum)
		assert.InEpsilon(t, float64(total)/took.Seconds(), mean(all, took), 0.06)
	}
}

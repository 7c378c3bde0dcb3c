package benchmarks

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"kvbench/kvbench/params"
)

// Rules 6.3.2.1 want 90 s between two options; trials of one option have their own rests.
func TestClosedRestsBetweenOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &session{ctx: t.Context()}
		for _, c := range []struct {
			division params.Division
			option   int
			rest     time.Duration
		}{
			{params.Closed, 1, 0}, {params.Closed, 1, 0}, {params.Closed, 2, 90 * time.Second},
			{params.Closed, 3, 90 * time.Second}, {params.Open, 1, 0},
		} {
			began := time.Now()
			s.pauseBetweenOptions(&params.Values{Division: c.division,
				Bench: params.Bench{Option: c.option}}, nil)
			assert.Equal(t, c.rest, time.Since(began), c)
		}
	})
}

package view

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTheLeastLoadThatIsEnough(t *testing.T) {
	for _, c := range []struct {
		y    []float64
		want int
		ok   bool
	}{{[]float64{1, 2, 4, 8}, 3, false}, {[]float64{8, 8, 8}, 0, false},
		{[]float64{1, 7, 10, 10}, 2, true}, {[]float64{1, 10}, 0, false},
		{[]float64{1, 10, 5}, 1, true}} {
		k, ok := leastEnough(c.y)
		assert.Equal(t, c.ok, ok, c.y)
		if ok {
			assert.Equal(t, c.want, k)
		}
	}
}

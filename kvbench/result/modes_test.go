package result

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestUnknownNumbersAreNotJudged(t *testing.T) {
	c := NewCheck(nil, new(0.5))
	assert.Nil(t, c.Passed)
	c = NewCheck(new(0.0), new(0.04))
	assert.True(t, *c.Passed)
	c = NewCheck(new(2.0), new(1.89))
	assert.False(t, *c.Passed)
	assert.InDelta(t, -0.055, *c.Difference, 1e-9)
}

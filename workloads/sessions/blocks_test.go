package sessions

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTheIdealIsUnknownBeyondItsBound(t *testing.T) {
	var c idealCache
	assert.Equal(t, 0, c.prefix("a", []int64{1, 2, 3}))
	assert.Equal(t, 2, c.prefix("a", []int64{1, 2, 4, 3}))
	assert.Equal(t, 0, c.prefix("b", []int64{1}))
	c.seen = nil
	assert.Equal(t, -1, c.prefix("a", []int64{1}))
}

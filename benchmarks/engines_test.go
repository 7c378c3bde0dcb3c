package benchmarks

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Two rounds go there and back, so that each line has the same mean place in them; who follows whom
// changes from turn to turn.
func TestRoundsGoThereAndBack(t *testing.T) {
	const lines = 5
	orders := map[string]bool{}
	for round := 0; round < 20; round += 2 {
		there, back := turn(42, round, lines), turn(42, round+1, lines)
		for line := range lines {
			assert.Equal(t, lines-1, slices.Index(there, line)+slices.Index(back, line))
		}
		text := ""
		for _, line := range there {
			text += string(rune('a' + line))
		}
		orders[text] = true
		assert.Equal(t, there, turn(42, round, lines), "every rank draws the same")
	}
	assert.Greater(t, len(orders), 5)
}

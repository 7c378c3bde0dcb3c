package report

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestShownKeepsTheEnds(t *testing.T) {
	for _, c := range []struct {
		n, most int
		want    string
	}{{0, 9, "[]"}, {1, 9, "[0]"}, {3, 9, "[0 1 2]"}, {20, 5, "[0 4 9 14 19]"}, {2, 1, "[0]"}} {
		rows := make([]int, c.n)
		for i := range rows {
			rows[i] = i
		}
		assert.Equal(t, c.want, fmt.Sprint(shown(rows, c.most)))
	}
}

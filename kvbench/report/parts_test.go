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
		got := []int{}
		got = append(got, shown(c.n, c.most)...)
		assert.Equal(t, c.want, fmt.Sprint(got))
	}
}

package view

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Of many values six say that there are many; of the parameters that were given each may matter.
func TestEveryGivenParameterIsShown(t *testing.T) {
	var f facts
	for i := range 9 {
		f.add(given, fmt.Sprint("p=", i))
		f.add("seed", fmt.Sprint(i))
	}
	assert.Equal(t, 8, strings.Count(f[0].Value(), ", "))
	assert.Contains(t, f[1].Value(), "5, and 3 more")
}

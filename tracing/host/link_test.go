package host

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestGenerations(t *testing.T) {
	for speed, want := range map[string]int{"2.5 GT/s PCIe": 1, "5.0 GT/s PCIe": 2,
		"8.0 GT/s PCIe": 3, "16.0 GT/s PCIe": 4, "32.0 GT/s PCIe": 5, "64.0 GT/s PCIe": 6,
		"Unknown": 0, "": 0} {
		assert.Equal(t, want, generation(speed), speed)
	}
	assert.InDelta(t, 7.33, Link{Generation: 4, Width: 4}.GiBPerSecond(), 0.01)
	assert.InDelta(t, 0.466, Link{Generation: 2, Width: 1}.GiBPerSecond(), 0.001)
}

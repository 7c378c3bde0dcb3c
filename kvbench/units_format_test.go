package kvbench

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestFormats(t *testing.T) {
	assert.Equal(t, "1.50 GiB", binary(1.5*(1<<30)))
	assert.Equal(t, "1000 B", binary(1000))
	assert.Equal(t, "2 MiB", binary(2<<20))
	assert.Equal(t, "1.23 ms", duration(1_234_567))
	assert.Equal(t, "45.7 µs", duration(45_678))
	assert.Equal(t, "5m0s", duration(300e9))
	assert.Equal(t, "12 s", duration(12e9))
	assert.Equal(t, "1,234,567", count(1234567))
	assert.Equal(t, "-1,234", count(-1234))
	assert.Equal(t, "1 worker, 2 users", plural(1, "worker")+", "+plural(2, "user"))
	assert.Equal(t, "85 %", percent(new(0.85)))
	assert.Equal(t, "0.00123", number(0.001234))
}

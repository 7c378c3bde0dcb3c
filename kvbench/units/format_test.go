package units

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestFormats(t *testing.T) {
	assert.Equal(t, "1.50 GiB", Bytes(1.5*(1<<30)))
	assert.Equal(t, "1000 B", Bytes(1000))
	assert.Equal(t, "2 MiB", Bytes(2<<20))
	assert.Equal(t, "1.23 ms", Duration(1_234_567))
	assert.Equal(t, "45.7 µs", Duration(45_678))
	assert.Equal(t, "5m0s", Duration(300e9))
	assert.Equal(t, "12 s", Duration(12e9))
	assert.Equal(t, "1,234,567", Count(1234567))
	assert.Equal(t, "-1,234", Count(-1234))
	assert.Equal(t, "1 worker, 2 users", Plural(1, "worker")+", "+Plural(2, "user"))
	assert.Equal(t, "85 %", Percent(new(0.85)))
	assert.Equal(t, "0.00123", Number(0.001234))
}

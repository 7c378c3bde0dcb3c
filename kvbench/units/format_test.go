package units

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestFormats(t *testing.T) {
	assert.Equal(t, "1.50 GiB", Bytes.Text(1.5*(1<<30)))
	assert.Equal(t, "1000 B", Bytes.Text(1000))
	assert.Equal(t, "2 MiB", Bytes.Text(2<<20))
	assert.Equal(t, "1 GiB, 1023 MiB", Bytes.Text(1023.9*(1<<20))+", "+Bytes.Text(1023.4*(1<<20)))
	assert.Equal(t, "1 s", Nanoseconds.Text(999_900_000))
	assert.Equal(t, "1.23 ms", Nanoseconds.Text(1_234_567))
	assert.Equal(t, "45.7 µs", Nanoseconds.Text(45_678))
	assert.Equal(t, "5m0s", Nanoseconds.Text(300e9))
	assert.Equal(t, "12 s", Nanoseconds.Text(12e9))
	assert.Equal(t, "1,234,567", Count.Text(1234567))
	assert.Equal(t, "-1,234", Count.Text(-1234))
	assert.Equal(t, "1 worker, 2 users", Plural(1, "worker")+", "+Plural(2, "user"))
	assert.Equal(t, "85 %", Percent(new(0.85)))
	assert.Equal(t, "0.00123", Number.Text(0.001234))
	assert.Equal(t, "9.99 10 -0.50 100",
		Number.Text(9.99)+" "+Number.Text(9.999)+" "+Number.Text(-0.5)+" "+Number.Text(99.99))
	assert.Equal(t, "2 GiB/s", BytesPerSec.Text(new(int64(2<<30))))
	assert.Equal(t, "50 %, 20.5 ms, 2m0s",
		Share.Text(0.5)+", "+Milliseconds.Text(new(20.5))+", "+Seconds.Text(120))
	assert.Equal(t, "0 %, < 0.01 %, -1 %", Share.Text(-2.24e-8)+", "+Share.Text(2e-8)+", "+
		Share.Text(-0.01))
	assert.Equal(t, "unlimited", Bytes.Text("unlimited"), "a text stays")
	for _, u := range []Unit{Number, Count, Bytes, Nanoseconds, Share} {
		assert.Equal(t, Unknown, u.Text((*float64)(nil)))
		assert.Equal(t, Unknown, u.Text((*int64)(nil)))
	}
	assert.Equal(t, "unknown", Percent(nil))
}

// Numbers printed together have one unit, the largest value's.
func TestBeside(t *testing.T) {
	const mib, gib = 1 << 20, float64(1 << 30)
	values := []any{980.0 * mib, 1.02 * gib, new(int64(3 * mib)), "none", (*float64)(nil), 0.0}
	var got []string
	for _, v := range values {
		got = append(got, BytesPerSec.Beside(values...)(v))
	}
	assert.Equal(t, []string{"0.957 GiB/s", "1.02 GiB/s", "0.00293 GiB/s", "none", Unknown,
		"0 GiB/s"}, got)
	assert.Equal(t, "980 MiB/s", BytesPerSec.Beside(values[0])(values[0]))
	assert.Equal(t, "12 B/s", BytesPerSec.Beside(12.0)(12.0))
	assert.Equal(t, Unknown, BytesPerSec.Beside()((*int64)(nil)))
	assert.Equal(t, "900 ms", Milliseconds.Beside(900.0, 1200.0)(900.0), "these keep their own")

	sizes := []any{4 * gib, 64.0 * mib, int64(0)}
	assert.Equal(t, "0.0625 GiB", Bytes.Beside(sizes...)(sizes[1]))
	assert.Equal(t, "0 GiB", Bytes.Beside(sizes...)(sizes[2]))
	assert.Equal(t, "1 MiB", Bytes.Beside(append(sizes, 1.0*mib)...)(1.0*mib), "nothing of a GiB")
	assert.Equal(t, "0 B", Bytes.Beside(0)(0))
}

func TestRatio(t *testing.T) {
	assert.InDelta(t, 0.5, *Ratio(1, 2.0), 0)
	assert.Nil(t, Ratio(1, 0))
	assert.Nil(t, Ratio(math.Inf(1), 1.0))
	assert.InDelta(t, 2, *Ratio(2*time.Second, time.Second), 0)
}

func TestMedian(t *testing.T) {
	v, ok := Median([]float64{4, 1, 3, 2})
	assert.True(t, ok)
	assert.Equal(t, 2.5, v)
	_, ok = Median(nil)
	assert.False(t, ok)
}

func TestVariation(t *testing.T) {
	assert.InDelta(t, 0.2, Variation([]float64{5, 6, 4}), 1e-12)
	assert.True(t, math.IsNaN(Variation([]float64{5})))
}

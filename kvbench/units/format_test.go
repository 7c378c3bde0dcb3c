package units

import (
	"math"
	"strings"
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
	assert.Equal(t, "0.00123 0.0286 0.957 0.50 4.60 12 1234568", strings.Join([]string{
		Number.Text(0.001234), Number.Text(0.02861), Number.Text(0.9574), Number.Text(0.5),
		Number.Text(4.6), Number.Text(12), Number.Text(1234567.8)}, " "))
	for s, want := range map[float64]string{2.5: "2.50 s", 95.9: "95.9 s", 229: "3m49s",
		39600: "11h0m", 90 * 3600: "3d18h", 4 * 365 * 86400: "4.0 years", 1e12: "31709.8 years"} {
		assert.Equal(t, want, Seconds.Text(s))
	}
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
func TestInOneUnit(t *testing.T) {
	const mib, gib = 1 << 20, float64(1 << 30)
	values := []any{980.0 * mib, 1.02 * gib, new(int64(3 * mib)), "none", (*float64)(nil), 0.0}
	var got []string
	for _, v := range values {
		got = append(got, BytesPerSec.InOneUnit(values...)(v))
	}
	assert.Equal(t, []string{"0.957 GiB/s", "1.02 GiB/s", "0.00293 GiB/s", "none", Unknown,
		"0 GiB/s"}, got)
	assert.Equal(t, "980 MiB/s", BytesPerSec.InOneUnit(values[0])(values[0]))
	assert.Equal(t, "12 B/s", BytesPerSec.InOneUnit(12.0)(12.0))
	assert.Equal(t, Unknown, BytesPerSec.InOneUnit()((*int64)(nil)))
	assert.Equal(t, "900 ms", Milliseconds.InOneUnit(900.0, 1200.0)(900.0), "these keep their own")

	sizes := []any{4 * gib, 64.0 * mib, int64(0)}
	assert.Equal(t, "0.0625 GiB", Bytes.InOneUnit(sizes...)(sizes[1]))
	assert.Equal(t, "0 GiB", Bytes.InOneUnit(sizes...)(sizes[2]))
	assert.Equal(t, "1 MiB", Bytes.InOneUnit(append(sizes, 1.0*mib)...)(1.0*mib), "nothing of a GiB")
	assert.Equal(t, "0 B", Bytes.InOneUnit(0)(0))
}

func TestValuesOfLines(t *testing.T) {
	for _, c := range []struct {
		v          float64
		unit, want string
	}{
		{5e9, "read-B/s", "4.66 GiB/s"}, {0.00124, "read-p50-sec", "1.24 ms"},
		{0.025, "sec/op", "25 ms"}, {0.93, "hit-ratio", "0.93"},
		{3.2e7, "peak-RSS-bytes", "30.5 MiB"}, {2.3e-11, "cpu-sec/B", "0.023 ns/B"},
		{0.0023, "read-sec/MiB", "2.30 ms/MiB"},
		{1234567, "req/s", "1234567 req/s"}, {12, "allocs/op", "12 allocs/op"},
		{math.Inf(1), "x", "–"}, {0, "B/op", "0 B"}, {0, "read-p50-sec", "0 ns"},
		{0.0009999, "read-p50-sec", "1 ms"}, {1023.9 * (1 << 20), "read-B/s", "1 GiB/s"},
		{1023.4 * (1 << 20), "read-B/s", "1023 MiB/s"}, {0.9994, "sec/op", "999 ms"},
	} {
		assert.Equal(t, c.want, OfLine(c.unit)(c.v), c.unit)
	}
}

func TestChange(t *testing.T) {
	assert.Equal(t, "+26.1 %, -21.4 %, 0.0 %, 0.0 %, –", strings.Join([]string{Change(0.2609),
		Change(-0.2143), Change(0), Change(-1e-9), Change(math.Inf(1))}, ", "))
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

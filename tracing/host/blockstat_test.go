package host

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tracing"
)

func TestParseBlockStat(t *testing.T) {
	ms := time.Millisecond
	base := BlockStat{DeviceStat: tracing.DeviceStat{
		ReadIOs: 256697, ReadBytes: 728586658 * 512, ReadTicks: 1772777 * ms,
		WriteIOs: 5109, WriteBytes: 6829368 * 512, WriteTicks: 16174 * ms,
		IOTicks: 120768 * ms, TimeInQueue: 1792411 * ms,
	}, InFlight: 3}
	discard := base
	discard.DiscardIOs, discard.DiscardBytes = 3959, 295976*512
	discard.DiscardTicks = 3420 * ms
	flush := discard
	flush.FlushIOs, flush.FlushTicks = 534, 38*ms

	const eleven = "  256697     9709 728586658  1772777     5109     6947  6829368    16174     " +
		"   3   120768  1792411"
	const fifteen = eleven + "     3959      121   295976     3420"
	const seventeen = fifteen + "      534       38"
	for _, c := range []struct {
		name, text string
		want       BlockStat
	}{
		{"11 columns before Linux 4.18", eleven + "\n", base},
		{"15 columns with discards", fifteen + "\n", discard},
		{"17 columns with flushes", seventeen + "\n", flush},
		{"columns of a future kernel are ignored", seventeen + " 7 8 9\n", flush},
		{"a half-known group is ignored", eleven + " 1 2\n", base},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ParseBlockStat(c.text)
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
		})
	}
}

func TestParseBlockStatRefuses(t *testing.T) {
	for _, c := range []struct{ name, text, says string }{
		{"an empty file", "", "0 columns"},
		{"a truncated file", "1 2 3 4 5 6 7 8 9 10", "10 columns, at least 11"},
		{"text", "1 2 three 4 5 6 7 8 9 10 11", `column 3 ("three")`},
		{"a negative number", "1 2 3 4 -5 6 7 8 9 10 11", "column 5"},
		{"sectors whose bytes overflow", "1 2 18014398509481984 4 5 6 7 8 9 10 11", "column 3"},
		{"more than 64 bits", "99999999999999999999 2 3 4 5 6 7 8 9 10 11", "column 1"},
		{"a very long word is clipped", strings.Repeat("x", 5000), "…"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseBlockStat(c.text)
			require.ErrorContains(t, err, c.says)
			assert.Less(t, len(err.Error()), 300)
		})
	}
}

func TestBlockStatSub(t *testing.T) {
	before, err := ParseBlockStat("10 0 100 4294967290 20 0 200 50 1 60 70 1 0 8 2 3 4")
	require.NoError(t, err)
	after, err := ParseBlockStat("15 0 116 4 27 0 232 90 5 65 80 2 0 24 5 4 6")
	require.NoError(t, err)
	ms := time.Millisecond
	assert.Equal(t, BlockStat{DeviceStat: tracing.DeviceStat{
		// the 32-bit millisecond column wrapped
		ReadIOs: 5, ReadBytes: 16 * 512, ReadTicks: 10 * ms,
		WriteIOs: 7, WriteBytes: 32 * 512, WriteTicks: 40 * ms,
		IOTicks: 5 * ms, TimeInQueue: 10 * ms,
		DiscardIOs: 1, DiscardBytes: 16 * 512, DiscardTicks: 3 * ms,
		FlushIOs: 1, FlushTicks: 2 * ms,
	}, InFlight: 5}, after.Sub(before))
}

func TestBlockStatAdd(t *testing.T) {
	one, err := ParseBlockStat("1 0 2 3 4 0 5 6 7 8 9")
	require.NoError(t, err)
	two := one.Add(one)
	assert.Equal(t, 2*one.ReadBytes, two.ReadBytes)
	assert.EqualValues(t, 14, two.InFlight)
	assert.Equal(t, one.IOTicks, two.IOTicks, "they were busy at the same time")
	assert.Equal(t, 2*one.TimeInQueue, two.TimeInQueue)
}

// FuzzParseBlockStat asserts that no text makes the parser panic or count backwards.
func FuzzParseBlockStat(f *testing.F) {
	f.Add("  65 0 2242 2 255 393 232960 107 0 24 110 3 0 6291464 0 8 0\n")
	f.Add("1 2 3 4 5 6 7 8 9 10 11")
	f.Add("18446744073709551615 0 0 0 0 0 0 0 0 0 0")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseBlockStat(text)
		if err != nil {
			if s != (BlockStat{}) {
				t.Fatalf("an error came with values: %+v", s)
			}
			return
		}
		for _, v := range []int64{s.ReadIOs, s.ReadBytes, int64(s.ReadTicks), s.WriteIOs,
			s.WriteBytes, int64(s.WriteTicks),
			s.InFlight, int64(s.IOTicks), int64(s.TimeInQueue), s.DiscardIOs, s.DiscardBytes,
			int64(s.DiscardTicks), s.FlushIOs, int64(s.FlushTicks)} {
			if v < 0 {
				t.Fatalf("negative counter in %+v", s)
			}
		}
		zero := s.Sub(s)
		zero.InFlight = 0
		if zero != (BlockStat{}) {
			t.Fatalf("a reading minus itself is %+v", zero)
		}
	})
}

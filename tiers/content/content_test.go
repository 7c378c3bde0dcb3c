package content

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
)

var nonceA, nonceB = [16]byte{1}, [16]byte{2}

func filled(c *Content, o tiers.Object) []byte {
	p := make([]byte, o.Size)
	c.Fill(p, o, 0)
	return p
}

func TestAnyRangeOfContentCanBeMadeAgain(t *testing.T) {
	c := New(nonceA, 3)
	o := tiers.Object{Key: "u1/c2/t3", Gen: 7, Size: 100_003}
	whole := filled(c, o)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		off := rng.Int64N(o.Size)
		p := make([]byte, rng.Int64N(o.Size-off)+1)
		c.Fill(p, o, off)
		require.True(t, bytes.Equal(whole[off:off+int64(len(p))], p), "offset %d, %d bytes", off,
			len(p))
	}
}

func TestDepthsOfVerificationAreThoseOfTheFlag(t *testing.T) {
	assert.Equal(t, "none sample full", fmt.Sprint(VerifyNone, " ", VerifySample, " ", VerifyFull))
}

func TestCounterCarriesIntoTheUpperHalf(t *testing.T) {
	assert.Equal(t, counter{hi: 6, lo: 2}, counter{hi: 5, lo: ^uint64(0)}.add(3))
}

func TestNoTwoBlocksAreEqual(t *testing.T) {
	seen := make(map[[blockSize]byte]string)
	block := [blockSize]byte{}
	for _, nonce := range [][16]byte{nonceA, nonceB} {
		for rank := range 2 {
			c := New(nonce, rank)
			for _, key := range []string{"u1/c1/t1", "u1/c1/t2", "u11/c1/t1", ""} {
				for gen := range uint64(2) {
					p := filled(c, tiers.Object{Key: key, Gen: gen, Size: 256 << 10})
					for off := 0; off < len(p); off += blockSize {
						copy(block[:], p[off:])
						name := fmt.Sprintf("nonce %x rank %d key %q gen %d offset %d", nonce[0],
							rank, key, gen, off)
						require.Empty(t, seen[block], name)
						seen[block] = name
					}
				}
			}
		}
	}
	assert.Len(t, seen, 2*2*4*2*64)
}

func TestContentDoesNotCompress(t *testing.T) {
	p := filled(New(nonceA, 0), tiers.Object{Key: "k", Size: 8 << 20})
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest))
	require.NoError(t, err)
	small := enc.EncodeAll(p, nil)
	assert.GreaterOrEqual(t, float64(len(small))/float64(len(p)), 0.999)
}

func TestCheckFindsEveryKindOfWrongData(t *testing.T) {
	c := New(nonceA, 0)
	o := tiers.Object{Key: "u1/c2/t3", Gen: 9, Size: 70_001}

	for _, bit := range []int64{0, 8*16384 + 3, 8*o.Size - 1} {
		p := filled(c, o)
		require.NoError(t, c.Check(p, o, 0))
		p[bit/8] ^= 1 << (bit % 8)
		var m *MismatchError
		require.ErrorAs(t, c.Check(p, o, 0), &m)
		assert.Equal(t, bit/8, m.Offset)
		got := p[bit/8]
		assert.Equal(t, fmt.Sprintf("byte is %#02x, should be %#02x", got, got^1<<(bit%8)), m.What)
		assert.Contains(t, m.Error(), "u1/c2/t3")
		assert.Contains(t, m.Error(), fmt.Sprintf("offset %d", bit/8))
	}

	o.Layer = 2
	stale := tiers.Object{Key: o.Key, Gen: 4, Layer: 2, Size: o.Size}
	p := filled(c, o)
	c.Fill(p[20_000:28_000], stale, 20_000)
	var m *MismatchError
	require.ErrorAs(t, c.Check(p[16_384:], o, 16_384), &m)
	assert.InDelta(t, 20_000, m.Offset, 8)
	assert.Contains(t, m.Error(), "stale version: these are the bytes of generation 4")

	p = filled(c, o)
	clear(p[40_960:45_056])
	require.ErrorAs(t, c.Check(p, o, 0), &m)
	assert.Contains(t, m.Error(), "only zeros")
}

func TestSampledCheckLooksAtOneBlockOfItsOwnPerChunk(t *testing.T) {
	c := New(nonceA, 0)
	places := make(map[int]bool)
	for key := range 40 {
		o := tiers.Object{Key: fmt.Sprint("k", key), Size: 64<<10 + 100}
		p := filled(c, o)
		require.NoError(t, c.CheckSample(p, o, 0))
		found := -1
		for b := 0; b*blockSize < len(p); b++ {
			p[b*blockSize] ^= 1
			if err := c.CheckSample(p, o, 0); err != nil {
				var m *MismatchError
				require.ErrorAs(t, err, &m)
				assert.EqualValues(t, b*blockSize, m.Offset)
				require.Equal(t, -1, found, "one block only")
				found = b
			}
			p[b*blockSize] ^= 1
		}
		require.NotEqual(t, -1, found)
		places[found] = true
	}
	assert.Greater(t, len(places), 8, "different keys, different places")
}

// A source generates the same bytes as Content.Fill, whether a piece follows the last one or not.
func TestASourceMakesWhatFillMakes(t *testing.T) {
	c := New(nonceA, 3)
	a, b := tiers.Object{Key: "a", Gen: 1, Size: 1 << 20},
		tiers.Object{Key: "a", Gen: 2, Size: 1 << 20}
	s := c.Source()
	for _, piece := range []struct {
		o      tiers.Object
		off, n int64
	}{{a, 0, 4096}, {a, 4096, 8192}, {a, 12288, 5}, {a, 12293, 40000}, {b, 52293, 4096},
		{a, 52293, 4096}, {a, 0, 100}, {a, 200, 100}} {
		want, got := make([]byte, piece.n), make([]byte, piece.n)
		c.Fill(want, piece.o, piece.off)
		require.NoError(t, s.Fill(piece.o, piece.off, got))
		assert.Equal(t, want, got, "%v", piece)
	}
}

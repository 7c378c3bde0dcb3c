package users

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"kvbench/workloads"
)

// TestSplitMix compares with the first outputs of SplitMix64 seeded with 1234567, as published with
// the reference implementation of its author (prng.di.unimi.it/splitmix64.c) and in other
// languages' test suites.
func TestSplitMix(t *testing.T) {
	key, state := uint64(1234567), uint64(0)
	for n, want := range []uint64{6457827717110365317, 3203168211198807973,
		9817491932198370423, 4593380528125082431, 16408922859458223821} {
		state = key + uint64(n+1)*golden
		assert.Equal(t, want, mix64(state))
	}
}

// chiSquare returns the statistic of counts against equal shares.
func chiSquare(counts []int) float64 {
	observed, expected := make([]float64, len(counts)), make([]float64, len(counts))
	for i, n := range counts {
		observed[i] = float64(n)
	}
	floats.AddConst(floats.Sum(observed)/float64(len(counts)), expected)
	return stat.ChiSquare(observed, expected)
}

// TestUniformity counts draws along each axis of the stream: over n, over users and over seeds.
// With 15 degrees of freedom a fair generator exceeds 37.7 once in a thousand; seeds are fixed, so
// the test cannot flicker.
func TestUniformity(t *testing.T) {
	const buckets, draws = 16, 16000
	axes := map[string]func(i int) float64{
		"n":    func(i int) float64 { return NewStream(42, 7).Unit(DrawContext, int64(i)) },
		"user": func(i int) float64 { return NewStream(42, i).Unit(DrawContext, 0) },
		"seed": func(i int) float64 { return NewStream(uint64(i), 7).Unit(DrawContext, 0) },
	}
	for name, draw := range axes {
		counts := make([]int, buckets)
		sum := 0.0
		for i := range draws {
			v := draw(i)
			counts[int(v*buckets)]++
			sum += v
		}
		assert.Less(t, chiSquare(counts), 37.7, name)
		assert.InDelta(t, 0.5, sum/draws, 0.01, name)
	}
}

// TestBetween hits both ends of a range, and each value equally often.
func TestBetween(t *testing.T) {
	s := NewStream(1, 1)
	counts := make([]int, 7)
	for n := range int64(14000) {
		counts[s.Between(DrawContext, n, 10, 16)-10]++
	}
	assert.Less(t, chiSquare(counts), 22.5) // 6 degrees of freedom, 0.1 %
	assert.Equal(t, 5, s.Between(DrawContext, 0, 5, 5))
}

func TestDefaultProfile(t *testing.T) {
	p := Default()
	assert.Equal(t, 25000, p.MaxContextTokens())
	assert.Equal(t, workloads.Interactive, p.Class(0.14))
	assert.Equal(t, workloads.Responsive, p.Class(0.15))
	assert.Equal(t, workloads.Batch, p.Class(0.5))
}

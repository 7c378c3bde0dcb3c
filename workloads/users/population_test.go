package users

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/workloads"
)

// The expected numbers were printed by CPython 3.11:
//
//	import random; r = random.Random(SEED)
//	print(r.getrandbits(32), r.random(), r.randint(1, 1000), r.choice(range(3)), r.uniform(0.1,
//
// 0.5), r.getrandbits(64))
func TestMersenneDrawsAsCPython(t *testing.T) {
	for _, test := range []struct {
		seed    uint64
		bits    uint64
		random  float64
		randint int
		choice  int
		uniform float64
		bits64  uint64
	}{
		{0, 3626764237, 0.3852453064766108, 912, 1, 0.11619375127231102, 9431353882395063546},
		// Seeds of more than 32 bits are two words of the generator's key.
		{1 << 32, 485306839, 0.35131142599753185, 958, 0, 0.109128739272718, 14861564313759884179},
		{1<<64 - 1, 93740670, 0.24877853198420496, 634, 0, 0.282425554439801, 16963090519847801214},
	} {
		m := newMersenne(test.seed)
		assert.Equal(t, test.bits, uint64(m.Uint32()), test.seed)
		assert.Equal(t, test.random, m.Unit(0, 0), test.seed)
		assert.Equal(t, test.randint, m.Between(0, 0, 1, 1000), test.seed)
		assert.Equal(t, test.choice, m.Between(0, 0, 0, 2), test.seed)
		assert.Equal(t, test.uniform, m.Uniform(0, 0, 0.1, 0.5), test.seed)
		assert.Equal(t, test.bits64, uint64(m.Uint32())|uint64(m.Uint32())<<32, test.seed)
	}
}

// TestGoldenPopulation compares the closed division's users with those of the Python benchmark,
// float bits included.
func TestGoldenPopulation(t *testing.T) {
	f, err := os.Open(filepath.Join("..", "..", "testdata", "mlperf-users-seed-42-49.csv"))
	require.NoError(t, err)
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	require.Equal(t,
		[]string{"seed", "user", "context_tokens", "generation_tokens", "think_time_s", "qos"},
		rows[0])
	rows = rows[1:]
	require.Len(t, rows, 8*200)
	for seed := uint64(42); seed <= 49; seed++ {
		for i, u := range Population(Default(), seed, 200, true) {
			row := rows[0]
			rows = rows[1:]
			think, err := strconv.ParseFloat(row[4], 64)
			require.NoError(t, err)
			got := []string{fmt.Sprint(seed), fmt.Sprintf("user_%04d", u.ID), fmt.Sprint(u.Context),
				fmt.Sprint(u.Generate), u.Class.String()}
			require.Equal(t, []string{row[0], row[1], row[2], row[3], row[5]}, got,
				"seed %d user %d", seed, i)
			require.Equal(t, think, u.Think, "seed %d user %d", seed, i)
		}
	}
	assert.Empty(t, rows)
}

// TestPopulationShares checks the drawn population, which is a function of (seed, user) alone.
func TestPopulationShares(t *testing.T) {
	p := Default()
	users := Population(p, 42, 30000, false)
	assert.Equal(t, users[:100], Population(p, 42, 100, false),
		"a larger population starts with the smaller one")
	templates, classes := map[string]int{}, [workloads.NumClasses]int{}
	byName := map[string]Template{}
	for _, tpl := range p.Templates {
		byName[tpl.Name] = tpl
	}
	for i, u := range users {
		tpl := byName[u.Template]
		assert.Equal(t, i, u.ID)
		assert.True(
			t,
			u.Context >= tpl.Context[0] && u.Context <= tpl.Context[1] &&
				u.Generate >= tpl.Generate[0] &&
				u.Generate <= tpl.Generate[1] && u.Think >= tpl.Think[0] &&
				u.Think <= tpl.Think[1],
			"%+v",
			u,
		)
		templates[u.Template]++
		classes[u.Class]++
	}
	for name, n := range templates {
		assert.InDelta(t, 10000, n, 300, name)
	}
	assert.InDelta(t, 0.15, float64(classes[workloads.Interactive])/30000, 0.006)
	assert.InDelta(t, 0.35, float64(classes[workloads.Responsive])/30000, 0.009)
}

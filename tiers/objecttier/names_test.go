package objecttier

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbench/tiers"
)

var formats = []Names{{Format: Own}, {Format: LMCache, Model: "org/m-8b", Ranks: 1},
	{Format: LMCache, Model: "m", Rank: 3, Ranks: 8}, {Format: VLLM, Model: "org/m-8b", Ranks: 1}}

func TestNamesAreTheEngines(t *testing.T) {
	o := tiers.Object{Key: "u1/c2/t3", Gen: 9}
	assert.Regexp(t, `^[0-9a-f]{2}/[0-9a-f]{30}-0000000000000009$`, formats[0].Name(o))
	assert.Regexp(t, `^org/m-8b@01000100@0@[0-9a-f]{64}$`, formats[1].Name(o))
	assert.Regexp(t, `^m@08030803@0@[0-9a-f]{64}$`, formats[2].Name(o))
	assert.Regexp(t, `^org_m-8b_[0-9a-f]{12}_r0/[0-9a-f]{3}/[0-9a-f]{2}_g0/[0-9a-f]{64}\.bin$`,
		formats[3].Name(o))
	other := o
	other.Gen++
	for i, n := range formats {
		assert.NoError(t, n.validate())
		assert.True(t, n.Ours(n.Name(o)))
		assert.NotEqual(t, n.Name(o), n.Name(other), "no generation takes another's place")
		for k, m := range formats {
			assert.Equal(t, i == k, m.Ours(n.Name(o)), "%v of %v", m, n)
		}
	}
	for _, n := range []Names{{}, {Format: LMCache}, {Format: VLLM, Model: "a@b", Ranks: 1},
		{Format: VLLM, Model: "m", Ranks: 300}, {Format: LMCache, Model: "m", Rank: 1, Ranks: 1}} {
		assert.Error(t, n.validate(), n)
	}
}

// What is ours is deleted: of a name of ours no character may be another, missing, or too many.
func FuzzNames(f *testing.F) {
	f.Add("k", uint64(1), 5, byte('x'))
	f.Add("k", uint64(1), 0, byte('/'))
	f.Fuzz(func(t *testing.T, key string, gen uint64, at int, c byte) {
		for _, n := range formats {
			name := n.Name(tiers.Object{Key: key, Gen: gen})
			assert.True(t, n.Ours(name), name)
			i := max(0, at) % len(name)
			for _, wrong := range []string{name[:i] + string(rune(c)) + name[i:], name[:i],
				name[:i] + name[i+1:], name + "\n", strings.ToUpper(name), "x/" + name} {
				if wrong != name {
					assert.False(t, n.Ours(wrong), fmt.Sprintf("%q", wrong))
				}
			}
		}
	})
}

package objecttier

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbench/tiers"
)

func TestNamesAreTheEngines(t *testing.T) {
	o := tiers.Object{Key: "u1/c2/t3", Gen: 9}
	other := tiers.Object{Key: "u1/c2/t3", Gen: 10}
	for _, c := range []struct {
		names Names
		want  string
	}{
		{Names{Format: Own}, `^[0-9a-f]{2}/[0-9a-f]{30}-0000000000000009$`},
		{Names{Format: LMCache, Model: "org/m-8b", Ranks: 1}, `^org/m-8b@01000100@0@[0-9a-f]{64}$`},
		{Names{Format: LMCache, Model: "m", Rank: 3, Ranks: 8}, `^m@08030803@0@[0-9a-f]{64}$`},
		{Names{Format: VLLM, Model: "org/m-8b", Ranks: 1},
			`^org_m-8b_[0-9a-f]{12}_r0/[0-9a-f]{3}/[0-9a-f]{2}_g0/[0-9a-f]{64}\.bin$`},
	} {
		assert.Regexp(t, c.want, c.names.Name(o))
		assert.NotEqual(t, c.names.Name(o), c.names.Name(other))
	}
}

package workloads

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A digest depends on every difference between requests, and not on their order.
func TestADigestIsASum(t *testing.T) {
	type decision struct {
		r       Request
		op      Op
		decided uint8
	}
	one := func(change func(*decision)) decision {
		a := decision{Request{User: 1, Seq: 2, Conversation: 3, Turn: 4}, Op{Kind: ReadOrWrite,
			Purpose: ForPrefix, Key: "a key of 20 bytes...", Bytes: 4096, Times: 1}, 1}
		change(&a)
		return a
	}
	sum := func(all ...decision) string {
		var d Digest
		for _, a := range all {
			d.Add(&a.r, []Op{a.op, a.op}, func(int) uint8 { return a.decided })
		}
		return d.String()
	}
	assert.Empty(t, sum())
	same := func(*decision) {}
	seen := map[string]int{}
	for i, change := range []func(*decision){same,
		func(a *decision) { a.r.User = 0 },
		func(a *decision) { a.r.Seq = 0 },
		func(a *decision) { a.r.Conversation = 0 },
		func(a *decision) { a.r.Turn = 0 },
		func(a *decision) { a.op.Kind = ReadIfPresent },
		func(a *decision) { a.op.Purpose = ForHistory },
		func(a *decision) { a.op.Key = "a key of 20 bytes..," },
		func(a *decision) { a.op.Key = "A key of 20 bytes..." },
		func(a *decision) { a.op.Key = "" },
		func(a *decision) { a.op.Bytes++ },
		func(a *decision) { a.op.Times++ },
		func(a *decision) { a.decided = 0 },
	} {
		digest := sum(one(change))
		assert.Len(t, digest, 16)
		assert.NotContains(t, seen, digest, i)
		seen[digest] = i
	}
	a, b := one(same), one(func(a *decision) { a.r.User = 5 })
	assert.Equal(t, sum(a, b), sum(b, a))
	assert.NotEqual(t, sum(a, b), sum(a))
	assert.NotEqual(t, sum(a, a), sum(a), "once is not twice")
}

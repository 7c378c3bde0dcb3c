package cache

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/filetier"
	"kvbench/tiers/tiertest"
	"kvbench/tiers/transfer"
)

// Many workers evict, read and write runs of blocks in packed files, below memory, and some are
// cancelled: the directory has the bytes that the cache counts.
func TestPackedFilesUnderEviction(t *testing.T) {
	const unit = 1 << 10 // blocks are up to 8 KiB
	requests := blockRequests(3, 120)
	for i := range requests {
		for k := range requests[i] {
			requests[i][k].Size *= unit
		}
	}
	const memory, capacity = 300 * unit, 400 * unit
	tier := tiertest.Files(t, filetier.Config{Direct: true, Capacity: capacity,
		Layout: tiers.Layout{Kind: tiers.LayoutPacked, Places: 5}})
	x := tiertest.Transfer(t, tiertest.Chunk, 1)
	c := New(Config{Clock: x.Clock, Observer: NoObserver{}, Source: x.Content.Source,
		Sink: &x.Verifier, Levels: []Level{
			{Kind: tiers.CPU, Tier: transfer.New(tiertest.Memory(t, memory), x.Settings), Capacity: memory},
			{Kind: tiers.Storage, Tier: transfer.New(tier, x.Settings), Capacity: capacity}}})
	play(t, c, requests, 8, true)
	require.NoError(t, c.check())
	for range 2 {
		held, _ := tier.Footprint()
		assert.Equal(t, c.Gauges(nil)[1].Used, held)
		c.clear(t)
	}
}

package transfer

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbench/tiers"
	"kvbench/tiers/content"
)

// Streams take the chunks of an entry by turns. What makes its content goes on from one to the
// other: without a Content nothing could begin anew.
func TestStreamsHandOnWhatMakesContent(t *testing.T) {
	const chunk = 4096
	o := tiers.Object{Key: "u1/c1/t1", Size: 1 << 30}
	c := content.New([16]byte{1}, 0)
	op := &operation{t: &Transfer{Content: c}, objs: []tiers.Object{o}, ext: tiers.One{},
		size: o.Size, out: side{traits: tiers.Traits{Align: 1}}}
	var streams [2]stream
	for i := range 8 {
		l := &streams[i%2]
		l.buf.B, l.io.N, l.io.Off = make([]byte, chunk), chunk, int64(i)*chunk
		op.make(l, l.io.Off)
		assert.NoError(t, c.Check(l.buf.B, o, l.io.Off))
		op.t.Content = nil
	}
	assert.Len(t, op.made, 1, "what nobody can go on with is not kept")
}

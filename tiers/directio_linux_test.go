package tiers

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDirectIOIsIgnoredInMemory(t *testing.T) {
	assert.Contains(t, directIgnored(Filesystem{Type: "tmpfs"}), "memory")
	assert.Empty(t, directIgnored(Filesystem{Type: "ext4"}))
}

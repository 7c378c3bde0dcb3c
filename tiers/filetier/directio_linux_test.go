package filetier

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbench/tracing/host"
)

func TestDirectIOIsIgnoredInMemory(t *testing.T) {
	assert.Contains(t, directIgnored(host.Filesystem{Type: "tmpfs"}), "memory")
	assert.Empty(t, directIgnored(host.Filesystem{Type: "ext4"}))
}

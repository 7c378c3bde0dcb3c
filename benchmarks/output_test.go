package benchmarks

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAPathIsOneWordOfAShell(t *testing.T) {
	assert.Equal(t, "/mnt/nvme0/kv-cache_1/rank_0", word("/mnt/nvme0/kv-cache_1/rank_0"),
		"a plain one is left as people type it")
	for _, path := range []string{"/mnt/two words", "/mnt/it's", "/mnt/$HOME/*", "/mnt/a;b&c|d", "/mnt/\n",
		"/mnt/~(x)[y]{z}\"`#!\\", ""} {
		out, err := exec.Command("sh", "-c", "printf '<%s>' "+word(path)).Output()
		require.NoError(t, err)
		assert.Equal(t, "<"+path+">", string(out))
	}
}

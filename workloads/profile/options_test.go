package profile

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/workloads/model"
)

func TestOptions(t *testing.T) {
	want := []struct {
		users, allocs int
		cpu           float64
		bytes         int64
	}{{200, 16, 0, 131072}, {100, 16, 4, 131072}, {70, 4, 0, 327680}}
	for i, o := range Options() {
		m, err := model.Find(o.Model, nil)
		require.NoError(t, err)
		assert.Equal(t, i+1, o.Number)
		assert.Equal(t, want[i].users, o.Users)
		assert.Equal(t, want[i].allocs, o.MaxConcurrentAllocs)
		assert.Equal(t, want[i].cpu, o.CPUGiB)
		assert.Zero(t, o.GPUGiB)
		assert.Equal(t, 300.0, o.Window.Seconds())
		assert.Equal(t, want[i].bytes, m.BytesPerToken())
	}
}

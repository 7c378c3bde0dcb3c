package requests

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/report"
)

// A run is compared with a recorded one by the requests that find something: 46 of 60 of the small
// trace, 0.767.
func TestValidationTrace(t *testing.T) {
	for _, c := range []struct {
		text   string
		passed bool
		says   string
	}{
		// 0.667: 15 % off
		{`[{"cache_hit": true}, {"cache_hit": true}, {"cache_hit": false}]`, false, "not within"},
		// 0.75
		{"[" + strings.Repeat(`{"cache_hit": true}, `, 3) + `{"cache_hit": false}]`, true, "within"},
		{`[{"read_bytes": 1000, "write_bytes": 1}]`, false, "not within"},
	} {
		path := filepath.Join(t.TempDir(), "v.json")
		require.NoError(t, os.WriteFile(path, []byte(c.text), 0o600))
		res, _ := replayBlocks(t, smallTrace, 2,
			func(cfg *runConfig) { nullTiers(1 << 30)(cfg); cfg.ValidationTrace = path })
		require.NotNil(t, res.Recording)
		assert.Equal(t, c.passed, res.Recording.Passed, c.text)
		var b bytes.Buffer
		require.NoError(t, report.WriteSummary(&b, res))
		assert.Contains(t, b.String(), c.says+" 5 % of the run recorded in "+path)
	}
}

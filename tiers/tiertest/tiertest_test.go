package tiertest_test

import (
	"testing"

	"kvbench/tiers"
	"kvbench/tiers/faults"
	"kvbench/tiers/tiertest"
)

func TestEveryTierKeepsTheContract(t *testing.T) {
	tiertest.Every(t, tiertest.RunFiles)
}

func TestWrappersKeepTheContract(t *testing.T) {
	t.Run("faults", func(t *testing.T) {
		tiertest.RunFiles(t, func(t testing.TB) tiers.Files {
			return faults.Wrap(tiertest.Memory(t, 32<<20), nil)
		})
	})
}

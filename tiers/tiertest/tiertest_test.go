package tiertest_test

import (
	"testing"

	"kvbench/tiers"
	"kvbench/tiers/faults"
	"kvbench/tiers/tiertest"
)

func TestEveryTierKeepsTheContract(t *testing.T) {
	tiertest.Every(t, tiertest.Run)
}

func TestWrappersKeepTheContract(t *testing.T) {
	t.Run("faults", func(t *testing.T) {
		tiertest.Run(t, func(t testing.TB) tiers.
			Tier {
			return faults.Wrap(tiertest.Memory(t, 32<<20), nil)
		})
	})
}

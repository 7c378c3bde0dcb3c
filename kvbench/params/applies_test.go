package params

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEveryClauseNamesBenchmarksAndParameters(t *testing.T) {
	known := append(slices.Collect(maps.Keys(groups)), slices.Collect(maps.Keys(situations))...)
	for _, b := range Benchmarks() {
		known = append(known, b.Name)
	}
	all := map[string][]clause{}
	for _, p := range slices.Concat(table, keys) {
		all[p.name] = p.applies
	}
	for _, rule := range slices.Concat(rules, skips) {
		for _, name := range rule.names {
			require.NotNil(t, byName[name], name)
			all[name] = append(all[name], rule.clauses...)
		}
		for words := range comparisons { // what is no number is the name of a parameter
			_, bound, is := strings.Cut(rule.values, words)
			if is && rule.other() == "" && requirements[rule.values] == nil {
				assert.NotZero(t, byName[rule.names[0]].bound(newValues("/"), bound), rule.values)
			}
		}
	}
	for name, clauses := range all {
		for _, c := range clauses {
			assert.Subset(t, append(known, ""), c.benchmarks, name)
			for _, condition := range c.conditions {
				other, value, valued := strings.Cut(condition, "=")
				p := find(strings.TrimPrefix(other, "-"))
				if p == nil {
					assert.Contains(t, situations, condition, name)
				} else if valued {
					value = strings.Replace(value, "*", "444", 1)
					assert.NoError(t, p.set(newValues("/"), "/", value), condition)
				}
			}
		}
	}
}

package users

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbench/workloads"
	"kvbench/workloads/profile"
)

// TestPopulationShares checks the drawn population, which is a function of (seed, user) alone.
func TestPopulationShares(t *testing.T) {
	p := profile.Default()
	users := Population(p, 42, 30000, false)
	assert.Equal(
		t,
		users[:100],
		Population(p, 42, 100, false),
		"a larger population starts with the smaller one",
	)
	templates, classes := map[string]int{}, [workloads.NumClasses]int{}
	byName := map[string]profile.Template{}
	for _, tpl := range p.Templates {
		byName[tpl.Name] = tpl
	}
	for i, u := range users {
		tpl := byName[u.Template]
		assert.Equal(t, i, u.ID)
		assert.True(
			t,
			u.Context >= tpl.Context[0] && u.Context <= tpl.Context[1] &&
				u.Generate >= tpl.Generate[0] &&
				u.Generate <= tpl.Generate[1] && u.Think >= tpl.Think[0] &&
				u.Think <= tpl.Think[1],
			"%+v",
			u,
		)
		templates[u.Template]++
		classes[u.Class]++
	}
	for name, n := range templates {
		assert.InDelta(t, 10000, n, 300, name)
	}
	assert.InDelta(t, 0.15, float64(classes[workloads.Interactive])/30000, 0.006)
	assert.InDelta(t, 0.35, float64(classes[workloads.Responsive])/30000, 0.009)
}

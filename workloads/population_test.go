package workloads

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestPopulationShares checks the drawn population, which is a function of (seed, user) alone.
func TestPopulationShares(t *testing.T) {
	p := DefaultProfile()
	users := Population(p, 42, 30000, false)
	assert.Equal(t, users[:100], Population(p, 42, 100, false), "a larger population starts with the smaller one")
	templates, classes := map[string]int{}, [NumClasses]int{}
	byName := map[string]Template{}
	for _, tpl := range p.Templates {
		byName[tpl.Name] = tpl
	}
	for i, u := range users {
		tpl := byName[u.Template]
		assert.Equal(t, i, u.ID)
		assert.True(t, u.Context >= tpl.Context[0] && u.Context <= tpl.Context[1] && u.Generate >= tpl.Generate[0] &&
			u.Generate <= tpl.Generate[1] && u.Think >= tpl.Think[0] && u.Think <= tpl.Think[1], "%+v", u)
		templates[u.Template]++
		classes[u.Class]++
	}
	for name, n := range templates {
		assert.InDelta(t, 10000, n, 300, name)
	}
	assert.InDelta(t, 0.15, float64(classes[Interactive])/30000, 0.006)
	assert.InDelta(t, 0.35, float64(classes[Responsive])/30000, 0.009)
}

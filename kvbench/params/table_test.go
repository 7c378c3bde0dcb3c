package params

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/workloads/model"
)

func TestEveryLineOfTheTablesIsRead(t *testing.T) {
	lines := regexp.MustCompile(`(?m)^[^#\n]`)
	assert.Len(t, rows, len(lines.FindAllString(parametersText, -1)))
	assert.Len(t, lines.FindAllString(keysText, -1), len(keyTable)+len(modelTable))
	for _, k := range append(newValues("/base").keys, modelKeys("m", &model.Model{})...) {
		assert.NotNil(t, k.value, k.name)
	}
}

func TestEveryRowOfTheTableIsComplete(t *testing.T) {
	name := regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z]+)*$`)
	seen := map[string]bool{}
	for i := range rows {
		p := &rows[i]
		assert.Regexp(t, name, p.name)
		assert.False(t, seen[p.name], p.name)
		seen[p.name] = true
		assert.NotEmpty(t, p.help, p.name)
		assert.NotNil(t, p.value, p.name)
		assert.Subset(t, []string{free, place, unswept, goFlag, action, many}, p.is, p.name)
		for d, text := range p.def {
			x := newValues("/base").row(p.name).value
			require.NoError(t, x.Set(text), "%s, %s", p.name, d)
			assert.Equal(t, text, x.String(), "default of %s is canonical", p.name)
		}
	}
}

// TestEveryFieldIsReachedByItsOwnParameter sets one parameter after the other and looks which texts
// change.
func TestEveryFieldIsReachedByItsOwnParameter(t *testing.T) {
	texts := func(v *Values) map[string]string {
		all := map[string]string{}
		for _, p := range v.rows {
			all[p.name] = p.value.String()
		}
		return all
	}
	for _, p := range rows {
		if p.has(action) {
			continue
		}
		v := newValues("/base")
		before := texts(v)
		changed := false
		for _, text := range []string{"true", "closed", "7", "7s", "8KiB", "/x", p.def[Closed], "random",
			"f"} {
			if v.row(p.name).value.Set(text) == nil && v.Text(p.name) != before[p.name] {
				changed = true
				break
			}
		}
		// The last word of a choice is not its default.
		if err := v.row(p.name).value.Set("?"); err != nil && !changed {
			words, _, _ := strings.Cut(err.Error(), ", did you")
			changed = v.row(p.name).value.Set(words[strings.LastIndex(words, " ")+1:]) == nil
		}
		if !changed && p.name == "simulate-device" {
			changed = v.row(p.name).value.Set("read=1,write=1") == nil
		}
		assert.True(t, changed, p.name)
		for name, text := range texts(v) {
			assert.True(t, name == p.name || text == before[name], "%s changes %s", p.name, name)
		}
	}
}

func TestEveryBenchmarkResolvesInEveryDivision(t *testing.T) {
	for _, b := range Benchmarks() {
		for _, d := range divisions {
			v := good(t, Inputs{Bench: b}, "-division", string(d))
			assert.Equal(t, d, v.Division)
			for name, text := range b.settings(d) {
				if p := newValues("/base").row(name); p != nil {
					require.NoError(t, p.value.Set(text), name)
					assert.Equal(t, text, p.value.String(), "%s of %s is canonical", name, b.Name)
				}
				known := find(name) != nil
				key := slices.ContainsFunc(v.keys,
					func(k parameter) bool { return k.name == name && !k.has(idle) })
				assert.True(t, known || key, "%s sets %s, which nobody knows", b.Name, name)
			}
		}
	}
}

func TestCanonicalTextsReadBackToThemselves(t *testing.T) {
	for name, text := range map[string]string{
		"gpu-mem-gb": "0.1", "cpu-mem-gb": "512MiB", "chunk-size": "1536KiB", "settle": "90s",
		"request-rate": "2.50",
		"nonce":        "AB", "precondition": "1", "storage-capacity-gb": "16",
		"precondition-size-gb": "1.333",
	} {
		v, again := newValues("/base"), newValues("/base")
		require.NoError(t, v.row(name).value.Set(text), name)
		require.NoError(t, again.row(name).value.Set(v.Text(name)), name)
		v.rows, v.keys, again.rows, again.keys = nil, nil, nil, nil
		assert.Equal(t, v, again, name)
	}
}

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
	assert.Len(t, table, len(lines.FindAllString(parametersText, -1)))
	assert.Len(t, lines.FindAllString(keysText, -1), len(keys)+len(modelKeys))
	assert.Len(t, slices.Concat(rules, skips), len(lines.FindAllString(rulesText, -1)))
	assert.Len(t, benchmarks, len(lines.FindAllString(benchmarksText, -1)))
	for _, p := range slices.Concat(table, keys) {
		assert.Equal(t, p.field != "", p.at(newValues("/base")).IsValid(), p.name)
	}
	for _, p := range modelKeys {
		assert.True(t, p.at(&model.Model{}).IsValid(), p.name)
	}
}

func TestEveryRowOfTheTableIsComplete(t *testing.T) {
	name := regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z]+)*$`)
	seen := map[string]bool{}
	for _, p := range table {
		assert.Regexp(t, name, p.name)
		assert.False(t, seen[p.name], p.name)
		seen[p.name] = true
		assert.NotEmpty(t, p.help, p.name)
		assert.NotNil(t, p.kind.parse, p.name)
		assert.Subset(t, []string{free, place, unswept, whole, goFlag, action, many, sized, submitter}, p.traits, p.name)
		for d, text := range p.def {
			v := newValues("/base")
			if text != "" && p.field != "" {
				require.NoError(t, p.set(v, "/base", text), "%s, %s", p.name, d)
			}
			if p.field != "" {
				assert.Equal(t, text, p.text(v), "default of %s is canonical", p.name)
			}
		}
	}
}

// TestEveryFieldIsReachedByItsOwnParameter sets one parameter after the other, looks which texts change, and
// reads the new text back.
func TestEveryFieldIsReachedByItsOwnParameter(t *testing.T) {
	texts := func(v *Values) map[string]string {
		all := map[string]string{}
		for _, p := range table {
			all[p.name] = p.text(v)
		}
		return all
	}
	for _, p := range table {
		if p.field == "" {
			continue
		}
		v := newValues("/base")
		before := texts(v)
		changed := false
		for _, text := range []string{"true", "closed", "1.333", "7", "90s", "1536KiB", "/x",
			p.def[Closed], "random", "f"} {
			if p.set(v, "/base", text) == nil && v.Text(p.name) != before[p.name] {
				changed = true
				break
			}
		}
		// The last word of a choice is not its default.
		if err := p.set(v, "/base", "?"); err != nil && !changed {
			words, _, _ := strings.Cut(err.Error(), ", did you")
			changed = p.set(v, "/base", words[strings.LastIndex(words, " ")+1:]) == nil
		}
		if !changed && p.name == "simulate-device" {
			changed = p.set(v, "/base", "read=1,write=1") == nil
		}
		assert.True(t, changed, p.name)
		again := newValues("/base")
		require.NoError(t, p.set(again, "/base", p.text(v)), p.name)
		assert.Equal(t, v, again, "the canonical text of %s reads back", p.name)
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
			for name, text := range b.set[d] {
				p, v := byName[name], newValues("/base")
				require.NotNil(t, p, "%s sets %s", b.Name, name)
				assert.False(t, p.has(idle), "%s sets %s", b.Name, name)
				if require.NoError(t, p.set(v, "/base", text), name); p.field != "" {
					assert.Equal(t, text, p.text(v), "%s of %s is canonical", name, b.Name)
				}
			}
		}
	}
}

// Engines has in its sweep what there is.
func TestEveryEngineIsRanked(t *testing.T) {
	want := "engine=" + strings.Join(engineNames()[1:], ",")
	for _, d := range []Division{Quick, Open} {
		assert.Equal(t, want, bench(t, "Engines").set[d]["sweep"])
	}
}

// A name is a cell of tables. A path has nothing that a file of environment variables adds.
func TestNamesAndPaths(t *testing.T) {
	for text, want := range map[string]string{"PM9A3 1.92 TB ü": "", strings.Repeat("ü", 200): "",
		strings.Repeat("x", 201): "at most 200 characters", "a\nb": "without control characters",
		"a\r": "without control characters"} {
		_, err := kindOf("name").parse(text)
		assert.Equal(t, want == "", err == nil, "%q: %v", text, err)
		if err != nil {
			assert.ErrorContains(t, err, want)
		}
	}
	for text, fine := range map[string]bool{"/kv": true, "/a b\nc": true, `/a "b"`: true, "/kv\r": false, `"/kv"`: false} {
		_, err := kindOf("path").parse(text)
		assert.Equal(t, fine, err == nil, "%q: %v", text, err)
	}
}

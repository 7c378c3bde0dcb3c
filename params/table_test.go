package params

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEveryRowOfTheTableIsComplete(t *testing.T) {
	name := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	seen := map[string]bool{}
	for i := range table {
		p := &table[i]
		assert.Regexp(t, name, p.name)
		assert.False(t, seen[p.name], p.name)
		seen[p.name] = true
		assert.NotEmpty(t, p.help, p.name)
		assert.NotNil(t, p.field, p.name)
		for j, text := range p.def {
			v, err := p.parse(text, "/base")
			require.NoError(t, err, "%s, %s", p.name, divisions[j])
			assert.Equal(t, text, v.text, "default of %s is canonical", p.name)
		}
	}
}

func TestEveryFieldIsReachedByItsOwnParameter(t *testing.T) {
	var v Values
	seen := map[any]string{}
	for i := range table {
		p := &table[i]
		if p.kind == kindSweep || p.action {
			continue
		}
		field := p.field(&v)
		assert.Empty(t, seen[field], p.name)
		seen[field] = p.name
	}
}

func TestEveryBenchmarkResolvesInEveryDivision(t *testing.T) {
	for _, b := range Benchmarks() {
		for _, d := range divisions {
			v := good(t, Inputs{Bench: b}, "-division", string(d))
			assert.Equal(t, d, v.Division)
			for name := range b.settings(d) {
				_, parameter := byName[name]
				key, profile := schemaIndex[name]
				assert.True(t, parameter || profile && key.set != nil, "%s sets %s, which nobody knows", b.Name, name)
			}
		}
	}
}

func TestCanonicalTextsReadBackToThemselves(t *testing.T) {
	for name, text := range map[string]string{
		"gpu-mem-gb": "0.1", "cpu-mem-gb": "512MiB", "chunk-size": "1536KiB", "settle": "90s", "request-rate": "2.50",
		"nonce": "AB", "precondition": "1", "storage-capacity-gb": "16", "precondition-size-gb": "1.333",
	} {
		p := byName[name]
		v, err := p.parse(text, "/base")
		require.NoError(t, err, name)
		again, err := p.parse(v.text, "/base")
		require.NoError(t, err, name)
		assert.Equal(t, v, again, name)
	}
}

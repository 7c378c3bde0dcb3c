package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSubmissionUsage(t *testing.T) {
	for want, args := range map[string][]string{
		"one results directory": {"-o", "x"},
		"none.json": {"d", "-o", "x", "-organisation", "a", "-system", "b",
			"-discover", "none.json"},
		"no output":               {"d", "-organisation", "a", "-system", "b"},
		"-organisation: must be":  {"d", "-o", "x", "-organisation", "../a", "-system", "b"},
		"-system: must be a name": {"d", "-o", "x", "-organisation", "a", "-system", ".."},
		"-division: must be": {"d", "-o", "x", "-organisation", "a", "-system", "b",
			"-division", "quick"},
	} {
		code, _, errs := call("", append([]string{"submission"}, args...)...)
		assert.Equal(t, Usage, code)
		assert.Contains(t, errs, want)
	}
}

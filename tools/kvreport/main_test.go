package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// call runs a command line.
func call(stdin string, args ...string) (code int, stdout, stderr string) {
	var out, errs strings.Builder
	code = Main("kvreport", commands, args, strings.NewReader(stdin), &out, &errs)
	return code, out.String(), errs.String()
}

// Every command teaches: a line for the list, a text, and an example that calls it.
func TestCommandsTeach(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range commands {
		assert.False(t, seen[c.Name], c.Name)
		seen[c.Name] = true
		assert.NotEmpty(t, c.Short, c.Name)
		assert.NotEmpty(t, c.Args, c.Name)
		assert.Contains(t, c.Example, "kvreport "+c.Name)
		var out, errs strings.Builder
		assert.Equal(t, Done, Main("kvreport", commands, []string{"help", c.Name},
			nil, &out, &errs))
		assert.Contains(t, out.String(), "usage: kvreport "+c.Name)
		assert.Empty(t, errs.String())
	}
}

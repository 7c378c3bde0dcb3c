package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// call runs a command line.
func call(stdin string, args ...string) (code int, stdout, stderr string) {
	var out, errs strings.Builder
	code = Main(args, strings.NewReader(stdin), &out, &errs)
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
		code, out, errs := call("", "help", c.Name)
		assert.Equal(t, Done, code)
		assert.Contains(t, out, "usage: kvreport "+c.Name)
		_, example, _ := strings.Cut(out, "\nExample:\n")
		assert.Contains(t, example, "kvreport "+c.Name)
		assert.Empty(t, errs)
	}
}

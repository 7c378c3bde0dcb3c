package params

import (
	"fmt"
	"strings"
)

// Violation is one parameter that cannot be used.
type Violation struct {
	Name     string // flag name with its dash, or dotted YAML key; empty when the file as a whole is wrong
	Required string // what would be right
	Given    string // what was given
	Origin   Origin
	Text     string // the whole message when the form "name: must be …, given …" does not fit
}

// Error says parameter, required and given value in one line.
func (v Violation) Error() string {
	if v.Text != "" {
		return v.Text
	}
	given := v.Given
	if given == "" {
		given = `""`
	}
	return fmt.Sprintf("%s: must be %s, given %s (%s)", v.Name, v.Required, given, v.Origin)
}

// Violations are all problems of one resolution, in the order of the table. It is the error that Resolve returns.
type Violations []Violation

// Error lists one problem per line.
func (vs Violations) Error() string {
	lines := make([]string, len(vs))
	for i, v := range vs {
		lines[i] = v.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find a single Violation.
func (vs Violations) Unwrap() []error {
	errs := make([]error, len(vs))
	for i, v := range vs {
		errs[i] = v
	}
	return errs
}

// Merge appends those of more that vs does not say yet: several benchmarks and swept combinations stumble over the same flag.
func (vs Violations) Merge(more Violations) Violations {
	said := make(map[string]bool, len(vs))
	for _, v := range vs {
		said[v.Error()] = true
	}
	for _, v := range more {
		if text := v.Error(); !said[text] {
			said[text] = true
			vs = append(vs, v)
		}
	}
	return vs
}

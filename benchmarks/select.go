package benchmarks

import (
	"flag"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"kvbench/params"
)

// selectBenchmarks lists the benchmarks whose top-level name a -test.bench
// pattern matches, as the testing package does: alternatives at the top level
// are patterns of their own, and only what stands before the first slash
// concerns the function's name.
func selectBenchmarks(pattern string) ([]params.Bench, error) {
	var selected []params.Bench
	var names []*regexp.Regexp
	for _, alternative := range splitTop(pattern, '|') {
		re, err := regexp.Compile(splitTop(alternative, '/')[0])
		if err != nil {
			return nil, fmt.Errorf("-bench %q: %w", pattern, err)
		}
		names = append(names, re)
	}
	for _, b := range params.Benchmarks() {
		for _, re := range names {
			if re.MatchString("Benchmark" + b.Name) {
				selected = append(selected, b)
				break
			}
		}
	}
	return selected, nil
}

// splitTop cuts s at sep where it stands outside brackets and parentheses.
func splitTop(s string, sep byte) []string {
	var parts []string
	depth, square, from := 0, 0, 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case c == '[':
			square++
		case c == ']' && square > 0:
			square--
		case c == '(' && square == 0:
			depth++
		case c == ')' && square == 0 && depth > 0:
			depth--
		case c == sep && depth == 0 && square == 0:
			parts = append(parts, s[from:i])
			from = i + 1
		}
	}
	return append(parts, s[from:])
}

func flagValue(name string) string {
	if f := flag.Lookup(name); f != nil {
		return f.Value.String()
	}
	return ""
}

// readGoFlags takes the window and the trials from Go's own flags, if typed.
func readGoFlags(in *params.Inputs) {
	flag.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "test.benchtime":
			in.BenchTime = f.Value.String()
		case "test.count":
			in.Count, _ = strconv.Atoi(strings.TrimSpace(f.Value.String()))
		}
	})
}

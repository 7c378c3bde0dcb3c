package benchmarks

import (
	"flag"
	"fmt"
	"regexp"
	"slices"
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

// arrange puts the elements of a -bench pattern where they are in the names of a sweep, whose keys stand before the
// benchmark's own: with -sweep io-depth=1,2 there is StorageCeiling/io-depth=1/op=read, which StorageCeiling/op=read means.
// A pattern with an element whose key cannot be told, such as .*, stays as it was typed.
func arrange(pattern string, sweep []params.Axis) string {
	var alternatives []string
	for _, alternative := range splitTop(pattern, '|') {
		elements := splitTop(alternative, '/')
		swept := make([]string, len(sweep))
		var own []string
		told := true
		for _, e := range elements[1:] {
			key := elementKey.FindStringSubmatch(e)
			if key == nil {
				told = false
				break
			}
			i := slices.IndexFunc(sweep, func(a params.Axis) bool { return a.Key == key[1] })
			switch {
			case i < 0:
				own = append(own, e)
			case swept[i] != "":
				told = false // said twice
			default:
				swept[i] = e
			}
		}
		if !told || len(elements) == 1 {
			alternatives = append(alternatives, alternative)
			continue
		}
		all := append(swept, own...)
		last := 0
		for i, e := range all {
			if e == "" {
				all[i] = "."
			} else {
				last = i + 1
			}
		}
		alternatives = append(alternatives, strings.Join(append(elements[:1:1], all[:last]...), "/"))
	}
	return strings.Join(alternatives, "|")
}

// elementKey is what an element of a pattern begins with, be it anchored or grouped.
var elementKey = regexp.MustCompile(`^\^?\(?(?:\?:)?([a-z][a-z0-9-]*)=`)

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

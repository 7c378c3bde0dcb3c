package benchmarks

import (
	"bufio"
	"io"
	"os"
	"regexp"
	"strings"

	"golang.org/x/term"
)

// screen starts the filter of standard output if a person reads it at a terminal: of what the testing
// package prints there, the filter drops the lines for benchstat. announce prints a line for each trial
// instead. With -v or -benchmem there is no filter. end returns when everything is printed.
func (s *session) screen() (end func()) {
	if !term.IsTerminal(int(os.Stdout.Fd())) || flagValue("v") != "false" || flagValue("benchmem") == "true" {
		return func() {}
	}
	out, in, err := os.Pipe()
	if err != nil {
		return func() {}
	}
	s.terminal, os.Stdout = os.Stdout, in
	done := make(chan struct{})
	go func() {
		defer close(done)
		forPeople(s.terminal, out)
	}()
	return func() {
		os.Stdout = s.terminal
		_ = in.Close()
		<-done
	}
}

// The lines for benchstat: the machine, the name of a benchmark with its values, and its log, whose lines are
// indented. A benchmark that fails has a name without values.
var (
	machineLine   = regexp.MustCompile(`^(goos|goarch|pkg|cpu): `)
	benchmarkLine = regexp.MustCompile(`^Benchmark\S+\s+(\d+\t.*\n)?`)
)

// forPeople copies all other lines. DataGen has no trial, so that its values are copied, too.
func forPeople(to io.Writer, from io.Reader) {
	lines, log := bufio.NewReader(from), false
	for {
		line, err := lines.ReadString('\n')
		log = strings.HasPrefix(line, "--- BENCH: ") || log && strings.HasPrefix(line, "    ")
		if !strings.HasPrefix(line, "BenchmarkDataGen") {
			line = benchmarkLine.ReplaceAllString(line, "")
		}
		if !log && !machineLine.MatchString(line) && line != "PASS\n" {
			_, _ = io.WriteString(to, line)
		}
		if err != nil {
			return
		}
	}
}

// width returns the length of the longest name of the run.
func (p *plan) width() (n int) {
	for _, l := range p.lines {
		n = max(n, len(l.name()))
	}
	return n
}

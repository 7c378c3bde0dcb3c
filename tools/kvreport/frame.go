package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"kvbench/kvbench/units"
)

// Exit codes of every subcommand. Scripts tell a failed gate from a broken one by them.
const (
	Done  = 0 // it did what was asked
	No    = 1 // it did, and the answer is no
	Usage = 2 // wrong usage, or input or output that cannot be read or written
)

// Command is one subcommand: a function of arguments and streams, so that tests can run it without
// a process. The texts come from help/NAME.txt.
type Command struct {
	Name    string
	Args    string // as in the usage line: "IN… -o FILE"
	Short   string // one line for the list of commands
	Long    string // what it does and how it decides
	Example string // lines that can be typed

	// Run gets the arguments behind the name and returns an exit code. Errors go to stderr, one
	// line each.
	Run func(args []string, stdin io.Reader, stdout, stderr io.Writer) int
}

// Main finds the subcommand that args[0] names and runs it. Without arguments it prints the table
// to stderr; help, -h and --help print it to stdout, help COMMAND explains one. An unknown name is
// answered with the nearest known one.
func Main(program string, table []Command, args []string, stdin io.Reader, stdout,
	stderr io.Writer) int {
	// Without a command nothing was asked: help that nobody asked for goes to standard error, so
	// that a pipe does not take it for an answer.
	if len(args) == 0 {
		usage(stderr, program, table)
		return Usage
	}
	name, rest := args[0], args[1:]
	if name == "help" || isHelp(name) {
		if len(rest) == 0 {
			usage(stdout, program, table)
			return Done
		}
		name, rest = rest[0], []string{"-h"}
	}
	for _, c := range table {
		if c.Name != name {
			continue
		}
		// Help is found anywhere on the line, as people add -h to what they have typed.
		for _, a := range rest {
			if a == "--" {
				break
			}
			if isHelp(a) {
				explain(stdout, program, c)
				return Done
			}
		}
		return c.Run(rest, stdin, stdout, stderr)
	}
	// Slips of the finger get an answer that can be copied.
	names := make([]string, len(table))
	for i, c := range table {
		names[i] = c.Name
	}
	fmt.Fprintf(stderr, "%s: unknown command %q%s; %s help lists the commands\n", program, name,
		units.Suggestion(name, names), program)
	return Usage
}

// isHelp knows the spellings of every flag package.
func isHelp(arg string) bool { return arg == "-h" || arg == "-help" || arg == "--help" }

// usage is the table of commands.
func usage(w io.Writer, program string, table []Command) {
	// The second column begins behind the longest name.
	width := 0
	for _, c := range table {
		width = max(width, len(c.Name))
	}
	fmt.Fprintf(w, "usage: %s COMMAND [arguments]\n\n", program)
	for _, c := range table {
		fmt.Fprintf(w, "  %-*s  %s\n", width, c.Name, c.Short)
	}
	fmt.Fprintf(w, "\n%s help COMMAND explains one of them with an example.\n", program)
	fmt.Fprintf(w, "Exit codes: 0 done; 1 the answer is no; 2 wrong usage, or input that cannot "+
		"be read.\n")
}

// explain is the help of one command: usage, text, example.
func explain(w io.Writer, program string, c Command) {
	fmt.Fprintf(w, "usage: %s %s %s\n\n%s\n", program, c.Name, c.Args, strings.TrimSpace(c.Long))
	if c.Example != "" {
		fmt.Fprintf(w, "\nExample:\n")
		for l := range strings.Lines(strings.TrimSpace(c.Example)) {
			fmt.Fprintf(w, "    %s\n", strings.TrimSpace(l))
		}
	}
}

// fail writes err as one line that begins with the program's and the command's name, and returns
// Usage.
func fail(stderr io.Writer, name string, err error) int {
	fmt.Fprintf(stderr, "kvreport %s: %s\n", name, strings.ReplaceAll(err.Error(), "\n", "; "))
	return Usage
}

// warner writes what is no reason to stop, a line each, in the form of fail: whoever greps for the
// command finds both. It is called from one goroutine.
func warner(stderr io.Writer, name string) func(error) {
	return func(err error) { fmt.Fprintf(stderr, "kvreport %s: %v\n", name, err) }
}

// flags returns an empty flag set whose mistakes are returned by parse instead of printed.
func flags(name string) *flag.FlagSet {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	// The package would print the usage of all flags for every slip.
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	return fs
}

// parse parses args with flags and positional arguments in any order and returns the latter; behind
// -- all are positional. A lone - is positional: it stands for standard input.
func parse(fs *flag.FlagSet, args []string) (positional []string, err error) {
	for len(args) > 0 {
		before := args
		if err := fs.Parse(args); err != nil {
			return nil, errors.New(hint(fs, err))
		}
		// The flag package stops at the first argument that is no flag. That is taken, and the
		// rest is parsed again.
		args = fs.Args()
		if n := len(before) - len(args); n > 0 && before[n-1] == "--" {
			return append(positional, args...), nil
		}
		if len(args) > 0 {
			positional, args = append(positional, args[0]), args[1:]
		}
	}
	return positional, nil
}

// hint adds the nearest flag to the flag package's complaint about an unknown one, and where to
// read about all.
func hint(fs *flag.FlagSet, err error) string {
	// The package tells of an unknown flag in its text only.
	msg := err.Error()
	if _, name, ok := strings.Cut(msg, "flag provided but not defined: -"); ok {
		var names []string
		fs.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
		msg = fmt.Sprintf("unknown flag -%s%s", name, units.Suggestion(name, names))
	}
	return fmt.Sprintf("%s; kvreport help %s shows the usage", msg, fs.Name())
}

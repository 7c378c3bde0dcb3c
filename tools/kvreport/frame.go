package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"kvbench/kvbench/units"
	"kvbench/kvbench/version"
	"kvbench/tools/load"
)

// Exit codes of every subcommand. Scripts tell a failed gate from a broken one by them.
const (
	Done  = 0 // it did what was asked
	No    = 1 // it did, and the answer is no
	Usage = 2 // wrong usage, or input or output that cannot be read or written

	Undecided = 3 // it did, and nobody can tell
)

var (
	// errNo ends a command that did what was asked and whose answer is no.
	errNo = errors.New("the answer is no")
	// errUndecided ends a command that did what was asked and found no answer.
	errUndecided = errors.New("nobody can tell")
	// errSaid ends a command that failed and has said why.
	errSaid = errors.New("said already")
)

// Command is one subcommand. help/NAME.txt says what it does.
type Command struct {
	Name  string
	Args  string // as in the usage line: "IN… -o FILE"
	Short string // one line for the list of commands
	Run   func(*Call) error
}

// Call is one call of a command: what was typed and the streams, so that tests can make one without
// a process. A command defines its flags first and then parses.
type Call struct {
	*flag.FlagSet
	args           []string
	inputs         []string // what is read: outputs never replace it
	stdin          io.Reader
	stdout, stderr io.Writer
}

func newCall(name string, args []string, stdin io.Reader, stdout, stderr io.Writer) *Call {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	// The package would print the usage of all flags for every slip.
	fs.SetOutput(io.Discard)
	return &Call{FlagSet: fs, args: args, stdin: stdin, stdout: stdout, stderr: stderr}
}

// Main finds the subcommand that args[0] names, runs it and returns the exit code. Without
// arguments it prints the table to stderr; help, -h and --help print it to stdout, help COMMAND
// explains one, version tells the build. An unknown name is answered with the nearest known one.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	// Without a command nothing was asked: help that nobody asked for goes to standard error, so
	// that a pipe does not take it for an answer.
	if len(args) == 0 {
		usage(stderr)
		return Usage
	}
	name, rest := args[0], args[1:]
	if name == "help" || isHelp(name) {
		if len(rest) == 0 {
			usage(stdout)
			return Done
		}
		name, rest = rest[0], []string{"-h"}
	}
	if slices.Contains([]string{"version", "-version", "--version"}, name) {
		fmt.Fprintln(stdout, "kvreport", version.Current())
		return Done
	}
	names := make([]string, len(commands))
	for i, c := range commands {
		names[i] = c.Name
	}
	i := slices.Index(names, name)
	if i < 0 {
		// Slips of the finger get an answer that can be copied.
		fmt.Fprintf(stderr, "kvreport: unknown command %q%s; kvreport help lists the commands\n",
			name, units.Suggestion(name, names))
		return Usage
	}
	// Help is found anywhere on the line, as people add -h to what they have typed.
	for _, a := range rest {
		if a == "--" {
			break
		}
		if isHelp(a) {
			explain(stdout, commands[i])
			return Done
		}
	}
	c := newCall(name, rest, stdin, stdout, stderr)
	return c.end(commands[i].Run(c))
}

// end turns how a command ended into its exit code, and says what went wrong.
func (c *Call) end(err error) int {
	switch err {
	case nil:
		return Done
	case errNo:
		return No
	case errUndecided:
		return Undecided
	case errSaid:
	default:
		c.warn(err)
	}
	return Usage
}

// isHelp knows the spellings of every flag package.
func isHelp(arg string) bool { return arg == "-h" || arg == "-help" || arg == "--help" }

// usage is the table of commands.
func usage(w io.Writer) {
	// The second column begins behind the longest name.
	width := 0
	for _, c := range commands {
		width = max(width, len(c.Name))
	}
	fmt.Fprint(w, "usage: kvreport COMMAND [arguments]\n\n")
	for _, c := range commands {
		fmt.Fprintf(w, "  %-*s  %s\n", width, c.Name, c.Short)
	}
	fmt.Fprint(w, "\nkvreport help COMMAND explains one of them with an example; kvreport version "+
		"tells which build this is.\n"+
		"Exit codes: 0 done; 1 the answer is no; 2 wrong usage, or input that cannot be read; "+
		"3 the results are not sufficient for an answer.\n")
}

// explain is the help of one command: usage, text, example.
func explain(w io.Writer, c Command) {
	text, _ := help.ReadFile("help/" + c.Name + ".txt") // TestCommandsTeach misses one
	fmt.Fprintf(w, "usage: kvreport %s %s\n\n%s", c.Name, c.Args, text)
}

// say writes what is no answer, a line each that begins with the program's and the command's name,
// so that whoever greps for the command finds all. It is called from one goroutine.
func (c *Call) say(text string) {
	fmt.Fprintf(c.stderr, "kvreport %s: %s\n", c.Name(), strings.ReplaceAll(text, "\n", "; "))
}

// warn says what is wrong.
func (c *Call) warn(err error) { c.say(err.Error()) }

// list defines a flag that may be given several times. Shells expand a pattern into several
// arguments; a flag takes one, so that it is given again.
func (c *Call) list(name string) *[]string {
	var values []string
	c.Func(name, "", func(s string) error {
		values = append(values, s)
		return nil
	})
	return &values
}

// parse parses flags and positional arguments in any order and returns the latter; behind -- all
// are positional. A lone - is positional: it stands for standard input. An output that would
// destroy an input is refused here, because reading can take minutes.
func (c *Call) parse() (positional []string, err error) {
	defer func() {
		c.inputs = positional
		if out := c.Lookup("o"); err == nil && out != nil {
			err = c.spare(out.Value.String())
		}
	}()
	for args := c.args; len(args) > 0; {
		before := args
		if err := c.Parse(args); err != nil {
			return nil, c.hint(err)
		}
		// The flag package stops at the first argument that is no flag. That is taken, and the
		// rest is parsed again.
		args = c.Args()
		if n := len(before) - len(args); n > 0 && before[n-1] == "--" {
			return append(positional, args...), nil
		}
		if len(args) > 0 {
			positional, args = append(positional, args[0]), args[1:]
		}
	}
	return positional, nil
}

// bareDuration is what the flag package says of a time without a unit.
var bareDuration = regexp.MustCompile(`^invalid value "([0-9.]+)" for flag -(\S+): parse error$`)

// hint adds the nearest flag to the flag package's complaint about an unknown one, and where to
// read about all.
func (c *Call) hint(err error) error {
	// The package tells of an unknown flag in its text only.
	msg := err.Error()
	if _, name, ok := strings.Cut(msg, "flag provided but not defined: -"); ok {
		var names []string
		c.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
		msg = fmt.Sprintf("unknown flag -%s%s", name, units.Suggestion(name, names))
	}
	if m := bareDuration.FindStringSubmatch(msg); m != nil {
		msg = fmt.Sprintf("-%s must be a time with its unit, did you mean %ss or %sm?", m[2], m[1],
			m[1])
	}
	return fmt.Errorf("%s; kvreport help %s shows the usage", msg, c.Name())
}

// directory parses the arguments of a command that has one results directory: two are two runs,
// which are never summed.
func (c *Call) directory(example string) (string, error) {
	dirs, err := c.parse()
	if err != nil {
		return "", err
	}
	if len(dirs) != 1 {
		return "", fmt.Errorf("one results directory is needed, for example: kvreport %s %s",
			c.Name(), example)
	}
	return dirs[0], nil
}

// print writes what a command found out to standard output, for people or for programs.
func (c *Call) print(a answer, asJSON bool) error { return encode(c.stdout, a, asJSON) }

// answer is what a command found out. Its JSON is itself.
type answer interface{ WriteText(io.Writer) error }

// encode writes an answer for people or for programs.
func encode(w io.Writer, a answer, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(a)
	}
	return a.WriteText(w)
}

// write lets write make a whole file at path, or standard output where path is - or empty.
func (c *Call) write(path string, write func(io.Writer) error) error {
	if path == "" || path == load.Stdin {
		return write(c.stdout)
	}
	if err := c.spare(path); err != nil {
		return err
	}
	return writeFile(path, write)
}

// writeText is write for a text.
func (c *Call) writeText(path, text string) error {
	return c.write(path, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

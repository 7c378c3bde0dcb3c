package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tools/curve"
	"kvbench/tools/load"
)

// Exit codes of every command.
const (
	Done  = 0 // completed
	No    = 1 // completed: the answer is no
	Usage = 2 // wrong usage, or input or output that cannot be read or written

	Undecided = 3 // completed: the results do not suffice for an answer
)

// exit ends a command with an exit code. Its error is printed, if it has one.
type exit struct {
	code int
	err  error
}

func (e *exit) Error() string { return fmt.Sprint(e.err) }

func (e *exit) Unwrap() error { return e.err }

var (
	errNo        = &exit{code: No}
	errUndecided = &exit{code: Undecided}
	// errSaid ends a command that has printed its error.
	errSaid = &exit{code: Usage}
)

// Command is one command. help/NAME.txt describes it. New defines the flags and returns the function
// that runs the command with the arguments.
type Command struct {
	Name  string
	Args  string // for the usage line: "IN… -o FILE"
	Short string // one line for the list of commands
	New   func(*Call) func(args []string) error
}

// Call is one call of a command, with flags and streams.
type Call struct {
	*flag.FlagSet
	commands       []Command // all, in the order of the help
	inputs         []string  // input files, which an output must not replace
	stdin          io.Reader
	stdout, stderr io.Writer
}

// Main runs the command args[0] and returns the exit code.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	// Help that was not requested goes to standard error.
	if len(args) == 0 {
		fmt.Fprint(stderr, usage(commands))
		return Usage
	}
	name, args := args[0], args[1:]
	switch name {
	case "version", "-version", "--version":
		fmt.Fprintln(stdout, "kvreport", result.Version())
		return Done
	case "help", "-h", "-help", "--help":
		if len(args) == 0 {
			fmt.Fprint(stdout, usage(commands))
			return Done
		}
		name, args = args[0], []string{"-h"}
	}
	var names []string
	for _, c := range commands {
		if c.Name == name {
			return c.run(args, stdin, stdout, stderr)
		}
		names = append(names, c.Name)
	}
	say(stderr, "kvreport", fmt.Sprintf("unknown command %q%s; kvreport help lists the commands", name,
		units.Suggestion(name, names)))
	return Usage
}

// run runs one call of the command and returns the exit code.
func (c Command) run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	call := &Call{flag.NewFlagSet(c.Name, flag.ContinueOnError), commands, nil, stdin, stdout, stderr}
	call.SetOutput(io.Discard) // the error is printed below
	run := c.New(call)
	others, err := call.parse(args)
	if err == flag.ErrHelp {
		fmt.Fprint(stdout, c.help())
		return Done
	}
	call.inputs = others
	// Refuse an output that would replace an input now: reading can take minutes.
	if out := call.Lookup("o"); out != nil && err == nil {
		err = call.spare(out.Value.String())
	}
	if err == nil {
		err = run(others)
	}
	if err == nil {
		return Done
	}
	code := Usage
	if e, ok := errors.AsType[*exit](err); ok {
		code = e.code
		if e.err == nil {
			return code
		}
	}
	// Joined errors have a line each.
	for line := range strings.SplitSeq(err.Error(), "\n") {
		call.say(strings.TrimPrefix(line, c.Name+": ")) // say adds the name
	}
	return code
}

// help returns the usage and the text of the command.
func (c Command) help() string {
	text, _ := help.ReadFile("help/" + c.Name + ".txt") // TestCommandsTeach misses one
	long := strings.ReplaceAll(string(text), "{trace formats}", curve.Formats())
	return fmt.Sprintf("usage: kvreport %s %s\n\n%s", c.Name, c.Args, long)
}

// parse parses the flags, which may be anywhere on the line, and returns the arguments. After --
// everything is an argument.
func (c *Call) parse(args []string) (others []string, err error) {
	for {
		if err := c.Parse(args); err == flag.ErrHelp {
			return nil, err
		} else if err != nil {
			return nil, c.hint(err)
		}
		rest := c.Args()
		parsed := args[:len(args)-len(rest)]
		if len(rest) == 0 || len(parsed) > 0 && parsed[len(parsed)-1] == "--" {
			return append(others, rest...), nil
		}
		others, args = append(others, rest[0]), rest[1:]
	}
}

// bareDuration matches the flag package's error for a duration without a unit.
var bareDuration = regexp.MustCompile(`^invalid value "([0-9.]+)" for flag -(\S+): parse error$`)

// hint adds to an error of the flag package: the nearest flag, the unit of a duration, and the help
// command.
func (c *Call) hint(err error) error {
	msg := err.Error()
	if name, unknown := strings.CutPrefix(msg, "flag provided but not defined: -"); unknown {
		var names []string
		c.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
		msg = fmt.Sprintf("unknown flag -%s%s", name, units.Suggestion(name, names))
	} else if m := bareDuration.FindStringSubmatch(msg); m != nil {
		value, _ := c.Lookup(m[2]).Value.(flag.Getter)
		if _, isTime := value.Get().(time.Duration); isTime {
			msg = fmt.Sprintf("-%s must be a time with its unit, did you mean %ss or %sm?", m[2],
				m[1], m[1])
		}
	}
	return fmt.Errorf("%s; kvreport help %s shows the usage", msg, c.Name())
}

// mistakes collects what is wrong with a command line, to report all of it at once.
type mistakes []error

// check adds a mistake unless ok.
func (m *mistakes) check(ok bool, format string, args ...any) {
	if !ok {
		*m = append(*m, fmt.Errorf(format, args...))
	}
}

// usage returns the list of commands.
func usage(commands []Command) string {
	width := 0 // of the first column
	for _, c := range commands {
		width = max(width, len(c.Name))
	}
	text := "usage: kvreport COMMAND [arguments]\n\n"
	for _, c := range commands {
		text += fmt.Sprintf("  %-*s  %s\n", width, c.Name, c.Short)
	}
	return text + "\nkvreport help COMMAND explains one of them with an example; kvreport version " +
		"prints which build this is.\n" +
		"Exit codes: 0 done; 1 the answer is no; 2 wrong usage, or input that cannot be read; " +
		"3 the results are not sufficient for an answer.\n"
}

// say writes a line that begins with the command's name. A newline in text becomes "; ".
func say(w io.Writer, command, text string) {
	fmt.Fprintf(w, "%s: %s\n", command, strings.ReplaceAll(text, "\n", "; "))
}

// say writes a note to standard error. Only one goroutine calls it.
func (c *Call) say(text string) { say(c.stderr, "kvreport "+c.Name(), text) }

// warn writes an error to standard error.
func (c *Call) warn(err error) { c.say(err.Error()) }

// list defines a flag that may be repeated, and returns its values.
func (c *Call) list(name string) *[]string {
	var list []string
	c.Func(name, "", func(value string) error {
		list = append(list, value)
		return nil
	})
	return &list
}

// directory returns the single argument of a command that reads one results directory.
func (c *Call) directory(args []string, example string) (string, error) {
	if len(args) != 1 {
		return "", fmt.Errorf("one results directory is needed, for example: kvreport %s %s",
			c.Name(), example)
	}
	return args[0], nil
}

// answer is the result of a command. It encodes as JSON.
type answer interface{ Text() string }

// encode writes an answer as JSON or as text.
func encode(w io.Writer, a answer, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(a)
	}
	_, err := io.WriteString(w, a.Text())
	return err
}

// write calls write to make the file at path. If path is "-" or "", it writes to standard output.
func (c *Call) write(path string, write func(io.Writer) error) error {
	if path == "" || path == load.Stdin {
		return write(c.stdout)
	}
	if err := c.spare(path); err != nil {
		return err
	}
	return writeFile(path, write)
}

// writeText writes a string to a file or to standard output, as write does.
func (c *Call) writeText(path, text string) error {
	return c.write(path, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

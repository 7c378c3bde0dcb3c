package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kvbench/kvbench/environment"
	"kvbench/kvbench/units"
	"kvbench/tools/curve"
	"kvbench/tools/load"
)

// Exit codes of every subcommand. Scripts distinguish a failed gate from a broken one by them.
const (
	Done  = 0 // completed
	No    = 1 // completed, and the answer is no
	Usage = 2 // wrong usage, or input or output that cannot be read or written

	Undecided = 3 // completed, and the results are not sufficient for an answer
)

var (
	errNo        = errors.New("the answer is no")
	errUndecided = errors.New("undecided")
	// errSaid ends a command that has printed its error.
	errSaid = errors.New("printed already")
)

// Command is one subcommand. help/NAME.txt describes it. New defines its flags and returns what runs
// once they are parsed, with the other arguments.
type Command struct {
	Name  string
	Args  string // as in the usage line: "IN… -o FILE"
	Short string // one line for the list of commands
	New   func(*Call) func(args []string) error
}

// Call is one call of a command, with its flags and streams.
type Call struct {
	*pflag.FlagSet
	name           string
	inputs         []string // the input files: outputs never replace them
	stdin          io.Reader
	stdout, stderr io.Writer
}

// Main runs the subcommand that args[0] names and returns the exit code.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	// Unrequested help goes to standard error, so that a pipe does not take it for an answer.
	if len(args) == 0 {
		usage(stderr)
		return Usage
	}
	root := &cobra.Command{Use: "kvreport", Version: environment.Version(), SilenceErrors: true,
		SilenceUsage: true, Args: cobra.ArbitraryArgs, RunE: unknown}
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetVersionTemplate("kvreport {{.Version}}\n")
	root.SetHelpFunc(func(c *cobra.Command, _ []string) {
		if c == root {
			usage(stdout)
			return
		}
		fmt.Fprintf(stdout, "usage: kvreport %s\n\n%s", c.Use, c.Long)
	})
	root.SetHelpCommand(&cobra.Command{Use: "help", RunE: func(_ *cobra.Command, a []string) error {
		c, rest, err := root.Find(a)
		if err != nil || len(rest) > 0 {
			return unknown(root, a)
		}
		return c.Help()
	}})
	root.AddCommand(&cobra.Command{Use: "version", Run: func(*cobra.Command, []string) {
		fmt.Fprintln(stdout, "kvreport", environment.Version())
	}})
	root.CompletionOptions.HiddenDefaultCmd = true
	for _, c := range commands {
		root.AddCommand(c.cobra(stdin, stdout, stderr))
	}
	found, _, _ := root.Find(args[:1])
	root.SetArgs(twoDashes(found.Flags(), args))
	switch err := root.Execute(); err {
	case nil:
		return Done
	case errNo:
		return No
	case errUndecided:
		return Undecided
	case errSaid:
	default:
		say(stderr, found.CommandPath(), err.Error())
	}
	return Usage
}

// cobra returns the library's command.
func (c Command) cobra(stdin io.Reader, stdout, stderr io.Writer) *cobra.Command {
	text, _ := help.ReadFile("help/" + c.Name + ".txt") // TestCommandsTeach misses one
	long := strings.ReplaceAll(string(text), "{trace formats}", curve.Formats())
	cmd := &cobra.Command{Use: c.Name + " " + c.Args, Short: c.Short, Long: long,
		DisableFlagsInUseLine: true}
	call := &Call{FlagSet: cmd.Flags(), name: c.Name, stdin: stdin, stdout: stdout, stderr: stderr}
	run := c.New(call)
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return call.hint(err) })
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		// An output that would replace an input is refused here, because reading can take minutes.
		call.inputs = args
		if out := call.Lookup("o"); out != nil {
			if err := call.spare(out.Value.String()); err != nil {
				return err
			}
		}
		return run(args)
	}
	return cmd
}

// unknown refuses an unknown command and suggests the nearest one.
func unknown(root *cobra.Command, args []string) error {
	var names []string
	for _, c := range commands {
		names = append(names, c.Name)
	}
	return fmt.Errorf("unknown command %q%s; kvreport help lists the commands", args[0],
		units.Suggestion(args[0], names))
}

// twoDashes writes -name as --name: the flags of this program have one dash, as those of go test,
// and the library takes one dash for letters. Values of flags stay as they are.
func twoDashes(flags *pflag.FlagSet, args []string) []string {
	args = slices.Clone(args)
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		name, _, whole := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		if name == "" || args[i][0] != '-' || args[i] == "-h" {
			continue
		}
		args[i] = "--" + strings.TrimLeft(args[i], "-")
		if f := flags.Lookup(name); f != nil && f.NoOptDefVal == "" && !whole {
			i++ // its value
		}
	}
	return args
}

// usage is the table of commands.
func usage(w io.Writer) {
	width := 0 // of the first column
	for _, c := range commands {
		width = max(width, len(c.Name))
	}
	fmt.Fprint(w, "usage: kvreport COMMAND [arguments]\n\n")
	for _, c := range commands {
		fmt.Fprintf(w, "  %-*s  %s\n", width, c.Name, c.Short)
	}
	fmt.Fprint(w, "\nkvreport help COMMAND explains one of them with an example; kvreport version "+
		"prints which build this is.\n"+
		"Exit codes: 0 done; 1 the answer is no; 2 wrong usage, or input that cannot be read; "+
		"3 the results are not sufficient for an answer.\n")
}

// say writes a line that begins with the program's and the command's name.
func say(w io.Writer, command, text string) {
	fmt.Fprintf(w, "%s: %s\n", command, strings.ReplaceAll(text, "\n", "; "))
}

// say writes a note to standard error. It is called from one goroutine.
func (c *Call) say(text string) { say(c.stderr, "kvreport "+c.name, text) }

// warn reports an error.
func (c *Call) warn(err error) { c.say(err.Error()) }

// mistakes reports each line of an error separately.
func (c *Call) mistakes(err error) error {
	for mistake := range strings.SplitSeq(err.Error(), "\n") {
		c.say(mistake)
	}
	return errSaid
}

// list defines a flag that may be given several times, once for each input.
func (c *Call) list(name string) *[]string { return c.StringArray(name, nil, "") }

// bareDuration is the library's error for a time without a unit.
var bareDuration = regexp.MustCompile(`^invalid argument "([0-9.]+)" for "--(\S+)" flag: time: miss`)

// hint rewrites the library's flag errors as one line, with the nearest flag.
func (c *Call) hint(err error) error {
	msg := err.Error()
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		var names []string
		c.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		name := unknown.GetSpecifiedName()
		msg = fmt.Sprintf("unknown flag -%s%s", name, units.Suggestion(name, names))
	}
	if m := bareDuration.FindStringSubmatch(msg); m != nil {
		msg = fmt.Sprintf("-%s must be a time with its unit, did you mean %ss or %sm?", m[2], m[1],
			m[1])
	}
	msg = strings.NewReplacer(`"--`, `"-`, " --", " -").Replace(msg)
	return fmt.Errorf("%s; kvreport help %s shows the usage", msg, c.name)
}

// directory is the argument of a command that has one results directory: two are two runs, which
// are never summed.
func (c *Call) directory(args []string, example string) (string, error) {
	if len(args) != 1 {
		return "", fmt.Errorf("one results directory is needed, for example: kvreport %s %s",
			c.name, example)
	}
	return args[0], nil
}

// print writes a command's answer to standard output, for people or for programs.
func (c *Call) print(a answer, asJSON bool) error { return encode(c.stdout, a, asJSON) }

// answer is a command's result; it is encoded as its own JSON.
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

// write calls write to create the whole file at path, or standard output where path is - or empty.
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

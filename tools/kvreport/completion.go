package main

import (
	"embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"text/template"

	"kvbench/kvbench/result"
)

// scripts has a template for each shell, of the commands and their flags.
//
//go:embed completion
var scripts embed.FS

// Flags returns the names of the command's flags.
func (c Command) Flags() (names []string) {
	call := &Call{FlagSet: flag.NewFlagSet(c.Name, flag.ContinueOnError)}
	c.New(call)
	call.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	return names
}

// runCompletion writes the completion script of a shell.
func runCompletion(c *Call) func([]string) error {
	return func(args []string) error {
		t := template.New("").Funcs(template.FuncMap{
			"quoted": func(text string) string { return strings.ReplaceAll(text, "'", `'\''`) },
		})
		if t = template.Must(t.ParseFS(scripts, "completion/*")); len(args) == 1 && t.Lookup(args[0]) != nil {
			return t.ExecuteTemplate(c.stdout, args[0], c.commands)
		}
		return errors.New("one shell is needed: bash, zsh or fish, for example: " +
			"source <(kvreport completion bash)")
	}
}

// runMan writes the help of all commands as a manual page.
func runMan(c *Call) func([]string) error {
	return func(args []string) error {
		if len(args) > 0 {
			return fmt.Errorf("unexpected %q: the page goes to standard output", args[0])
		}
		var out strings.Builder
		fmt.Fprintf(&out, ".TH KVREPORT 1 \"\" \"kvreport %s\"\n.ad l\n.nh\n", result.Version())
		fmt.Fprintf(&out, ".SH NAME\nkvreport \\- programs over results of kvbench\n.SH DESCRIPTION\n%s",
			roff(usage(c.commands)))
		for _, command := range c.commands {
			fmt.Fprintf(&out, ".SH %s\n%s", strings.ToUpper(command.Name), roff(command.help()))
		}
		_, err := io.WriteString(c.stdout, out.String())
		return err
	}
}

// roff formats a text for man. Lines that begin with spaces stay as they are, others are filled.
func roff(text string) string {
	var out strings.Builder
	kept := false
	for line := range strings.Lines(text) {
		if keep := strings.HasPrefix(line, " "); keep != kept {
			out.WriteString(map[bool]string{true: ".nf\n", false: ".fi\n"}[keep])
			kept = keep
		}
		line = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(line)
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			line = `\&` + line
		}
		out.WriteString(line)
	}
	return out.String() + ".fi\n"
}

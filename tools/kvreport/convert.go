package main

import (
	"io"

	"kvbench/tools/curve"
)

// runConvert writes block traces as Mooncake's JSON lines. The summary of the rows goes to standard
// error, so that the lines can be piped.
func runConvert(c *Call) func([]string) error {
	o := curve.NewConvertOptions(c.FlagSet)
	out := c.String("o", "", "file to write; without it standard output")
	return func(paths []string) error {
		cfg, err := o.Check(paths)
		if err != nil {
			return c.mistakes(err)
		}
		c.inputs = cfg.Paths // of directories and patterns
		var notes []string
		err = c.write(*out, func(w io.Writer) error {
			notes, err = o.Run(cfg, w)
			return err
		})
		for _, line := range notes {
			c.say(line)
		}
		return err
	}
}

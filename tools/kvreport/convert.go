package main

import (
	"errors"
	"io"
	"strings"

	"kvbench/tools/convert"
)

// runConvert writes block traces as Mooncake's JSON lines. What became of the rows is said on
// standard error, so that the lines can be piped.
func runConvert(c *Call) error {
	o := convert.NewOptions(c.FlagSet)
	out := c.String("o", "", "file to write; without it standard output")
	paths, err := c.parse()
	if err != nil {
		return err
	}
	cfg, err := o.Check(paths)
	if err != nil {
		// Every mistake has a line of its own.
		for mistake := range strings.SplitSeq(err.Error(), "\n") {
			c.warn(errors.New(mistake))
		}
		return errSaid
	}
	c.inputs = cfg.Paths // of directories and patterns
	var told []string
	err = c.write(*out, func(w io.Writer) error {
		told, err = o.Run(cfg, w)
		return err
	})
	for _, line := range told {
		c.say(line)
	}
	return err
}

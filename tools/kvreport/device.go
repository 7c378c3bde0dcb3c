package main

import (
	"fmt"

	"kvbench/tools/sizing"
)

// runDevice prints one line on standard output, which scripts put into -simulate-device; the
// reasons go to standard error: without them a good fit looks like a lucky one. In the
// other formats it is a document.
func runDevice(c *Call) func([]string) error {
	format := c.String("format", "text", sizing.Formats)
	return func(in []string) error {
		text, reasons, err := sizing.Device(in, c.stdin, *format, c.warn)
		if err != nil {
			return err
		}
		for _, why := range reasons {
			fmt.Fprintln(c.stderr, why)
		}
		fmt.Fprintln(c.stdout, text)
		return nil
	}
}

package main

import (
	"fmt"

	"kvbench/tools/sizing"
)

// runDevice prints one line on standard output, which scripts pass to -simulate-device. The reasons
// go to standard error, so that a user can judge the fit. The other formats are documents.
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

package main

import (
	"fmt"
	"io"

	"kvbench/tools/sizing"
)

// deviceCommand prints one line that another command takes as an argument; the reasons go to
// standard error.
var deviceCommand = Command{
	Name:  "device",
	Args:  "IN…",
	Short: "the -simulate-device text of a drive, from runs of StorageCeiling and Tier on it",
	Run:   runDevice,
}

// runDevice keeps standard output to the one line, which scripts put into -simulate-device.
func runDevice(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	in, err := parse(flags("device"), args)
	if err != nil {
		return fail(stderr, "device", err)
	}
	text, reasons, err := sizing.Device(in, stdin, warner(stderr, "device"))
	if err != nil {
		return fail(stderr, "device", err)
	}
	// Without them nobody could tell a good fit from a lucky one.
	for _, why := range reasons {
		fmt.Fprintln(stderr, why)
	}
	fmt.Fprintln(stdout, text)
	return Done
}

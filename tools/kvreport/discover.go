package main

import (
	"fmt"
	"io"

	"kvbench/tools/discover"
)

// discoverCommand describes this machine and one directory of it.
var discoverCommand = Command{
	Name:  "discover",
	Args:  "[DIR] [-json]",
	Short: "this machine: CPU, memory, GPUs, block devices, a directory; recommended parameters",
	Run:   runDiscover,
}

// runDiscover looks at the current directory unless one is named.
func runDiscover(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	fs := flags("discover")
	asJSON := fs.Bool("json", false, "")
	dirs, err := parse(fs, args)
	// The advice is about one directory: it names its drive.
	if err == nil && len(dirs) > 1 {
		err = fmt.Errorf("one directory at most, given %d", len(dirs))
	}
	if err != nil {
		return fail(stderr, "discover", err)
	}
	// A directory that does not exist has no filesystem to describe.
	h, err := discover.Describe(append(dirs, ".")[0])
	if err != nil {
		return fail(stderr, "discover", err)
	}
	write := h.WriteText
	if *asJSON {
		write = h.WriteJSON
	}
	if err := write(stdout); err != nil {
		return fail(stderr, "discover", err)
	}
	return Done
}

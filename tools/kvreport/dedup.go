package main

import (
	"errors"
	"fmt"
	"io"

	"kvbench/tools/dedup"
)

// dedupCommand reads everything below its paths once. What cannot be read is named and the rest is
// reported: a share of a directory is worth knowing.
var dedupCommand = Command{
	Name:  "dedup",
	Args:  "PATH… [-json] [-max-blocks N]",
	Short: "duplicate 4 KiB blocks and zstd ratio of existing files",
	Run:   runDedup,
}

// runDedup fails when there was nothing to read at all: a share of nothing is no answer.
func runDedup(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	fs := flags("dedup")
	asJSON := fs.Bool("json", false, "")
	kept := fs.Int("max-blocks", dedup.DefaultKept, "")
	paths, err := parse(fs, args)
	switch {
	case err != nil:
	case len(paths) == 0:
		err = errors.New("no path; name files or directories, for example: kvreport dedup /mnt/kv")
	// A smaller sample has an interval as wide as the question.
	case *kept < 1024:
		err = fmt.Errorf("-max-blocks: must be at least 1024, given %d", *kept)
	}
	if err != nil {
		return fail(stderr, "dedup", err)
	}
	r, err := dedup.Scan(paths, *kept)
	if err != nil {
		return fail(stderr, "dedup", err)
	}
	for _, p := range r.Problems {
		fmt.Fprintf(stderr, "kvreport dedup: %s\n", p)
	}
	if r.Bytes == 0 {
		if len(r.Problems) == 0 {
			return fail(stderr, "dedup",
				errors.New("no data: the files are empty or there are none"))
		}
		return Usage
	}
	write := r.WriteText
	if *asJSON {
		write = r.WriteJSON
	}
	if err := write(stdout); err != nil {
		return fail(stderr, "dedup", err)
	}
	if len(r.Problems) > 0 {
		return Usage
	}
	return Done
}

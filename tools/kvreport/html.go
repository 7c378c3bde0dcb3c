package main

import (
	"io"

	"kvbench/tools/view"
	"kvbench/tools/view/html"
)

// htmlCommand makes a page of everything that is read.
var htmlCommand = Command{
	Name:  "html",
	Args:  "IN… -o FILE",
	Short: "one page with plots that opens from disk",
	Run: func(args []string, stdin io.Reader, _, stderr io.Writer) int {
		return writeDocument("html", args, stdin, stderr, html.Write, view.Missing)
	},
}

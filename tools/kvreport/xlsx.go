package main

import (
	"io"

	"kvbench/tools/view/xlsx"
)

// xlsxCommand makes a workbook of everything that is read.
var xlsxCommand = Command{
	Name:  "xlsx",
	Args:  "IN… -o FILE",
	Short: "workbook with charts: one row per result, runs side by side",
	Run: func(args []string, stdin io.Reader, _, stderr io.Writer) int {
		return writeDocument("xlsx", args, stdin, stderr, xlsx.Write, xlsx.Missing)
	},
}

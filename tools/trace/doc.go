// Package trace is kvreport trace: the block requests of any running process, and a fio job that
// repeats them.
package trace

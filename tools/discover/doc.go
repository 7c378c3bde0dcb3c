// Package discover describes the machine that a benchmark is to run on, as the kernel shows it, and
// recommends parameters with the reason for each. It changes nothing and measures nothing.
package discover

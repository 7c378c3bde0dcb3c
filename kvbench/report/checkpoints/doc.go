// Package checkpoints says of a result's checkpoints, in sentences, what was written or read, how
// fast, what held it up, and which rules of the closed division were kept. The summary, a
// benchmark's log and the page have the same ones; package report draws the table of all of them.
//
//	checkpoints.go  Lines for who has a margin, Log for who has none
//
// All of it is made of the result alone. The functions keep nothing and change nothing: any
// goroutine may call them.
package checkpoints

// Package history keeps results over commits and machines in one file, and says at which commit a
// benchmark changed.
//
//	file.go    Entry, Read, Add: a line of JSON for each benchmark of a commit on a machine
//	change.go  series over commits, and where they change
//	show.go    Text and Page of them
//
// The file is text that grows at its end: git holds it and merges it line by line, and so does any
// store of artifacts. Commits stand in the order in which they were added. A series is one
// benchmark on one machine with one set of settings; what was measured otherwise is another series,
// as two machines are. What an entry does not tell of its settings is no difference.
//
// A change is found by Pettitt's test (Applied Statistics 28, 1979), by ranks, on the medians of
// the commits, because trials of one commit are no independent witnesses of what the next one
// changed. It needs twelve commits to say anything at 5 %. The level is shared by all series that
// are looked at; on both sides of a change the search goes on.
//
// How it would be attacked: a drift over months is found as a step in its middle, which the trend
// on the page shows; a machine that was repaired is a step that no commit made, so that a machine
// that changed needs another name (-machine). The bound for p is above its true value for short
// series, which costs changes and invents none.
//
// Everything is a function of its arguments but Add and ReadFile. Two that add to one file at a
// time lose nothing, as each appends with one write, but may both add one commit.
package history

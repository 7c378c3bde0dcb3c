// Package objects counts the requests to an object store, and fills the sections of a result.
//
//	recorder.go  Recorder: the events of a store's client, counted in shards
//	section.go   the window's edges, and the sections of the result
//
// What ended inside the window is the window's, as everywhere in a result. The rest is counted
// apart, so that both together are what the store's own access log shows.
//
//	                       counted in
//	lists at the start     outside
//	check of the store     neither
//	fill, warm-up          outside
//	load                   the window, if it ended in it
//	drain                  outside; requests that the window's end cut off are cancelled ones
//	deletion at the end    neither: the result has been written by then
//
// A request and its attempts count at the moment at which each ended. A request whose attempt
// failed in the window and whose next one succeeded behind it has an attempt in the window and no
// request.
package objects

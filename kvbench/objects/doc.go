// Package objects counts the requests to an object store, and tells of them in a result.
//
//	recorder.go  Recorder: what a store's client tells, counted in shards
//	section.go   the window's edges, and the sections of the result
//
// What ended inside the window is the window's, as everywhere in a result. The rest is told apart,
// so that both together are what the store's own access log shows: that is how somebody checks the
// numbers.
//
//	                       counted in
//	marker, reclaim        outside
//	proof of the store     neither: each endpoint is asked by itself, of which nobody is told
//	fill, warm-up          outside
//	load                   the window, if it ended in it
//	heartbeat              the window, a few small requests each 30 s
//	drain                  outside; requests that the window's end cut off are cancelled ones
//	deletion at the end    neither: the result has been written by then
//
// A request and its attempts count at the moment at which each ended. One whose attempt failed in
// the window and whose next one succeeded behind it has an attempt in the window and no request.
package objects

// Command objectloop moves objects to and from a store in a plain loop, as a floor and as a mark
// for the suite's own client: the same requests, as many in flight, no cache, no queue.
//
//	main.go     flags; the window, what it cost; the line that is printed
//	clients.go  the clients: net/http bare or signed, minio-go in three ways,
//	            and the suite's tier past cache and transfer
//
// A client is run in a process of its own, whose processor time and memory are then its own:
//
//	AWS_ACCESS_KEY_ID=key AWS_SECRET_ACCESS_KEY=secret \
//		go run ./benchmarks/e2e/objectloop -endpoint http://127.0.0.1:9000 -bucket bench -op get \
//		-client bare -size 8388608 -in-flight 16 -time 5s
//	{"client":"bare","op":"get","size":8388608,"in_flight":16,"bytes":…,"requests":…,"seconds":…,
//	 "cpu_seconds":…,"peak_rss_bytes":…}
//
// The bare one signs nothing, so its store has to serve anybody: the double with -anonymous. For
// small objects that is no fair floor: a signature costs a client as much as the rest of the
// request, and the store as much again, on the same processors where both share a machine.
//
// Each of the loops is one goroutine with an object under way at a time, and has four of its own,
// or as many as -objects says: a GET reads them in turn, a PUT writes a new one and removes the
// oldest, as a full cache does.
package main

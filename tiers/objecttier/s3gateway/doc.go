// Package s3gateway starts a real object store for tests: versitygw on a directory in memory, with
// several equal endpoints, each a process of its own.
//
//	gateway.go  Start: a Store and its Endpoints, which can be killed and started again
//	build.go    the program, built once for all tests from the module tiers/objecttier/s3test
//
// What a store does that goes wrong where a test wants it is package s3double; this one is for
// what nobody here has written: another's checks of signatures, another's multipart uploads,
// another's lists.
//
// Tests that use it skip under -short, and where the program cannot be built or its filesystem has
// no extended attributes, with the reason; KVTEST_REQUIRE_S3=1 makes that a failure. The first
// build on a machine compiles for half a minute (60 s of processor, 30 MB); the program is then
// kept in the user's cache directory, below kvbench-tests, under a name that depends on its sources
// and the compiler.
//
// A Store and its Endpoints belong to their test. They end with it, and their processes also with
// the process of the test, however that ends: they hold the reading end of a pipe from it.
package s3gateway

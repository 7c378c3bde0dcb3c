// Command s3test runs a real object store, versitygw (github.com/versity/versitygw, Apache-2.0), on
// a directory: with several endpoints, each a process of its own and all equal, as a cluster of
// gateways before one filesystem.
//
//	main.go     flags; one endpoint in this process, or several in processes of their own
//	gateway.go  versitygw with the settings that tests and measurements need
//
// It is a module of its own, so that whoever uses the benchmarks downloads and builds nothing of
// it. By hand, two endpoints in memory until Ctrl-C, from this directory:
//
//	export AWS_ACCESS_KEY_ID=key AWS_SECRET_ACCESS_KEY=secret
//	go run . -endpoints 2 -bucket bench
//	http://127.0.0.1:9000
//	http://127.0.0.1:9001
//
// Without -dir the objects lie in a directory in /dev/shm, which goes when the command ends. The
// filesystem needs user extended attributes, which tmpfs has since Linux 6.6. Tests start it
// through package s3gateway of the main module.
package main

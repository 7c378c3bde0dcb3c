// Command serve runs a double of an object store as a process: it prints the addresses of its
// endpoints, a line each, serves until it gets SIGINT or SIGTERM, and writes its access log.
//
//	main.go  all of it: flags, rules, endpoints, log
//
// For example:
//
//	export AWS_ACCESS_KEY_ID=key AWS_SECRET_ACCESS_KEY=secret
//	go run ./tiers/objecttier/s3double/serve -bucket bench -endpoints 4 -rules rules.json
//
// The keys are those that requests have to be signed with; without any they are key and secret, as
// above. Rules are s3double.Rule in JSON:
//
//	[{"op": "get", "share": 0.05, "kind": "status", "status": 503, "retry_after": "1"},
//	 {"op": "put_part", "nth": 2, "kind": "reset", "at": 1048576}]
package main

// Package profile says how users behave: kinds of users, promises to them, prompts, documents, and
// the draws that make a request of all that.
//
//	profile.go    Profile, Template, Sessions: all that a configuration file can say;
//	              Default: MLPerf's
//	draws.go      Stream: stateless draws from (seed, user, purpose, n); Shape: what kind of
//	              request a context becomes
//
// Begin with Default. Everything is plain data and safe for concurrent use; a draw has no state.
package profile

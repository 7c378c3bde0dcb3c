// Package launch finds out how a test binary was started: by the go command or by itself, and in
// which directory the user typed the command.
//
//	launch.go     Dir, by the rules of where the command was typed
//	gocommand.go  IsGoCommand: whose child a process is
package launch

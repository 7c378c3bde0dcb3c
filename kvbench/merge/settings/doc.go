// Package settings knows which settings of a run decide what its numbers mean: results that differ
// in one of them are never compared, added up or averaged, whatever anybody asks for.
//
//	settings.go  the settings by name; Asked, those of a result; Formats refuses two formats
//
// Everything is a function of its arguments, but for Formats, which remembers the first format.
package settings

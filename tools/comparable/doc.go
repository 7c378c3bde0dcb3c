// Package comparable knows which results may be set against each other: those that measured the same thing in the same
// way. It reads the settings that decide this from result files and from the configuration lines of benchmark text.
package comparable

//go:build race

package main

// raceDetector slows everything down many times.
const raceDetector = true

//go:build race

package gate

// raceDetector slows everything down many times.
const raceDetector = true

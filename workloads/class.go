package workloads

import (
	"fmt"
	"time"
)

// Class is the quality of service that a request is promised. A larger class is the more urgent one by default; the order
// in force is that of QoS.Priority.
type Class uint8

// The classes, from patient to urgent.
const (
	Batch Class = iota
	Responsive
	Interactive
	NumClasses = 3
)

var classNames = [NumClasses]string{"batch", "responsive", "interactive"}

// String returns the name that configuration files and results use.
func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return fmt.Sprintf("class(%d)", uint8(c))
}

// QoS is the promise made to a class: latencies that 95 %, 99 %, 99.9 % and 99.99 % of its requests must not exceed, and
// its place in the queue (a larger number goes first).
type QoS struct {
	P95, P99, P999, P9999 time.Duration
	Priority              int
}

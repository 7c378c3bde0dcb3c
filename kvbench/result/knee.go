package result

import "slices"

// Knee is the cell of a grid, request size times requests in flight, that has the fewest bytes
// in flight of those whose median is within 5 % of the best, or above it; of equally many the
// one with the fewest requests. Where time ended the grid it is the best so far, and where an
// error or a signal ended it, InFlight is 0.
type Knee struct {
	RequestBytes int64       `json:"request_bytes"`
	InFlight     int         `json:"in_flight"`
	Rate         float64     `json:"bytes_per_s"` // median of its measurements
	P99NS        *int64      `json:"p99_ns"`
	Best         float64     `json:"best_bytes_per_s"` // reached in each measurement of a cell
	OrderSeed    uint64      `json:"order_seed"`       // of the random order of the measurements
	EndedBy      string      `json:"ended_by"`         // KneeGrid, …
	NS           int64       `json:"ns"`               // filling and grid together
	Points       []KneePoint `json:"points"`           // the measured cells, by bytes in flight
}

// What ended the measurement of the grid: its last cell, its time limit, or an error or a signal.
// In the last two cases the knee is not known.
const (
	KneeGrid        = "grid"
	KneeTime        = "time"
	KneeInterrupted = "interrupted"
)

// KneePoint is a cell of the grid: requests of a size, so many in flight.
type KneePoint struct {
	RequestBytes int64   `json:"request_bytes"`
	InFlight     int     `json:"in_flight"`
	Rate         float64 `json:"bytes_per_s"` // median of the rounds
	Min          float64 `json:"min_bytes_per_s"`
	Max          float64 `json:"max_bytes_per_s"`
	P99NS        *int64  `json:"p99_ns"` // null: fewer than 1000 requests
	Rounds       int     `json:"rounds"` // measurements
}

// Bytes is how many are in flight.
func (p KneePoint) Bytes() int64 { return p.RequestBytes * int64(p.InFlight) }

// Known reports whether the whole grid was measured.
func (k *Knee) Known() bool { return k.EndedBy == KneeGrid }

// Bytes is how many are in flight at the knee.
func (k *Knee) Bytes() int64 { return k.RequestBytes * int64(k.InFlight) }

// Is reports whether a cell is the knee.
func (k *Knee) Is(p KneePoint) bool {
	return p.RequestBytes == k.RequestBytes && p.InFlight == k.InFlight
}

// Equal returns the other cells that equal the knee within the spread: their range, from the
// smallest measurement to the largest, overlaps the knee's.
func (k *Knee) Equal() (equal []KneePoint) {
	i := slices.IndexFunc(k.Points, k.Is)
	if i < 0 {
		return nil
	}
	for _, p := range k.Points {
		if !k.Is(p) && p.Max >= k.Points[i].Min && p.Min <= k.Points[i].Max {
			equal = append(equal, p)
		}
	}
	return equal
}

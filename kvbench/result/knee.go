package result

import "slices"

// Knee is a cell of a grid of request sizes and requests in flight. Of the cells whose median rate
// is at least 95 % of the best, it is the cell with the fewest bytes in flight; of equal ones the
// cell with the fewest requests in flight. If the time limit ended the grid, it is the knee of the
// measured cells. If an error or a signal ended the grid, InFlight is 0.
type Knee struct {
	RequestBytes int64       `json:"request_bytes"`
	InFlight     int         `json:"in_flight"`
	Rate         float64     `json:"bytes_per_s"` // median of its measurements
	P99NS        *int64      `json:"p99_ns"`
	Best         float64     `json:"best_bytes_per_s"` // reached in each measurement of a cell
	OrderSeed    uint64      `json:"order_seed"`       // of the random order of the measurements
	EndedBy      string      `json:"ended_by"`         // KneeGrid, …
	NS           int64       `json:"ns"`               // time of filling and grid
	Points       []KneePoint `json:"points"`           // the measured cells, by bytes in flight
}

// Values of Knee.EndedBy: the last cell, the time limit, or an error or a signal. In the last two
// cases the knee is unknown.
const (
	KneeGrid        = "grid"
	KneeTime        = "time"
	KneeInterrupted = "interrupted"
)

// KneePoint is a measured cell of the grid: a request size and a number of requests in flight.
type KneePoint struct {
	RequestBytes int64   `json:"request_bytes"`
	InFlight     int     `json:"in_flight"`
	Rate         float64 `json:"bytes_per_s"` // median of the rounds
	Min          float64 `json:"min_bytes_per_s"`
	Max          float64 `json:"max_bytes_per_s"`
	P99NS        *int64  `json:"p99_ns"` // null: fewer than 1000 requests
	Rounds       int     `json:"rounds"` // measurements
}

// Bytes returns the bytes in flight of the cell.
func (p KneePoint) Bytes() int64 { return p.RequestBytes * int64(p.InFlight) }

// Known reports whether the whole grid was measured.
func (k *Knee) Known() bool { return k.EndedBy == KneeGrid }

// Bytes returns the bytes in flight at the knee.
func (k *Knee) Bytes() int64 { return k.RequestBytes * int64(k.InFlight) }

// Is reports whether p is the knee's cell.
func (k *Knee) Is(p KneePoint) bool {
	return p.RequestBytes == k.RequestBytes && p.InFlight == k.InFlight
}

// Equal returns the other cells whose rates equal the knee's within the spread: their range of
// measurements, from Min to Max, overlaps the knee's range.
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

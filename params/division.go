package params

// Division says how much freedom a run has.
type Division string

// The divisions. Quick is small and short, Open lets everything be set, Closed is the MLPerf parameters and nothing else.
const (
	Quick  Division = "quick"
	Open   Division = "open"
	Closed Division = "closed"
)

// ClosedNotice stands in every output of the closed division: an official result needs MLCommons' own program.
const ClosedNotice = "MLPerf Storage v3.0 parameters, not an MLPerf result"

// Notice returns what every output of the division must say, empty for quick and open.
func (d Division) Notice() string {
	if d == Closed {
		return ClosedNotice
	}
	return ""
}

// divisions is the order of the defaults in the table.
var divisions = [...]Division{Quick, Open, Closed}

func (d Division) index() int {
	for i, x := range divisions {
		if x == d {
			return i
		}
	}
	return 0
}

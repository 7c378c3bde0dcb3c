package params

// OriginKind is the layer that a value came from; a larger one wins over a smaller one.
type OriginKind uint8

// The layers, weakest first.
const (
	FromDefault     OriginKind = iota // the same in every division
	FromDivision                      // Where: the division
	FromBenchmark                     // Where: the benchmark's name
	FromLauncher                      // Where: the launcher's environment variable (rank, ranks, local-ranks)
	FromFile                          // Where: file:line
	FromEnvironment                   // Where: the variable
	FromFlag                          // Where: empty, or the go command's flag
	FromSweep                         // Where: empty
)

// Origin says where a value came from.
type Origin struct {
	Kind  OriginKind
	Where string
}

func (o Origin) String() string {
	switch o.Kind {
	case FromDivision:
		return "division " + o.Where
	case FromBenchmark:
		return "benchmark " + o.Where
	case FromLauncher, FromEnvironment:
		return "environment " + o.Where
	case FromFile:
		return o.Where
	case FromFlag:
		return "flag"
	case FromSweep:
		return "sweep"
	}
	return "default"
}

// byUser tells whether a person set the value, as opposed to the suite or the launcher.
func (o Origin) byUser() bool { return o.Kind >= FromFile }

// setting is a value as text and the layer that gave it.
type setting struct {
	text   string
	origin Origin
}

// Parameter is one parameter in force: what the result records.
type Parameter struct {
	Name, Value, Origin string
}

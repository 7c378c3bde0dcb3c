package params

import (
	"cmp"
	"strconv"
	"strings"

	"kvbench/kvbench/units"
	"kvbench/tracing/host"
)

// Machine has the facts from which auto chooses the sizes of a load and its tiers. kvreport discover
// recommends the same sizes.
type Machine struct {
	Limits host.Limits
	// Card returns the bytes of memory of a GPU, 0 without one.
	Card func() int64
	// Capacity returns the bytes of the storage tier where -storage-capacity-gb 0 would be refused, else 0.
	Capacity func(*Values) int64
}

const (
	// With 8 users per core a virtual disk was always busy. More than 300 users only wait. The script of the
	// Python benchmark has the same limit.
	usersPerCore, leastUsers, mostUsers = 8, 16, 300
	// simulatedCard is the memory of the simulated GPU of a machine that has none: an H100's.
	simulatedCard = 80 << 30
	// fillRate limits a tier in memory to the bytes that this rate, in bytes/s, fills within the window. A
	// larger tier would not overflow, and the tier below it would have no load.
	fillRate = 1 << 30
)

// AutoUsers returns the number of users for a number of cores.
func AutoUsers(cores float64) int { return min(max(int(usersPerCore*cores), leastUsers), mostUsers) }

// AutoCPU returns the bytes of the cpu tier: half of the available memory. The rest is for buffers.
func AutoCPU(available int64) int64 { return available / 2 / units.GiB * units.GiB }

// AutoGPU returns the bytes of the gpu tier: about 30 % of a card. The rest is for weights and activations.
func AutoGPU(card int64) int64 { return card * 3 / 10 / units.GiB * units.GiB }

// AutoCapacity returns the bytes of the storage tier where -storage-capacity-gb has to be given. It is half
// of the free space: the usual 95 % would harm other users.
func AutoCapacity(free int64) int64 { return free / 2 / units.GiB * units.GiB }

// ofMachine replaces auto by the size that fits this machine, and auto/N by one N-th of it.
func (r *resolver) ofMachine(p *parameter, s setting) setting {
	word, part, _ := strings.Cut(s.text, "/")
	n, err := strconv.ParseInt(cmp.Or(part, "1"), 10, 64)
	m := r.in.Machine
	if !p.has(sized) || word != "auto" || err != nil || n < 1 || m == nil {
		return s
	}
	for _, name := range []string{"benchtime", "ranks", "local-ranks"} { // the sizes below depend on them
		if _, decided := r.v.given[name]; !decided {
			r.decide(find(name))
		}
	}
	v, auto := *r.v, s.text
	v.LocalRanks = max(1, cmp.Or(max(0, v.LocalRanks), v.Ranks))
	most := int64(v.Window.Length.Seconds() * fillRate)
	memory := func(bytes int64) string {
		const step = units.GiB / 8
		if most > 0 {
			bytes = min(bytes, most)
		}
		return units.FormatGiB(max(step, bytes/n/step*step)) // 0 would be no tier
	}
	switch p.name {
	case "num-users":
		s.text = strconv.FormatInt(max(1, int64(AutoUsers(m.Limits.Cores))/n), 10)
	case "gpu-mem-gb":
		s.text = memory(AutoGPU(cmp.Or(m.Card(), simulatedCard)))
	case "cpu-mem-gb":
		available, _ := m.Limits.Available()
		s.text = memory(AutoCPU(available) / int64(v.LocalRanks))
	case "storage-capacity-gb":
		// There is no N-th part of the default: auto/N is refused then.
		if size := m.Capacity(&v); size > 0 || n == 1 {
			s.text = units.FormatGiB(size / n)
		}
	}
	if s.text != auto { // a refused text is its own value
		s.origin.Where += ", " + auto
	}
	return s
}

package host

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Link is a PCIe link. Speed, Generation and Width are negotiated. MaxGeneration and MaxWidth are the
// largest that the device supports.
type Link struct {
	Address       string `json:"address"`
	Speed         string `json:"speed"` // as the kernel writes it: 16.0 GT/s PCIe
	Generation    int    `json:"generation"`
	Width         int    `json:"width"`
	MaxGeneration int    `json:"max_generation"`
	MaxWidth      int    `json:"max_width"`
	NUMANode      *int64 `json:"numa_node"`
}

// PCIAddress returns an address on the PCI bus as sysfs writes it, 0000:81:00.0. NVIDIA's tools use capitals,
// and eight digits for the domain.
func PCIAddress(text string) string {
	text = strings.ToLower(text)
	return text[max(0, len(text)-len("0000:81:00.0")):]
}

// Link returns the link of the PCI device whose directory in sysfs is at. It returns nil for the width 0,
// which virtual devices report.
func (at Root) Link() *Link {
	l := &Link{Address: filepath.Base(string(at)), Speed: at.Text("current_link_speed"),
		MaxGeneration: generation(at.Text("max_link_speed"))}
	l.Generation = generation(l.Speed)
	l.Width, _ = strconv.Atoi(at.Text("current_link_width"))
	l.MaxWidth, _ = strconv.Atoi(at.Text("max_link_width"))
	if l.Generation == 0 || l.Width == 0 {
		return nil
	}
	// The kernel reports -1 for a single node and for an unknown one.
	if n := at.Integer("numa_node"); n != nil && *n >= 0 {
		l.NUMANode = n
	}
	return l
}

// rates are the transfers per second of a link of width 1 in each PCIe generation, in GT/s.
var rates = []float64{2.5, 5, 8, 16, 32, 64}

// generation returns the PCIe generation of a speed such as "16.0 GT/s PCIe", 0 if unknown.
func generation(speed string) int {
	number, _, _ := strings.Cut(speed, " ")
	v, _ := strconv.ParseFloat(number, 64)
	return slices.Index(rates, v) + 1
}

// GiBPerSecond returns the bandwidth of a link in one direction, before packet overhead. The line
// coding uses 8 of 10 bits up to generation 2, and 128 of 130 bits from generation 3.
func (l Link) GiBPerSecond() float64 {
	if l.Generation < 1 || l.Generation > len(rates) {
		return 0
	}
	// Without the coding, a link of generation 2 would be a quarter too fast.
	coding := 128.0 / 130
	if l.Generation <= 2 {
		coding = 0.8
	}
	return rates[l.Generation-1] * 1e9 * coding / 8 * float64(l.Width) / (1 << 30)
}

// Degraded reports whether the link is slower or narrower than the device supports.
func (l Link) Degraded() bool {
	return l.MaxGeneration > l.Generation || l.MaxWidth > l.Width
}

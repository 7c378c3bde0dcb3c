package kvbench

import (
	"fmt"
	"slices"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tiers"
	"kvbench/tiers/gputier"
	"kvbench/tracing/host"
	"kvbench/tracing/nvml"
)

// openCards takes the memory of the gpu tier and measures plain copies to and from it. The buffers are
// registered with its driver, so that it closes after them.
func (t *trial) openCards() (err error) {
	cfg := &t.cfg.Storage
	t.stage("taking the memory of the cards")
	n := int64(cfg.Cards)
	if t.cards, err = gputier.New(cfg.Cards, (cfg.GPUBytes+n-1)/n); err != nil {
		return fmt.Errorf("making a gpu tier of %d bytes: %w", cfg.GPUBytes, err)
	}
	t.onClose(t.cards.Close)
	rates, err := t.cards.CopyRates()
	if err != nil {
		return fmt.Errorf("measuring the link of the gpu tier: %w", err)
	}
	for i, c := range t.cards.Cards() {
		link := units.OrZero(host.Root("/sys/bus/pci/devices/" + c.Address).Link())
		t.info.Cards = append(t.info.Cards, result.Card{Name: c.Name, Address: c.Address, CUDA: c.CUDA,
			PCIeGeneration: link.Generation, PCIeWidth: link.Width, MemoryBytes: c.Bytes, FreeBytes: c.Free,
			PlainReadBytesPerSecond:  rates[i][tiers.Read],
			PlainWriteBytesPerSecond: rates[i][tiers.Write]})
	}
	return nil
}

// openCardCounters writes NVML's counters of the cards at the begin of the window into the result.
func (t *trial) openCardCounters() {
	t.eachCard(func(to *result.Card, c nvml.Card) {
		to.Driver, to.ReceivedBytes, to.SentBytes = c.Driver, c.ReceivedBytes, c.SentBytes
		if c.Link != nil {
			to.PCIeGeneration, to.PCIeWidth = c.Link.Generation, c.Link.Width
		}
	})
}

// closeCardCounters replaces the counters by how far they have grown.
func (t *trial) closeCardCounters() {
	t.eachCard(func(to *result.Card, c nvml.Card) {
		to.UsedBytes = c.UsedBytes
		to.ReceivedBytes = growth(to.ReceivedBytes, c.ReceivedBytes)
		to.SentBytes = growth(to.SentBytes, c.SentBytes)
	})
}

func growth(before, after *int64) *int64 {
	if before == nil || after == nil {
		return nil
	}
	return new(*after - *before)
}

// eachCard calls do with each card of the gpu tier and NVML's description of it.
func (t *trial) eachCard(do func(*result.Card, nvml.Card)) {
	if t.cards == nil {
		return
	}
	cards, err := nvml.Cards()
	for i := range t.info.Cards {
		to := &t.info.Cards[i]
		at := slices.IndexFunc(cards, func(c nvml.Card) bool { return c.Address == to.Address })
		if at >= 0 && err == nil {
			do(to, cards[at])
			continue
		}
		to.NVMLReason = "NVML has no card at " + to.Address
		if err != nil {
			to.NVMLReason = err.Error()
		}
		to.ReceivedBytes, to.SentBytes = nil, nil // what the begin of the window wrote is since the boot
	}
}

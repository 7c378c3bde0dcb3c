package tiers

// RaceEnabled lets external tests know that allocations are not only ours.
const RaceEnabled = raceEnabled

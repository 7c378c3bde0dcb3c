package tiers

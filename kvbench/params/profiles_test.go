package params

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Every profile sets keys that exist to values that they take, and the user's values win.
func TestProfiles(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(profiles)) {
		for _, division := range []string{"quick", "open"} {
			v := good(t, Inputs{Bench: bench(t, "Synthetic")}, "-profile="+name,
				"-division="+division)
			set := settingsOfProfile(name, v.Division)
			assert.Equal(t, name == MLPerfProfile, len(set) == 0)
			assert.Equal(t, name != MLPerfProfile, v.OfSessions())
			for key, text := range set {
				if assert.NotNil(t, byName[key], key) {
					assert.Equal(t, "profile "+name, v.Origin(key).String(), key)
					assert.Contains(t, find("profile").usage(), key)
				}
				if strings.HasPrefix(key, "sessions.") {
					assert.Contains(t, profilesHelp(), key+" "+text)
				}
			}
		}
	}
}

package users

import (
	"kvbench/workloads"
	"kvbench/workloads/profile"
)

// User is one synthetic user: what it is promised and the upper ends of what its requests draw.
type User struct {
	ID       int
	Template string // name of the template it was made from
	Class    workloads.Class
	// Context and Generate are tokens: a request takes a quarter to all of each.
	Context, Generate int
	Think             float64 // mean seconds between its requests
}

// Population draws n users. The seed is the sum of the run's seed and the rank. The profile must be
// valid.
//
// With cpython the users are those that CPython's Mersenne Twister draws from the seed, one user
// after the other: choice of the template, random for the class, randint, randint, uniform. That
// list defines the closed division, because its few interactive users decide the result. Otherwise
// each user is a function of (seed, user), so that a larger population starts with the smaller one.
func Population(p profile.Profile, seed uint64, n int, cpython bool) []User {
	users := make([]User, n)
	if cpython {
		m := newMersenne(seed)
		for i := range users {
			t := p.Templates[m.below(uint64(len(p.Templates)))]
			users[i] = User{
				ID: i, Template: t.Name, Class: p.Class(m.random()),
				Context:  m.randint(t.Context[0], t.Context[1]),
				Generate: m.randint(t.Generate[0], t.Generate[1]),
				Think:    m.uniform(t.Think[0], t.Think[1]),
			}
		}
		return users
	}
	for i := range users {
		s := profile.NewStream(seed, i)
		t := p.Templates[s.Between(profile.DrawTemplate, 0, 0, len(p.Templates)-1)]
		users[i] = User{
			ID: i, Template: t.Name, Class: p.Class(s.Unit(profile.DrawClass, 0)),
			Context:  s.Between(profile.DrawUserContext, 0, t.Context[0], t.Context[1]),
			Generate: s.Between(profile.DrawUserGenerate, 0, t.Generate[0], t.Generate[1]),
			Think:    s.Uniform(profile.DrawThink, 0, t.Think[0], t.Think[1]),
		}
	}
	return users
}

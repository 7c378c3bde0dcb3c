package merge

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// Fold makes one result of those of a trial's ranks, in whatever order they come; of one rank that
// is alone, a result with the same numbers. The error is for what is not a trial's ranks: none, two
// of one rank, or of several benchmarks or trials. That they were measured alike is for the caller
// to see to.
func Fold(ranks []*result.Result) (*result.Result, error) {
	ranks = slices.SortedFunc(slices.Values(ranks),
		func(a, b *result.Result) int { return a.Rank - b.Rank })
	if len(ranks) == 0 {
		return nil, errors.New("no rank's result to fold")
	}
	for i, r := range ranks[1:] {
		first := ranks[0]
		if r.Rank == ranks[i].Rank {
			return nil, fmt.Errorf("two results of rank %d in trial %d of %s", r.Rank, r.Trial,
				cmp.Or(r.Name, r.Benchmark))
		}
		if r.Benchmark != first.Benchmark || r.Name != first.Name || r.Trial != first.Trial {
			return nil, fmt.Errorf("trial %d of %s and trial %d of %s are no ranks of one trial",
				first.Trial, cmp.Or(first.Name, first.Benchmark), r.Trial,
				cmp.Or(r.Name, r.Benchmark))
		}
	}
	// First what the table says, field by field, then what is made of that.
	out := foldAll(ranks)
	derive(out, ranks)
	return out, nil
}

// Missing are the ranks that a folded result lacks.
func Missing(r *result.Result) (list []int) {
	// A result that was never folded is that of its rank.
	have := r.MergedRanks
	if have == nil {
		have = []int{r.Rank}
	}
	for rank := range r.Ranks {
		if !slices.Contains(have, rank) {
			list = append(list, rank)
		}
	}
	return list
}

// foldAll folds structures, each field by its rule.
func foldAll[T any](from []*T) *T {
	out, values := new(T), make([]reflect.Value, len(from))
	for i, part := range from {
		values[i] = reflect.ValueOf(part).Elem()
	}
	structure(reflect.ValueOf(out).Elem(), values)
	return out
}

// structure is the walk over a result: it folds each field by its rule.
func structure(to reflect.Value, from []reflect.Value) {
	of := rules()[to.Type()]
	for i := range to.NumField() {
		field := to.Type().Field(i)
		how := of[field.Name]
		if field.Anonymous {
			how = fold
		}
		values := make([]reflect.Value, len(from))
		for k := range from {
			values[k] = from[k].Field(i)
		}
		apply(how, to.Field(i), values)
	}
}

// apply makes a field of those of the ranks.
func apply(how rule, to reflect.Value, from []reflect.Value) {
	switch how {
	case sum, most, least:
		if to.Kind() == reflect.Map { // of numbers
			byKey(to, from, func(entry reflect.Value, values []reflect.Value) {
				apply(how, entry, values)
			})
			return
		}
		// The largest of those that are known is reported: an age is null where nothing waits. A sum
		// without one of its parts would be a number of something else.
		if to.Kind() == reflect.Pointer {
			from = known(from, how != sum)
			if len(from) == 0 {
				return
			}
			to.Set(reflect.New(to.Type().Elem()))
			to = to.Elem()
		}
		to.Set(from[0])
		for _, v := range from[1:] {
			number(how, to, v)
		}
	case fold:
		folded(to, from)
	case list:
		// Never in place: the first rank's list is its own.
		to.Set(from[0])
		for _, more := range from[1:] {
			for i := range more.Len() {
				if !contains(to, more.Index(i)) {
					to.Set(reflect.Append(to.Slice3(0, to.Len(), to.Len()), more.Index(i)))
				}
			}
		}
	case same, each:
		equal := func(v reflect.Value) bool {
			return reflect.DeepEqual(v.Interface(), from[0].Interface())
		}
		if len(from) == 1 || how == same && !slices.ContainsFunc(from,
			func(v reflect.Value) bool { return !equal(v) }) {
			to.Set(from[0])
		}
	}
}

// known are what pointers point to: nothing where one is nil, unless those that are may be left
// out.
func known(from []reflect.Value, partly bool) (list []reflect.Value) {
	for _, v := range from {
		if !v.IsNil() {
			list = append(list, v.Elem())
		} else if !partly {
			return nil
		}
	}
	return list
}

// number adds a number to another, or keeps the larger or smaller one.
func number(how rule, to, v reflect.Value) {
	larger := false
	switch {
	case to.CanInt():
		if larger = v.Int() > to.Int(); how == sum {
			to.SetInt(to.Int() + v.Int())
		}
	case to.CanUint():
		if larger = v.Uint() > to.Uint(); how == sum {
			to.SetUint(to.Uint() + v.Uint())
		}
	case to.CanFloat():
		if larger = v.Float() > to.Float(); how == sum {
			to.SetFloat(to.Float() + v.Float())
		}
	}
	if how == most && larger || how == least && !larger {
		to.Set(v)
	}
}

// folded folds structures, what pointers to them point to, and those of a map key by key.
func folded(to reflect.Value, from []reflect.Value) {
	switch to.Kind() {
	case reflect.Struct:
		structure(to, from)
	case reflect.Pointer:
		if from = known(from, false); len(from) > 0 {
			to.Set(reflect.New(to.Type().Elem()))
			structure(to.Elem(), from)
		}
	case reflect.Map:
		byKey(to, from, structure)
	}
}

// byKey makes each entry of a map of those that the ranks have: a key that one lacks is one of
// which it had nothing.
func byKey(to reflect.Value, from []reflect.Value, of func(reflect.Value, []reflect.Value)) {
	if from[0].IsNil() {
		return
	}
	to.Set(reflect.MakeMap(to.Type()))
	for _, one := range from {
		for _, key := range one.MapKeys() {
			var values []reflect.Value
			for _, other := range from {
				if v := other.MapIndex(key); v.IsValid() {
					values = append(values, v)
				}
			}
			entry := reflect.New(to.Type().Elem()).Elem()
			of(entry, values)
			to.SetMapIndex(key, entry)
		}
	}
}

// contains compares by value, since lists hold values of any type: it reports whether a list has a
// value.
func contains(list, v reflect.Value) bool {
	for i := range list.Len() {
		if reflect.DeepEqual(list.Index(i).Interface(), v.Interface()) {
			return true
		}
	}
	return false
}

// numbered names ranks in a sentence: rank 1, ranks 0 and 3.
func numbered(ranks []int) string {
	if len(ranks) == 1 {
		return "rank " + units.List(ranks)
	}
	return "ranks " + units.List(ranks)
}

package merge

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// What becomes of the ranks' values of a field is the merge tag of the field:
//
//	sum       added; unknown where one of them is unknown, because null is no 0. Lists are added entry
//	          by entry, as far as all that have one have it
//	max min   the largest, the smallest, of the known ones
//	same      the value that all ranks have, else absent
//	list      one after the other, without equals
//	key=A,B   a list: entries that are equal in these fields are merged
//	drop      of one rank alone; absent where there are several
//	any       of the ranks that have it: a structure, or a number, which is added
//	-         derived from the other fields, or merged by a function of this package
//
// Structures without a tag are merged field by field, absent where one rank has none; maps are
// merged key by key. Why a number is added or not: what a client did in its window (operations,
// bytes, requests, CPU time, waits) is the trial's by addition, and so is what it did per second,
// because clients run concurrently; that is how MLPerf Storage's launcher adds bandwidths and token
// rates (mlpstorage_py/benchmarks/kvcache.py). A peak of memory or an age is the worst client's. A
// share of a window or of a machine's time is neither.

// merged merges structures.
func merged[T any](parts []*T) *T {
	out, from := new(T), make([]reflect.Value, len(parts))
	for i, part := range parts {
		from[i] = reflect.ValueOf(part).Elem()
	}
	fields(reflect.ValueOf(out).Elem(), from)
	return out
}

// fields merges structures field by field.
func fields(to reflect.Value, from []reflect.Value) {
	for i := range to.NumField() {
		values := make([]reflect.Value, len(from))
		for k := range from {
			values[k] = from[k].Field(i)
		}
		merge(to.Type().Field(i).Tag.Get("merge"), to.Field(i), values)
	}
}

// merge merges the values of a field by its rule.
func merge(rule string, to reflect.Value, from []reflect.Value) {
	keys, byKeys := strings.CutPrefix(rule, "key=")
	switch {
	case rule == "-":
	case rule == "drop", rule == "same":
		if len(from) == 1 || rule == "same" && alike(from) {
			to.Set(from[0])
		}
	case to.Kind() == reflect.Slice && rule == "sum":
		elements(to, from)
	case byKeys, rule == "list":
		if !from[0].IsNil() {
			to.Set(reflect.MakeSlice(to.Type(), 0, from[0].Len()))
		}
		if byKeys {
			entries(keys, to, from)
			return
		}
		for _, list := range from {
			for i := range list.Len() {
				if !contains(to, list.Index(i)) {
					to.Set(reflect.Append(to, list.Index(i)))
				}
			}
		}
	case to.Kind() == reflect.Struct:
		fields(to, from)
	case to.Kind() == reflect.Map:
		each(rule, to, from)
	case to.Kind() == reflect.Pointer:
		known := slices.DeleteFunc(slices.Clone(from), reflect.Value.IsNil)
		if len(known) == 0 || len(known) < len(from) && (rule == "sum" || rule == "") {
			return
		}
		for i := range known {
			known[i] = known[i].Elem()
		}
		to.Set(reflect.New(to.Type().Elem()))
		merge(rule, to.Elem(), known)
	default:
		number(rule, to, from)
	}
}

// elements merges the entries of lists that stand at the same place.
func elements(to reflect.Value, from []reflect.Value) {
	lists := slices.DeleteFunc(slices.Clone(from), reflect.Value.IsNil)
	if len(lists) == 0 {
		return
	}
	n := lists[0].Len()
	for _, list := range lists {
		n = min(n, list.Len())
	}
	to.Set(reflect.MakeSlice(to.Type(), n, n))
	for i := range n {
		values := make([]reflect.Value, len(lists))
		for k, list := range lists {
			values[k] = list.Index(i)
		}
		merge("sum", to.Index(i), values)
	}
}

// each merges the entries of maps key by key: a rank without a key has nothing of it.
func each(rule string, to reflect.Value, from []reflect.Value) {
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
			merge(rule, entry, values)
			to.SetMapIndex(key, entry)
		}
	}
}

// entries merges the entries of lists that are equal in some fields, in the order in which the
// first rank that has one lists them.
func entries(keys string, to reflect.Value, from []reflect.Value) {
	order, parts := []string{}, map[string][]reflect.Value{}
	for _, list := range from {
		for i := range list.Len() {
			key := ""
			for name := range strings.SplitSeq(keys, ",") {
				key += fmt.Sprintln(list.Index(i).FieldByName(name))
			}
			if parts[key] == nil {
				order = append(order, key)
			}
			parts[key] = append(parts[key], list.Index(i))
		}
	}
	for _, key := range order {
		entry := reflect.New(to.Type().Elem()).Elem()
		fields(entry, parts[key])
		to.Set(reflect.Append(to, entry))
	}
}

// number adds numbers, or keeps the largest or smallest one. True is larger than false.
func number(rule string, to reflect.Value, from []reflect.Value) {
	if len(from) == 0 {
		return
	}
	to.Set(from[0])
	for _, v := range from[1:] {
		switch {
		case rule == "max" && less(to, v), rule == "min" && less(v, to):
			to.Set(v)
		case rule == "max", rule == "min":
		case to.CanInt():
			to.SetInt(to.Int() + v.Int())
		case to.CanFloat():
			to.SetFloat(to.Float() + v.Float())
		}
	}
}

func less(a, b reflect.Value) bool {
	switch {
	case a.CanInt():
		return a.Int() < b.Int()
	case a.CanUint():
		return a.Uint() < b.Uint()
	case a.CanFloat():
		return a.Float() < b.Float()
	case a.Kind() == reflect.String:
		return a.String() < b.String()
	}
	return b.Bool() && !a.Bool()
}

func alike(values []reflect.Value) bool {
	return !slices.ContainsFunc(values, func(v reflect.Value) bool {
		return !reflect.DeepEqual(v.Interface(), values[0].Interface())
	})
}

// contains reports whether a list has a value, by what pointers point to.
func contains(list, v reflect.Value) bool {
	for i := range list.Len() {
		if reflect.DeepEqual(list.Index(i).Interface(), v.Interface()) {
			return true
		}
	}
	return false
}
